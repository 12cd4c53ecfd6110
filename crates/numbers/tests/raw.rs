//! Binary input, whole and torn, however the reads fall.

use std::io::{self, Read};

use sonde_numbers::{Collect, OnBad, ReadError, Reason, read_raw};

/// Hands out a few bytes at a time, so that words come in pieces.
struct Trickle<'a>(&'a [u8], usize);

impl Read for Trickle<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let count = self.1.min(self.0.len()).min(room.len());
        let (now, later) = self.0.split_at(count);
        room[..count].copy_from_slice(now);
        self.0 = later;
        Ok(count)
    }
}

#[test]
fn words_come_whole_however_they_are_read() {
    let words: Vec<u64> = (0..100_000u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    for step in [1, 7, 8, 13, 1 << 20] {
        let mut seen = Collect::<u64>::default();
        let counts = read_raw("r", Trickle(&bytes, step), OnBad::Stop, &mut seen).unwrap();
        assert_eq!(seen.keys, words);
        assert_eq!((counts.numbers, counts.bytes), (100_000, 800_000));
    }
}

#[test]
fn narrow_words_and_pairs() {
    let bytes = [1u8, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0x80];
    let mut narrow = Collect::<u32>::default();
    read_raw("r", &bytes[..], OnBad::Stop, &mut narrow).unwrap();
    assert_eq!(narrow.keys, [1, 2, 3, 0x8000_0000]);
    let mut pairs = Collect::<[u32; 2]>::default();
    read_raw("r", &bytes[..], OnBad::Stop, &mut pairs).unwrap();
    assert_eq!(pairs.keys, [[1, 2], [3, 0x8000_0000]]);
}

#[test]
fn a_torn_word_is_an_error_or_counted() {
    let mut seen = Collect::<u64>::default();
    let error = read_raw("r", &[0u8; 21][..], OnBad::Stop, &mut seen).unwrap_err();
    assert!(matches!(error, ReadError::Torn { bytes: 21, width: 8, extra: 5, .. }), "{error}");
    let mut seen = Collect::<u64>::default();
    let counts = read_raw("r", &[0u8; 21][..], OnBad::Skip, &mut seen).unwrap();
    assert_eq!((counts.numbers, counts.bad_lines, seen.keys.len()), (2, 1, 2));
    assert_eq!(counts.first_bad.unwrap().reason, Reason::TornWord { width: 8, extra: 5 });
}
