//! The merging-event buffer changes the order of events, never what is counted (section 3.2.1).

use crate::streams::{SHAPES, key, stream, weights};
use crate::subject::{assert_within_bounds, count};
use sonde_rap::{Buffer, Config, Key, Tree};

const BUFFERS: [Buffer; 6] = [
    Buffer::None,
    Buffer::Auto,
    Buffer::Bytes(64),
    Buffer::Bytes(1 << 10),
    Buffer::Bytes(1 << 16),
    Buffer::Unlimited,
];

fn same_with_any_buffer<K: Key>(len: usize) {
    for shape in SHAPES {
        let keys: Vec<K> = stream(shape, len, 21).into_iter().map(key).collect();
        let weights = weights(len, 22);
        let slices: Vec<(K, u64)> = keys.iter().map(|&key| (key, 1)).collect();
        let weighted: Vec<(K, u64)> = keys.iter().copied().zip(weights).collect();
        let all = [slices.as_slice(), &weighted].concat();
        for buffer in BUFFERS {
            let mut tree = Tree::new(Config::new().buffer(buffer)).unwrap();
            keys.chunks(777).for_each(|chunk| tree.add_slice(chunk));
            let name = format!("{buffer:?} {shape:?}");
            assert_within_bounds(&name, &tree.snapshot(), &count(&slices));
            weighted.iter().for_each(|&(key, weight)| tree.add_weighted(key, weight));
            assert_eq!(
                tree.events(),
                all.iter().map(|event| event.1).sum::<u64>(),
                "{name}: buffered events count"
            );
            assert_within_bounds(&name, &tree.snapshot(), &count(&all));
        }
    }
}

#[test]
fn any_buffer_keeps_the_bounds_and_all_events() {
    same_with_any_buffer::<u64>(30_000);
    same_with_any_buffer::<u32>(8_000);
    same_with_any_buffer::<u128>(8_000);
    same_with_any_buffer::<[u64; 2]>(8_000);
    same_with_any_buffer::<[u64; 3]>(4_000);
}

#[test]
fn a_query_sees_events_that_are_still_buffered() {
    for buffer in BUFFERS {
        let mut tree = Tree::<u64>::new(Config::new().buffer(buffer)).unwrap();
        tree.add(7);
        assert_eq!(tree.snapshot().bounds(7, 7).lower, 1, "{buffer:?}");
        tree.add_slice(&[7, 7, 9]);
        assert_eq!(tree.snapshot().bounds(7, 7).lower, 3, "{buffer:?}");
        tree.finish();
        assert_eq!(tree.events(), 4);
    }
}

#[test]
fn an_unlimited_buffer_counts_a_stream_of_equal_events_once() {
    let mut tree = Tree::<u64>::new(Config::new().buffer(Buffer::Unlimited)).unwrap();
    tree.add_slice(&[3; 10_000]);
    assert_eq!(tree.snapshot().bounds(3, 3).lower, 10_000);
}
