//! The text reader on every odd input that we could think of, read in blocks of several sizes.

use std::io::{self, Read};

use sonde_numbers::{
    BadLine, Collect, Counts, Notation, NumberKey, OnBad, ReadError, Reason, Separator, TextFormat, read_text,
};

/// Small blocks put every line across a block border sooner or later.
const BLOCKS: [usize; 5] = [1, 3, 16, 100, 1 << 16];

fn read_all<K: NumberKey>(text: &[u8], format: &TextFormat, on_bad: OnBad) -> (Collect<K>, Counts) {
    let outcomes = BLOCKS.map(|block| {
        let mut seen = Collect { keys: Vec::new(), weights: Vec::new() };
        let format = TextFormat { block, ..format.clone() };
        let counts = read_text("t", text, &format, on_bad, &mut seen).unwrap();
        (seen, counts)
    });
    for pair in outcomes.windows(2) {
        assert_eq!(pair[0], pair[1], "the block size changes what is read");
    }
    outcomes.into_iter().next().unwrap()
}

fn keys<K: NumberKey>(text: &str) -> Vec<K> {
    read_all(text.as_bytes(), &TextFormat::default(), OnBad::Stop).0.keys
}

fn bad<K: NumberKey>(text: &[u8], format: &TextFormat) -> BadLine {
    let mut seen = Collect::<K> { keys: Vec::new(), weights: Vec::new() };
    match read_text("t", text, format, OnBad::Stop, &mut seen) {
        Err(ReadError::Bad(bad)) => bad,
        other => panic!("{other:?}"),
    }
}

#[test]
fn decimal_hexadecimal_and_line_ends() {
    assert_eq!(keys::<u64>("1\n0xff\r\n  7 \n\t8\t\r\n0X1F\n9"), [1, 255, 7, 8, 31, 9]);
    assert_eq!(keys::<u32>("4294967295\n"), [u32::MAX]);
    assert_eq!(keys::<u64>("18446744073709551615\n00000000000000000000000018"), [u64::MAX, 18]);
    assert_eq!(keys::<u128>("0xffffffffffffffffffffffffffffffff\n5"), [u128::MAX, 5]);
    assert_eq!(keys::<u64>(""), []);
}

#[test]
fn empty_lines_are_counted() {
    let (seen, counts) = read_all::<u64>(b"\n\r\n1\n \t\n\n", &TextFormat::default(), OnBad::Stop);
    assert_eq!(seen.keys, [1]);
    assert_eq!((counts.numbers, counts.empty_lines, counts.bytes), (1, 4, 9));
}

#[test]
fn bad_lines_stop_with_place_text_and_reason() {
    let plain = TextFormat::default();
    for (text, line, shown, reason) in [
        (&b"1\n2\nabc\n"[..], 3, "abc", Reason::NotANumber),
        (b"-5", 1, "-5", Reason::Negative),
        (b"\n\n18446744073709551616\r\n", 3, "18446744073709551616", Reason::TooLarge { bits: 64 }),
        (b"0x10000000000000000\n", 1, "0x10000000000000000", Reason::TooLarge { bits: 64 }),
        (b"1\n1\x002\n", 2, "1\\x002", Reason::NotANumber),
        (b"12 13\n", 1, "12 13", Reason::SeveralColumns),
        (b"\xff\xfe\n", 1, "\\xff\\xfe", Reason::NotANumber),
    ] {
        let expected = BadLine { name: "t".into(), line, text: shown.into(), reason };
        assert_eq!(bad::<u64>(text, &plain), expected);
    }
    assert_eq!(bad::<u32>(b"4294967296", &plain).reason, Reason::TooLarge { bits: 32 });
}

#[test]
fn bad_lines_are_counted_when_skipped() {
    let (seen, counts) = read_all::<u64>(b"1\nx\n2\ny\n\n3", &TextFormat::default(), OnBad::Skip);
    assert_eq!(seen.keys, [1, 2, 3]);
    assert_eq!((counts.numbers, counts.bad_lines, counts.empty_lines), (3, 2, 1));
    assert_eq!(counts.first_bad.unwrap().line, 2);
}

#[test]
fn overlong_lines_are_bad_wherever_the_block_ends() {
    let format = TextFormat { max_line: 8, ..TextFormat::default() };
    let (seen, counts) =
        read_all::<u64>(b"1\n000000002\n00000003\n  4444444444444444444\n5\n", &format, OnBad::Skip);
    assert_eq!((seen.keys, counts.bad_lines), (vec![1, 3, 5], 2));
    let long = "9".repeat(300_000);
    let (seen, counts) = read_all::<u64>(format!("1\n{long}\n2\n{long}").as_bytes(), &format, OnBad::Skip);
    assert_eq!((seen.keys, counts.bad_lines, counts.lines()), (vec![1, 2], 2, 4));
    assert_eq!(counts.first_bad.unwrap().text, "99999999...");
}

#[test]
fn columns_separators_and_weights() {
    let columns = |columns: &[usize], weight| TextFormat {
        columns: columns.to_vec(),
        weight_column: weight,
        ..TextFormat::default()
    };
    let texts: [(&[u8], [u64; 2], [u64; 2]); 2] =
        [(b"a 0x10 3\n  b\t17   4 x\r\n", [16, 17], [3, 4]), (b"c,18,5\nd, 19 , 6 ,\n", [18, 19], [5, 6])];
    for (text, keys, weights) in texts {
        let (seen, _) = read_all::<u64>(text, &columns(&[2], Some(3)), OnBad::Stop);
        assert_eq!((seen.keys, seen.weights), (keys.to_vec(), weights.to_vec()));
        let (seen, _) = read_all::<[u64; 2]>(text, &columns(&[3, 2], None), OnBad::Stop);
        assert_eq!(seen.keys, [[weights[0], keys[0]], [weights[1], keys[1]]]);
    }
    let (seen, _) = read_all::<u64>(b"5\n6\n", &columns(&[1], Some(1)), OnBad::Stop);
    assert_eq!((seen.keys, seen.weights), (vec![5, 6], vec![5, 6]));
    let (seen, _) = read_all::<[u32; 2]>(b"1,2\n3,4\n", &TextFormat::default(), OnBad::Stop);
    assert_eq!(seen.keys, [[1, 2], [3, 4]]);
    let tabs = TextFormat { separator: Separator::Byte(b'\t'), ..columns(&[2], None) };
    assert_eq!(read_all::<u64>(b"John Smith, Jr\t7\n", &tabs, OnBad::Stop).0.keys, [7]);
}

#[test]
fn column_errors() {
    let format = TextFormat { columns: vec![2], weight_column: Some(3), ..TextFormat::default() };
    assert_eq!(bad::<u64>(b"1\n", &format).reason, Reason::MissingColumn { wanted: 2, have: 1 });
    assert_eq!(bad::<u64>(b"1 2\n", &format).reason, Reason::MissingColumn { wanted: 3, have: 2 });
    assert_eq!(bad::<u64>(b"1,,3\n", &format).reason, Reason::EmptyColumn { column: 2 });
    assert_eq!(bad::<u64>(b"1,2,-3\n", &format).reason, Reason::Negative);
    let mut sink = Collect::<u64>::default();
    let zero = TextFormat { columns: vec![0], ..TextFormat::default() };
    assert!(matches!(read_text("t", &b""[..], &zero, OnBad::Stop, &mut sink), Err(ReadError::ColumnZero)));
    let two = TextFormat { columns: vec![1, 2], ..TextFormat::default() };
    assert!(matches!(read_text("t", &b""[..], &two, OnBad::Stop, &mut sink), Err(ReadError::Layout { .. })));
}

#[test]
fn header_lines_and_addresses() {
    let format = TextFormat { header_lines: 1, notation: Notation::Ipv4, ..TextFormat::default() };
    let (seen, counts) = read_all::<u32>(b"address\n10.0.0.1\n10.0.0.2\n", &format, OnBad::Stop);
    assert_eq!((seen.keys, counts.header_lines), (vec![0x0a00_0001, 0x0a00_0002], 1));
    assert_eq!(bad::<u32>(b"h\n10.0.0\n", &format).line, 2);
    let format = TextFormat { notation: Notation::Ipv6, ..TextFormat::default() };
    assert_eq!(read_all::<u128>(b"::2\n1.2.3.4\n", &format, OnBad::Stop).0.keys, [2, 0xffff_0102_0304]);
}

#[test]
fn more_numbers_than_a_batch_keep_their_order() {
    let text: String = (0..20_000u64).map(|n| format!("{}\n", n * n)).collect();
    assert_eq!(keys::<u64>(&text), (0..20_000u64).map(|n| n * n).collect::<Vec<_>>());
}

/// Gives interruptions, then an error.
struct Failing(u32);

impl Read for Failing {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.0 += 1;
        match self.0 {
            1 => Err(io::ErrorKind::Interrupted.into()),
            2 => {
                room[..2].copy_from_slice(b"1\n");
                Ok(2)
            }
            _ => Err(io::Error::other("gone")),
        }
    }
}

#[test]
fn a_failing_reader_is_an_error_with_the_name() {
    let mut sink = Collect::<u64>::default();
    let error = read_text("pipe", Failing(0), &TextFormat::default(), OnBad::Skip, &mut sink).unwrap_err();
    assert_eq!(error.to_string(), "pipe: cannot read: gone");
}

#[test]
fn the_first_line_chooses_the_separator_for_all() {
    let format = TextFormat { columns: vec![2], ..TextFormat::default() };
    let read = |text: &str| {
        let mut sink = Collect::<u64>::default();
        read_text("in", text.as_bytes(), &format, OnBad::Stop, &mut sink).map(|_| sink.keys)
    };
    assert_eq!(read("1 2\n3 4\n").unwrap(), [2, 4]);
    assert_eq!(read("\n1,2 \n3, 4\n").unwrap(), [2, 4]);
    // A line that has the other separator does not fit, and is named.
    let error = read("1 2\n3,4\n").unwrap_err().to_string();
    assert_eq!(error, "in:2: no column 2, the line has 1: \"3,4\"");
    let error = read("1,2\n3 4\n").unwrap_err().to_string();
    assert_eq!(error, "in:2: no column 2, the line has 1: \"3 4\"");
    let error = read("1 2\n1 4,5 6\n").unwrap_err().to_string();
    assert_eq!(error, "in:2: not a whole number (decimal or 0x hexadecimal): \"4,5\"");
    let long = format!("1 2\n1 {} 3\n", "z".repeat(50));
    let error = read(&long).unwrap_err().to_string();
    assert!(error.ends_with(&format!("\"{}...\"", "z".repeat(40))), "{error}");
}
