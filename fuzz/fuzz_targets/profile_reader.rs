//! Any bytes as a profile: reading, checking, merging and comparing must not panic, hang or take much memory.
//!
//! The first byte chooses: raw bytes after a valid head (finds holes around the frame), or any content inside a
//! well-formed frame (finds holes behind the checksum: parts, columns, trees).
#![no_main]

use libfuzzer_sys::fuzz_target;
use sonde_profile::diff::{DiffOptions, Pair};
use sonde_profile::{Limits, MergeOptions, Profile};

const HEAD: &[u8] = b"\x5e\x2a\x4d\x18\x10\0\0\0SONDEPRF\x01\0\0\0\0\0\0\0";

fn read(bytes: &[u8]) {
    let limits = Limits { content_bytes: 1 << 20 };
    let Ok(profile) = Profile::read_from(bytes, &limits) else { return };
    profile.check().expect("what is read has been checked");
    let stored = profile.to_bytes().expect("what was read can be written");
    let again = Profile::read_from(&stored[..], &Limits::default()).expect("what was written can be read");
    let again = Profile { unknown_parts: profile.unknown_parts, ..again };
    assert_eq!(again, profile);
    let mut twice = profile.clone();
    if twice.merge(&profile, &MergeOptions::default()).is_ok() {
        let _ = twice.to_bytes();
    }
    if let Ok(pair) = Pair::new(&profile, &twice, DiffOptions::default()) {
        pair.diff();
    }
}

fuzz_target!(|data: &[u8]| {
    match data {
        [0, rest @ ..] => read(&[HEAD, rest].concat()),
        [_, rest @ ..] => {
            let frame = zstd::stream::encode_all(rest, 1).expect("memory can be written");
            read(&[HEAD, &frame].concat());
        }
        [] => {}
    }
});
