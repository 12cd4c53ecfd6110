//! Hashes of pcs: for the two pc filters, which need several independent ones and share them with the recorder, and for
//! tables.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

pub use sonde_wire::unwatched::{FUNCTIONS, hash};

/// 2^64 / golden ratio.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Hashes one word by multiplication. Pcs are not chosen by an enemy.
#[derive(Default)]
pub struct WordHasher(u64);

impl Hasher for WordHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_u64(u64::from(*b)));
    }
    fn write_u64(&mut self, word: u64) {
        let product = (self.0 ^ word).wrapping_mul(FACTOR);
        self.0 = product ^ (product >> 32);
    }
}

/// A map by pc.
pub type PcMap<V> = HashMap<u64, V, BuildHasherDefault<WordHasher>>;
