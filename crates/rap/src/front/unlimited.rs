//! The buffer without a limit: an exact count, the paper's upper bound of what combining can gain (figure 4).

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::key::Key;

/// Multiplies and rotates: keys are numbers, and an attacker who floods one bucket only slows his own profile.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }
    fn write_u32(&mut self, x: u32) {
        self.write_u64(x.into());
    }
    fn write_u64(&mut self, x: u64) {
        self.0 = (self.0.rotate_left(5) ^ x).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    fn write_u128(&mut self, x: u128) {
        self.write_u64(x as u64);
        self.write_u64((x >> 64) as u64);
    }
    fn write_usize(&mut self, x: usize) {
        self.write_u64(x as u64);
    }
    fn finish(&self) -> u64 {
        // The map takes its bucket from the low bits, where a product is weakest.
        self.0.rotate_left(26)
    }
}

/// Every key with its count.
#[derive(Debug, Default)]
pub(crate) struct Unlimited<K>(HashMap<K, u64, BuildHasherDefault<NumberHasher>>);

impl<K: Key> Unlimited<K> {
    pub fn add(&mut self, key: K, weight: u64) {
        *self.0.entry(key).or_default() += weight;
    }

    pub fn bytes(&self) -> usize {
        self.0.capacity() * (size_of::<(K, u64)>() + 1)
    }

    /// Everything, in key order, so that the same events always give the same tree.
    pub fn drain(&mut self) -> Vec<(K, u64)> {
        let mut entries: Vec<_> = self.0.drain().collect();
        entries.sort_unstable();
        entries
    }
}
