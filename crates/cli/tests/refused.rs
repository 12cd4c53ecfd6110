//! What `sonde run` and its relatives refuse, and how: status 2, 126 or 127, and what to do about it.

#[path = "common/sonde.rs"]
mod sonde;

use sonde::{Bench, script};

#[test]
fn a_mistyped_option_is_an_error_of_usage_not_a_program() {
    let bench = Bench::new();
    for command in [&["run"][..], &["trace", "record", "-o", "t"], &["lab", "loops"]] {
        for option in ["--bogus", "-Z", "--bogus=3"] {
            let done = bench.sonde(&[command, &[option, "--", "true"]].concat());
            assert_eq!(done.status, Some(2), "{command:?}: {}", done.err);
            let name = option.split('=').next().unwrap();
            assert!(done.err.contains(&format!("unexpected argument '{name}")), "{command:?}: {}", done.err);
        }
    }
    // What comes behind the name of the program is the program's own, whatever it looks like.
    let own = ["-c", "printf '%s ' \"$@\"", "sh", "--quiet", "--bogus", "--", "-Z", "--help"];
    for dashes in [&[][..], &["--"]] {
        let done = bench.sonde(&[&["run", "--quiet"], dashes, &["sh"], &own].concat()).good();
        assert_eq!(done.text(), "--quiet --bogus -- -Z --help ");
    }
}

#[test]
fn files_are_not_written_to_standard_output() {
    let bench = Bench::new();
    for args in
        [&["run", "-o", "-", "true"][..], &["merge", "-o", "-", "a"], &["trace", "record", "-o", "-", "true"]]
    {
        let done = bench.sonde(args);
        assert_eq!(done.status, Some(2), "{args:?}: {}", done.err);
        assert!(done.err.contains("not to standard output") && !bench.path("-").exists(), "{}", done.err);
    }
}

#[test]
fn a_profile_is_not_a_trace_and_the_right_command_is_named() {
    let bench = Bench::new();
    bench.sonde(&["run", "--quiet", "-o", "it.sonde", "--", "true"]).good();
    bench.sonde(&["trace", "record", "-o", "it.trace", "--", "true"]).good();
    std::fs::write(bench.path("text"), "neither of them").unwrap();
    let cases: [(&[&str], &str); 10] = [
        (&["report", "it.trace"], "a trace, not a profile: `sonde trace info it.trace`"),
        (&["merge", "-o", "sum", "it.sonde", "it.trace"], "`sonde trace info it.trace`"),
        (
            &["merge", "-o", "sum", "it.sonde", "it.sonde"],
            "it.sonde holds a run that is in the sum already (true,",
        ),
        (&["diff", "it.sonde", "it.trace"], "`sonde trace info it.trace`"),
        (&["trace", "info", "it.sonde"], "a profile, not a trace: `sonde report it.sonde`"),
        (&["trace", "replay", "it.sonde"], "`sonde report it.sonde`"),
        (&["trace", "check", "it.sonde"], "`sonde report it.sonde`"),
        (&["lab", "loops", "--trace", "it.sonde"], "`sonde report it.sonde`"),
        (&["report", "text"], "text: this is not a profile of Sonde"),
        (&["trace", "info", "text"], "text: not a trace file of Sonde"),
    ];
    for (args, words) in cases {
        let done = bench.sonde(args);
        assert_eq!(done.status, Some(2), "{args:?}: {}", done.err);
        assert!(done.err.contains(words), "{args:?}: {}", done.err);
        assert_eq!(done.err.lines().count(), 1, "{args:?}: {}", done.err);
    }
}

#[test]
fn errors_say_what_to_do() {
    let bench = Bench::new();
    script(&bench.path("plain"), "text", 0o644);
    script(&bench.path("odd"), "\x00\x01\x02 no program", 0o755);
    script(&bench.path("loop"), &format!("#!{}\n", bench.path("loop").display()), 0o755);
    let mut elf = std::fs::read("/proc/self/exe").unwrap();
    elf[18] = 183; // AArch64
    std::fs::write(bench.path("arm"), &elf[..4096]).unwrap();
    bench.native(&["chmod", "+x", "arm"]).good();
    script(&bench.path("bare"), "echo hello\n", 0o755);
    script(&bench.path("empty"), "", 0o755);
    std::fs::copy("/bin/true", bench.path("other")).unwrap();
    bench.native(&["chmod", "755", "other"]).good();
    let cases: [(&str, i32, &str); 11] = [
        ("no-such-program", 127, "no such program"),
        ("./no-such-program", 127, "no such program"),
        ("./plain", 126, "chmod +x"),
        ("./", 126, "is a directory; name a program in it"),
        ("/tmp", 126, "is a directory"),
        ("./bare", 126, "run it with its interpreter"),
        ("./empty", 126, "is empty"),
        ("./odd", 126, "not an x86-64"),
        ("./arm", 126, "another machine, AArch64"),
        ("./other/x", 127, "no such program"),
        ("./loop", 126, "interpreter"),
    ];
    for (program, status, words) in cases {
        let done = bench.sonde(&["run", "--", program]);
        assert_eq!(done.status, Some(status), "{program}: {}", done.err);
        assert!(done.err.contains(words), "{program}: {}", done.err);
        assert_eq!(done.err.lines().count(), 1, "{program}: {}", done.err);
    }
}

#[test]
fn programs_of_other_users_rights_are_refused() {
    let bench = Bench::new();
    std::fs::copy("/bin/true", bench.path("set")).unwrap();
    // Only root can give a file to somebody else; as root `mount` and the like are one's own.
    let given = bench.native(&["chown", "12345", "set"]);
    bench.native(&["chmod", "4755", "set"]).good();
    let done = bench.sonde(&["run", "--", "./set"]);
    if given.status == Some(0) {
        assert_eq!(done.status, Some(126), "{}", done.err);
        assert!(done.err.contains("set-user-id") && done.err.contains("as that user"), "{}", done.err);
    } else {
        assert_eq!(done.status, Some(0), "one's own rights are no others: {}", done.err);
    }
}

#[test]
fn usage_is_checked() {
    let bench = Bench::new();
    let wrong: [&[&str]; 14] = [
        &["run"],
        &["run", "--policy", "sometimes", "--", "true"],
        &["run", "--period", "10", "--", "true"],
        &["run", "--burst", "x", "--", "true"],
        &["run", "--burst", "1:2", "--", "true"],
        &["run", "--policy", "always", "--burst", "5", "--", "true"],
        &["run", "--policy", "counter", "--period", "1ms", "--", "true"],
        &["run", "--rate", "1%", "--period", "1ms", "--", "true"],
        &["run", "--max-memory", "1K", "--", "true"],
        &["run", "--probe-memory", "1K", "--", "true"],
        &["run", "--what", "everything", "--", "true"],
        &["run", "--what", "zero-loads", "--record", "addresses", "--", "true"],
        &["run", "--cache", "3K,1M", "--", "true"],
        &["run", "--eps", "0", "--", "true"],
    ];
    for args in wrong {
        let done = bench.sonde(args);
        assert_eq!(done.status, Some(2), "{args:?}: {}", done.err);
        assert!(!done.err.is_empty() && done.out.is_empty(), "{args:?}");
    }
}

#[test]
fn a_trace_that_cannot_be_written_stops_before_the_program_runs() {
    let bench = Bench::new();
    let done = bench.sonde(&["run", "-o", "/no/such/folder/trace", "--", "touch", "ran"]);
    assert!(done.status != Some(0) && done.err.contains("/no/such/folder/trace"), "{}", done.err);
    assert!(!bench.path("ran").exists());
}
