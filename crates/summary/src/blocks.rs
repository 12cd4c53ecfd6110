//! Which blocks are kept one by one, and what becomes of the others: large programs have more than are worth a line each,
//! but what they weigh together is not little.

use crate::summary::BlockWeight;
use std::cmp::Reverse;

/// Light blocks that begin in the same stretch of this many bytes become one, to begin with.
const STRETCH: u64 = 256;

/// Leaves at most `most` blocks (at least 2): the heavier ones as they are; of the others, neighbours are added up. Blocks are,
/// and stay, in the order of their places. Returns how many there are fewer.
pub fn add_up_light(blocks: &mut Vec<BlockWeight>, most: usize) -> u64 {
    let (before, most) = (blocks.len(), most.max(2));
    if before <= most {
        return 0;
    }
    let mut order: Vec<u32> = (0..before as u32).collect();
    let key = |i: &u32| (Reverse(blocks[*i as usize].weight), *i);
    order.select_nth_unstable_by_key(most / 2, key);
    let mut heavy = vec![false; before];
    order[..most / 2].iter().for_each(|i| heavy[*i as usize] = true);
    let mut stretch = STRETCH;
    let fewer = loop {
        let fewer = together(blocks, &heavy, stretch);
        // The widest stretch is everything, and one block is left of it.
        if fewer.len() <= most || stretch > u64::MAX / 2 {
            break fewer;
        }
        stretch *= 2;
    };
    *blocks = fewer;
    (before - blocks.len()) as u64
}

fn together(blocks: &[BlockWeight], heavy: &[bool], stretch: u64) -> Vec<BlockWeight> {
    let mut fewer: Vec<BlockWeight> = Vec::new();
    // The last light block.
    let mut open: Option<usize> = None;
    for (block, heavy) in blocks.iter().zip(heavy) {
        let same = |i: &usize| fewer[*i].place.0 / stretch == block.place.0 / stretch;
        match open.filter(same).filter(|_| !heavy) {
            Some(i) => {
                let first = &mut fewer[i];
                let end = block.place.0.saturating_add(block.bytes.into());
                let bytes = end.saturating_sub(first.place.0).max(first.bytes.into());
                first.bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
                first.weight = first.weight.saturating_add(block.weight);
            }
            None => {
                if !heavy {
                    open = Some(fewer.len());
                }
                fewer.push(*block);
            }
        }
    }
    // Of several runs there can be blocks of different length in one place.
    fewer.sort_unstable();
    fewer.dedup_by(|next, first| {
        let same = (next.place, next.bytes) == (first.place, first.bytes);
        first.weight = first.weight.saturating_add(if same { next.weight } else { 0 });
        same
    });
    fewer
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_place::Place;

    fn block(place: u64, weight: u64) -> BlockWeight {
        BlockWeight { place: Place(place), bytes: 10, weight }
    }

    #[test]
    fn nothing_is_lost_and_the_heavy_ones_stay() {
        let mut all: Vec<BlockWeight> = (0..10_000).map(|i| block(i * 16, i * 7919 % 1000)).collect();
        let (sum, before) = (all.iter().map(|b| b.weight).sum::<u64>(), all.clone());
        assert_eq!(add_up_light(&mut all, 10_000), 0);
        let gone = add_up_light(&mut all, 2000);
        assert!(all.len() <= 2000 && all.len() as u64 + gone == 10_000);
        assert!(all.is_sorted_by(|a, b| a.place < b.place));
        assert_eq!(all.iter().map(|b| b.weight).sum::<u64>(), sum);
        let exact = before.iter().filter(|b| b.weight >= 901);
        assert!(exact.clone().count() > 900 && exact.clone().all(|b| all.contains(b)));
        // What was added up lies close together.
        assert!(all.iter().filter(|b| b.bytes > 10).all(|b| b.bytes <= 256));
    }

    #[test]
    fn very_few_are_left_if_asked_for() {
        let mut all: Vec<BlockWeight> = (0..50).map(|i| block(i << 50, 1)).collect();
        add_up_light(&mut all, 2);
        assert_eq!(all.iter().map(|b| b.weight).sum::<u64>(), 50);
        assert_eq!(all.len(), 2);
    }
}
