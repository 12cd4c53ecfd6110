//! Binary input, whole and torn, however the reads fall.

use std::io::{self, Read};

use sonde_numbers::{Collect, OnBad, ReadError, Reason, Sink, read_raw, read_raw_file};

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

#[test]
fn mapped_files_give_the_same_words() {
    let words: Vec<[u32; 3]> = (0..1_000_000u32).map(|n| [n, n.wrapping_mul(7), !n]).collect();
    let mut bytes: Vec<u8> = words.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
    let path = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&path, &bytes).unwrap();
    let (mut seen, mut passed) = (Collect::<[u32; 3]> { keys: vec![], weights: vec![] }, 0);
    let counts = read_raw_file("m", path.as_file(), OnBad::Stop, &mut seen, |bytes| passed += bytes).unwrap();
    let counts = counts.expect("a file of 12 MB is mapped");
    assert!(seen.keys == words);
    assert_eq!((counts.numbers, counts.bytes, passed), (1_000_000, 12_000_000, 12_000_000));
    bytes.push(1);
    std::fs::write(&path, &bytes).unwrap();
    let torn = read_raw_file("m", path.as_file(), OnBad::Stop, &mut seen, |_| ());
    assert!(matches!(torn, Err(ReadError::Torn { extra: 1, width: 12, .. })), "{torn:?}");
    let counts = read_raw_file("m", path.as_file(), OnBad::Skip, &mut seen, |_| ()).unwrap().unwrap();
    assert_eq!(counts.bad_lines, 1);
}

/// Cuts the file off at the first batch.
struct Cutting<'a>(&'a std::fs::File);

impl Sink<u64> for Cutting<'_> {
    fn keys(&mut self, _: &[u64]) {
        self.0.set_len(4 << 20).unwrap();
    }
    fn weighted(&mut self, _: &[u64], _: &[u64]) {}
}

#[test]
fn a_file_that_becomes_shorter_is_an_error_and_small_ones_are_not_mapped() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(1000).unwrap();
    let unmapped = read_raw_file("s", &file, OnBad::Stop, &mut Collect::<u64>::default(), |_| ()).unwrap();
    assert_eq!(unmapped, None);
    file.set_len(20 << 20).unwrap();
    let cut = read_raw_file("s", &file, OnBad::Stop, &mut Cutting(&file), |_| ()).unwrap_err();
    assert_eq!(cut.to_string(), "s: cannot read: the file became shorter while it was read");
}
