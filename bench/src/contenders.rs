//! The ways to count a stream that are compared: exact, other summaries, the textbook tree, and ours.

use std::hash::Hash;

use datasketches::frequencies::FrequentItemsSketch;
use rustc_hash::FxHashMap;
use sonde_rap::textbook::TextbookTree;
use sonde_rap::{Buffer, Config, Key, Tree};

/// An exact count in the fastest common hash map: what a user would do.
pub fn exact<K: Hash + Eq + Copy>(keys: &[K]) -> u64 {
    let mut counts = FxHashMap::<K, u64>::default();
    keys.iter().for_each(|&key| *counts.entry(key).or_default() += 1);
    counts.len() as u64
}

/// The `datasketches` crate's frequent items, with the map size that gives an error below 1 % (3.5 / 512).
pub fn frequent_items<K: Hash + Eq + Copy>(keys: &[K]) -> u64 {
    let mut sketch = FrequentItemsSketch::new(512).expect("512 is a power of two");
    keys.iter().for_each(|&key| sketch.update(key));
    sketch.num_active_items() as u64
}

/// The textbook tree, default parameters.
pub fn textbook<K: Key>(keys: &[K]) -> u64 {
    let mut tree = TextbookTree::new(Config::new()).expect("the default is valid");
    tree.add_slice(keys);
    tree.events()
}

/// Our tree with default options, buffered events flushed.
pub fn ours<K: Key>(keys: &[K]) -> u64 {
    ours_with(keys, Buffer::Auto)
}

/// Our tree with another buffer.
pub fn ours_with<K: Key>(keys: &[K], buffer: Buffer) -> u64 {
    let mut tree = Tree::new(Config::new().buffer(buffer)).expect("a valid configuration");
    tree.add_slice(keys);
    tree.finish();
    tree.events()
}
