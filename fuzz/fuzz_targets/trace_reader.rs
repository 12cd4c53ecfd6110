//! Any bytes as a trace file: reading, replaying and checking must not panic, hang or take much memory.
//!
//! The first byte chooses: raw bytes after a valid head (finds holes in the chunk reader), or words inside well-formed
//! chunks (finds holes behind the checksums: descriptions, planner, decoder, readers).
#![no_main]

use libfuzzer_sys::fuzz_target;
use sonde_event::Count;
use sonde_event::check::Check;
use sonde_event::trace::{End, Meta, TraceReader, TraceWriter, replay};

fn read(bytes: &[u8]) {
    let Ok(mut trace) = TraceReader::new(bytes) else { return };
    let mut readers = (Count::default(), Check::default());
    let _ = replay(&mut trace, &mut readers);
}

/// Cuts bytes into chunks of words: a length, whether it is a log, then the words.
fn wrapped(detail: u8, mut bytes: &[u8]) -> Vec<u8> {
    let detail = ["blocks", "addresses", "values"][detail as usize % 3];
    let meta = Meta { detail: detail.into(), ..Meta::default() };
    let mut writer = TraceWriter::new(Vec::new(), &meta).expect("memory can be written");
    while let [control, rest @ ..] = bytes {
        let len = (usize::from(control >> 1) * 8).min(rest.len());
        let (body, rest) = rest.split_at(len);
        let words: Vec<u64> = body
            .chunks(8)
            .map(|chunk| {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                u64::from_le_bytes(word)
            })
            .collect();
        if control & 1 == 0 { writer.description(&words) } else { writer.log(1, &words) }
        bytes = rest;
    }
    writer.finish(&End::default()).expect("memory can be written")
}

fuzz_target!(|data: &[u8]| {
    match data {
        [0, rest @ ..] => read(&[b"SONDETRC\x01\0\0\0\0\0\0\0", rest].concat()),
        [detail, rest @ ..] => read(&wrapped(*detail, rest)),
        [] => {}
    }
});
