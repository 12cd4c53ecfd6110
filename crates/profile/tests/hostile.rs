//! Files made to harm: whatever they say, reading ends soon, with an error and in bounded memory.

mod common;

use proptest::prelude::*;
use sonde_profile::{Limits, Profile, ProfileError};
use sonde_rap::Config;
use std::io::{Read, Write};

const HEAD: &[u8] = b"\x5e\x2a\x4d\x18\x10\0\0\0SONDEPRF\x01\0\0\0\0\0\0\0";

/// A well-formed file around any content.
fn wrapped(content: impl Read) -> Vec<u8> {
    let mut encoder = zstd::stream::write::Encoder::new(HEAD.to_vec(), 1).unwrap();
    std::io::copy(&mut std::io::BufReader::new(content), &mut encoder).unwrap();
    encoder.finish().unwrap()
}

fn read(bytes: &[u8]) -> Result<Profile, ProfileError> {
    Profile::read_from(bytes, &Limits::default())
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

fn part(field: u64, body: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(body.len() as u64), body.to_vec()].concat()
}

fn content() -> Vec<u8> {
    let bytes = common::profile(1, 20, &Config::new()).to_bytes().unwrap();
    zstd::stream::decode_all(&bytes[..]).unwrap()
}

#[test]
fn content_that_unpacks_to_too_much_is_refused() {
    // 1 GiB of unknown parts in a few ten kilobytes.
    let empty = part(99, &[0; 1000]);
    let bomb = wrapped(Repeat { unit: empty, left: 1 << 30, at: 0 });
    assert!(bomb.len() < 1 << 20);
    let error = read(&bomb).unwrap_err();
    assert!(matches!(error, ProfileError::TooLarge { .. }), "{error:?}");
    let tight = Profile::read_from(&wrapped(&content()[..])[..], &Limits { content_bytes: 100 });
    assert!(matches!(tight, Err(ProfileError::TooLarge { limit: 100, .. })), "{tight:?}");
}

struct Repeat {
    unit: Vec<u8>,
    left: u64,
    at: usize,
}

impl Read for Repeat {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = (buffer.len() as u64).min(self.left).min((self.unit.len() - self.at) as u64) as usize;
        buffer[..count].copy_from_slice(&self.unit[self.at..self.at + count]);
        self.at = (self.at + count) % self.unit.len();
        self.left -= count as u64;
        Ok(count)
    }
}

#[test]
fn lengths_that_promise_too_much_are_refused() {
    for length in [1 << 21, 1 << 40, u64::MAX] {
        for field in [1, 2, 3, 4, 99] {
            let promise = [varint(field << 3 | 2), varint(length), vec![0; 10]].concat();
            let error = read(&wrapped(&promise[..])).unwrap_err();
            let refused = matches!(error, ProfileError::TooLarge { .. } | ProfileError::Damaged { .. });
            assert!(refused, "{error:?}");
        }
    }
    let endless = [0xff; 100];
    assert!(matches!(read(&wrapped(&endless[..])), Err(ProfileError::Damaged { .. })));
}

#[test]
fn very_many_small_parts_are_refused() {
    for field in [2, 3, 4, 99] {
        let many = part(field, &[]).repeat(1 << 20);
        let error = read(&wrapped(&many[..])).unwrap_err();
        let refused = matches!(error, ProfileError::TooLarge { .. } | ProfileError::Damaged { .. });
        assert!(refused, "{field}: {error:?}");
    }
}

#[test]
fn parts_of_later_versions_are_passed_over_and_counted() {
    let later = [content(), part(99, b"news"), part(4, &[8, 77])].concat();
    let profile = read(&wrapped(&later[..])).unwrap();
    assert_eq!(profile.unknown_parts, 2);
    assert_eq!(profile.summary, read(&wrapped(&content()[..])).unwrap().summary);
}

#[test]
fn parts_may_come_in_any_order() {
    let content = content();
    let mut parts: Vec<(u64, &[u8])> = Vec::new();
    let mut rest = &content[..];
    while !rest.is_empty() {
        let mut after = rest;
        let key = prost::encoding::decode_varint(&mut after).unwrap();
        let length = prost::decode_length_delimiter(&mut after).unwrap();
        let end = rest.len() - after.len() + length;
        parts.push((key, &rest[..end]));
        rest = &rest[end..];
    }
    // Regions keep their order: it numbers them.
    parts.sort_by_key(|part| std::cmp::Reverse(part.0));
    let shuffled = parts.iter().map(|part| part.1).collect::<Vec<_>>().concat();
    assert_ne!(shuffled, content);
    assert_eq!(read(&wrapped(&shuffled[..])).unwrap(), read(&wrapped(&content[..])).unwrap());
}

#[test]
fn what_cannot_be_true_is_refused() {
    let whole = content();
    // A second head with other totals; the last one counts, as in protobuf.
    let head = part(1, &[2 << 3, 5]);
    let error = read(&wrapped(&[whole.clone(), head].concat()[..])).unwrap_err();
    assert!(matches!(error, ProfileError::Invalid(_)), "{error:?}");
    let twice = read(&wrapped(&[whole.clone(), whole].concat()[..])).unwrap_err();
    assert!(matches!(twice, ProfileError::Damaged { .. } | ProfileError::Invalid(_)), "{twice:?}");
    assert!(matches!(read(&wrapped(&[][..])), Err(ProfileError::Damaged { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut file = HEAD.to_vec();
        file.write_all(&bytes).unwrap();
        let _ = read(&file);
        let _ = read(&wrapped(&bytes[..]));
    }

    #[test]
    fn changed_content_is_answered(at: prop::sample::Index, byte: u8) {
        let mut content = content();
        let at = at.index(content.len());
        content[at] = byte;
        if let Ok(profile) = read(&wrapped(&content[..])) {
            prop_assert_eq!(profile.check(), Ok(()));
        }
    }
}
