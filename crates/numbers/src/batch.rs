//! Gathers keys so that the consumer gets slices: the cost of a call is paid once per batch, not once per number.

use crate::key::NumberKey;

/// Keys handed on at once: 32 KiB of `u64`, which the first-level cache still holds when the sink reads them.
pub(crate) const BATCH: usize = 4096;

/// Takes the numbers.
pub trait Sink<K> {
    /// Keys that weigh 1 each.
    fn keys(&mut self, keys: &[K]);
    /// Keys with their weights, pairwise.
    fn weighted(&mut self, keys: &[K], weights: &[u64]);
}

/// A sink that keeps everything, for tests and small inputs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Collect<K> {
    /// All keys in order.
    pub keys: Vec<K>,
    /// Their weights, if the input had a weight column.
    pub weights: Vec<u64>,
}

impl<K: Copy> Sink<K> for Collect<K> {
    fn keys(&mut self, keys: &[K]) {
        self.keys.extend_from_slice(keys);
    }
    fn weighted(&mut self, keys: &[K], weights: &[u64]) {
        self.keys.extend_from_slice(keys);
        self.weights.extend_from_slice(weights);
    }
}

/// The batch being filled: plain arrays, so that the hot loop stores without asking for capacity.
pub(crate) struct Batch<K> {
    keys: Vec<K>,
    weights: Vec<u64>,
    len: usize,
}

impl<K: NumberKey> Batch<K> {
    pub(crate) fn new(weighted: bool) -> Self {
        let zero = K::splat(Default::default());
        Batch { keys: vec![zero; BATCH], weights: vec![0; if weighted { BATCH } else { 0 }], len: 0 }
    }

    #[inline]
    pub(crate) fn push(&mut self, key: K, sink: &mut impl Sink<K>) {
        self.keys[self.len] = key;
        self.len += 1;
        if self.len == BATCH {
            self.flush(sink);
        }
    }

    #[inline]
    pub(crate) fn push_weighted(&mut self, key: K, weight: u64, sink: &mut impl Sink<K>) {
        self.weights[self.len] = weight;
        self.push(key, sink);
    }

    /// The free part of the key array; what was written there is handed on by [`Batch::advance`].
    #[inline]
    pub(crate) fn spare(&mut self) -> &mut [K] {
        &mut self.keys[self.len..]
    }

    #[inline]
    pub(crate) fn advance(&mut self, written: usize, sink: &mut impl Sink<K>) {
        self.len += written;
        if self.len == BATCH {
            self.flush(sink);
        }
    }

    #[cold]
    pub(crate) fn flush(&mut self, sink: &mut impl Sink<K>) {
        if self.weights.is_empty() {
            sink.keys(&self.keys[..self.len]);
        } else {
            sink.weighted(&self.keys[..self.len], &self.weights[..self.len]);
        }
        self.len = 0;
    }
}
