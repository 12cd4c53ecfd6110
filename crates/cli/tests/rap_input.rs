//! `sonde rap` from end to end: every form of input, and every way in which input can be wrong.

#[allow(dead_code, reason = "each test file uses a part of it")]
mod common;

use common::{command, file, lines, rap};
use std::process::Stdio;

#[test]
fn files_and_standard_input_are_one_stream() {
    let (_folder, path) = file(lines("5", 30));
    let path = path.to_str().unwrap();
    let run = rap(&["--json", path, "-", path], lines("6", 40)).json();
    assert_eq!(run["events"], 100);
    let hot: Vec<_> = run["hot"].as_array().unwrap().iter().map(|hot| (&hot["lo"], &hot["own"])).collect();
    assert_eq!(hot.len(), 2);
    assert!(hot[0].0 == "0x5" && hot[0].1 == 60 && hot[1].0 == "0x6" && hot[1].1 == 40, "{hot:?}");
}

#[test]
fn decimal_hexadecimal_crlf_and_a_missing_last_newline() {
    let run = rap(&["--json"], "16\r\n0x10\n\n 16 \n0X10").json();
    assert_eq!((&run["events"], &run["empty_lines"], &run["type"]), (&4.into(), &1.into(), &"u64".into()));
    assert_eq!(run["hot"][0]["lo"], "0x10");
    assert_eq!(run["hot"][0]["total"], 4);
}

#[test]
fn types_are_detected_or_given() {
    assert_eq!(rap(&["--json"], "10.1.2.3\n").json()["type"], "ipv4");
    assert_eq!(rap(&["--json"], "10.1.2.3\n2001:db8::1\n").json()["type"], "ipv6");
    assert_eq!(rap(&["--json"], "1\n18446744073709551616\n").json()["type"], "u128");
    for (kind, input) in
        [("u32", "7\n"), ("u64", "7\n"), ("u128", "7\n"), ("ipv4", "1.2.3.4\n"), ("ipv6", "::1\n")]
    {
        let run = rap(&["--json", "--type", kind], input).json();
        assert_eq!((&run["type"], &run["events"]), (&kind.into(), &1.into()));
    }
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_line() {
    let run = rap(&["--json"], "\u{feff}16\n16\n").json();
    assert_eq!((&run["events"], &run["hot"][0]["total"], &run["bytes"]), (&2.into(), &2.into(), &9.into()));
    for (options, text) in [
        (&["--json", "--column", "1", "--weight-column", "2"][..], "\u{feff}0x10,70\n0x20,30\n"),
        (
            &["--json", "--header", "--column", "1", "--weight-column", "2"][..],
            "\u{feff}pc,n\n0x10,70\n0x20,30\n",
        ),
    ] {
        let run = rap(options, text).json();
        assert_eq!((&run["events"], &run["hot"][0]["own"]), (&100.into(), &70.into()), "{run}");
    }
    assert_eq!(rap(&["--json"], "\u{feff}10.1.2.3\n").json()["type"], "ipv4");
    // Only at the begin: elsewhere it is an error, as ever.
    assert_eq!(rap(&["--json", "--skip-bad"], "16\n\u{feff}16\n").json()["skipped"], 1);
}

#[test]
fn columns_weights_headers_and_separators() {
    let csv = "pc,name,count\n0x10,main,70\n0x20,John Smith,30\n";
    let run = rap(&["--json", "--header", "--column", "1", "--weight-column", "3"], csv).json();
    assert_eq!((&run["events"], &run["numbers"]), (&100.into(), &2.into()));
    assert_eq!((&run["hot"][0]["own"], &run["hot"][1]["own"]), (&70.into(), &30.into()));
    let uniq = "     70 0x10\n     30 0x20\n";
    let again = rap(&["--json", "--column", "2", "--weight-column", "1"], uniq).json();
    assert_eq!(again["hot"], run["hot"]);
    let odd = rap(&["--json", "--column", "2", "--separator", ";"], "a b;5;c\n").json();
    assert_eq!(odd["hot"][0]["lo"], "0x5");
}

#[test]
fn two_and_three_dimensions() {
    let text = lines("0x10 0x20 0x30", 10);
    let run = rap(&["--json", "--columns", "3,1"], &text).json();
    assert_eq!(run["dimensions"], 2);
    assert_eq!(run["hot"][0]["lo"], serde_json::json!(["0x30", "0x10"]));
    assert_eq!(run["hot"][0]["hi"], serde_json::json!(["0x30", "0x10"]));
    assert_eq!(rap(&["--json", "--columns", "1,2,3"], &text).json()["dimensions"], 3);
    let shown = rap(&["--columns", "1,2", "--type", "ipv4"], lines("10.0.0.1,10.0.0.2", 5));
    assert!(shown.out.contains("10.0.0.1 × 10.0.0.2"), "{}", shown.out);
}

#[test]
fn binary_words_and_pairs() {
    let narrow: Vec<u8> = [7u32, 7, 7, 9].iter().flat_map(|word| word.to_le_bytes()).collect();
    let run = rap(&["--json", "--format", "u32le"], &narrow).json();
    assert_eq!((&run["events"], &run["type"]), (&4.into(), &"u32".into()));
    assert_eq!((&run["hot"][0]["lo"], &run["hot"][0]["own"]), (&"0x7".into(), &3.into()));
    let wide = rap(&["--json", "--format", "u64le"], &narrow).json();
    assert_eq!((&wide["events"], &wide["hot"][0]["lo"]), (&2.into(), &"0x700000007".into()));
    let pairs = rap(&["--json", "--format", "u32le", "--columns", "1,2"], &narrow).json();
    assert_eq!(pairs["hot"][0]["lo"], serde_json::json!(["0x7", "0x7"]));
    let addresses = rap(&["--format", "u32le", "--type", "ipv4"], &narrow);
    assert!(addresses.out.contains("0.0.0.7"), "{}", addresses.out);
}

#[test]
fn large_binary_files_are_counted_whole() {
    let words: Vec<u8> = (0..700_000u64).flat_map(|n| (n % 10).to_le_bytes()).collect();
    let (_folder, path) = file(&words);
    let path = path.to_str().unwrap();
    let run = rap(&["--json", "--format", "u64le", path, "-", path], 3u64.to_le_bytes()).json();
    assert_eq!((&run["events"], &run["bytes"]), (&1_400_001.into(), &11_200_008.into()));
    let (_folder, torn) = file(&words[1..]);
    assert_eq!(rap(&["--format", "u64le", torn.to_str().unwrap()], "").status, 2);
}

#[test]
fn a_bad_line_stops_with_its_place() {
    let (_folder, path) = file("1\n2\nabc\x1b[0m\n4\n");
    let name = path.to_str().unwrap();
    let run = rap(&[name], "");
    assert_eq!((run.status, run.out.as_str()), (2, ""));
    let expected =
        format!("sonde: {name}:3: not a whole number (decimal or 0x hexadecimal): \"abc\\x1b[0m\"\n");
    assert_eq!(run.err, expected);
    assert!(rap(&[], "-3\n").err.contains("<stdin>:1: negative"));
    assert!(rap(&["--type", "u32"], "4294967296\n").err.contains("does not fit in 32 bits"));
    assert!(rap(&[], "1 2\n").err.contains("several columns"));
    assert!(rap(&["--column", "3"], "1 2\n").err.contains("no column 3, the line has 2"));
}

#[test]
fn bad_lines_can_be_skipped_and_are_reported() {
    let text = rap(&["--skip-bad"], "1\nabc\n1\n\0\n");
    assert_eq!(text.status, 0);
    assert!(text.out.contains("skipped   2 that could not be read"), "{}", text.out);
    assert!(text.out.contains("<stdin>:2: not a whole number"), "{}", text.out);
    let json = rap(&["--skip-bad", "--json"], "1\nabc\n1\n").json();
    assert_eq!((&json["events"], &json["skipped"]), (&2.into(), &1.into()));
    assert!(json["first_skipped"].as_str().unwrap().starts_with("<stdin>:2:"));
}

#[test]
fn torn_binary_input() {
    let run = rap(&["--format", "u64le"], [0u8; 21]);
    assert_eq!(run.status, 2);
    assert!(run.err.contains("21 bytes are not a whole number of 8-byte words"), "{}", run.err);
    let skipped = rap(&["--format", "u64le", "--skip-bad", "--json"], [0u8; 21]).json();
    assert_eq!((&skipped["events"], &skipped["skipped"]), (&2.into(), &1.into()));
}

#[test]
fn missing_files_and_folders_are_told_before_anything_is_read() {
    let (folder, path) = file("abc\n");
    let run = rap(&[path.to_str().unwrap(), "/no/such/file"], "");
    assert_eq!(run.status, 2);
    assert!(run.err.contains("/no/such/file: cannot open"), "{}", run.err);
    let run = rap(&[folder.path().to_str().unwrap()], "");
    assert_eq!(run.status, 2);
    assert!(run.err.contains("is a directory"), "{}", run.err);
}

#[test]
fn empty_input_is_a_message_and_no_failure() {
    for input in ["", "\n\n", " \r\n"] {
        let run = rap(&[], input);
        assert_eq!(run.status, 0);
        assert!(run.out.starts_with("no events"), "{}", run.out);
    }
    let zero = rap(&["--column", "1", "--weight-column", "2"], "5 0\n");
    assert!(zero.out.contains("weigh 0"), "{}", zero.out);
    let json = rap(&["--json", "--exact"], "").json();
    assert_eq!((&json["events"], &json["hot"]), (&0.into(), &serde_json::json!([])));
    assert_eq!(rap(&["--dump"], "").status, 0);
    assert_eq!(rap(&["--format", "u64le"], "").status, 0);
}

#[test]
fn weights_that_add_up_to_too_much_are_refused() {
    let run = rap(&["--column", "1", "--weight-column", "2"], "1 18446744073709551615\n2 1\n");
    assert_eq!(run.status, 2);
    assert!(run.err.contains("2^64"), "{}", run.err);
    let most = rap(&["--json", "--column", "1", "--weight-column", "2"], "1 18446744073709551615\n").json();
    assert_eq!(most["events"], u64::MAX);
}

#[test]
fn a_closed_pipe_is_no_error() {
    let (_folder, path) = file((0..3000u64).map(|n| format!("{}\n", n * 1_000_003)).collect::<String>());
    let mut child = command(&["--dump", path.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error_with_status_1() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (_folder, path) = file("1\n");
    let output = command(&[path.to_str().unwrap()]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("cannot write the result"));
}
