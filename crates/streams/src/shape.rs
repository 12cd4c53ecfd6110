//! What a stream's addresses look like, and what could be done about it.

use crate::symbols::Reference;
use std::collections::BTreeMap;

/// How the addresses of a stream follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shape {
    /// No rule was found.
    #[default]
    Irregular,
    /// Nearly every instruction comes back to the same address.
    Repeated,
    /// Next to each other: each step is at most the size of the access.
    Sequential,
    /// At equal distances.
    Strided {
        /// Bytes from one access to the next; the most frequent, if instructions differ.
        stride: i64,
    },
    /// An address is a pointer that was loaded before, which was itself loaded through such a pointer.
    PointerChasing {
        /// Pointers followed one after the other.
        links: u32,
    },
}

impl Shape {
    /// What prefetching or layout could do, in one sentence.
    pub fn advice(&self) -> &'static str {
        match self {
            Shape::Irregular => {
                "The order repeats though the addresses follow no rule: laying these data out in this order makes it sequential, and the first references predict the others."
            }
            Shape::Repeated => {
                "The same data again and again: they stay in the nearest cache; keeping them in registers is what is left to gain."
            }
            Shape::Sequential => {
                "The processor prefetches this by itself; smaller elements or fewer passes are what is left to gain."
            }
            Shape::Strided { .. } => {
                "Processors prefetch short strides by themselves; for strides beyond a cache line, putting the used fields into an array of their own saves most of the traffic."
            }
            Shape::PointerChasing { .. } => {
                "Each address waits for the load before it: allocating the nodes in this order, or prefetching from the recorded order, hides the misses; so does an array instead of links."
            }
        }
    }
}

/// Values below are no pointers, and no object is assumed to reach further from the pointer to it.
const PAGE: u64 = 4096;
/// Fewer links in a row happen by chance.
const FEWEST_LINKS: u32 = 3;
/// At least one link in this many references.
const REFERENCES_PER_LINK: u32 = 8;

/// Classifies the references of one occurrence, in order. Links are seen only where values were recorded.
pub fn classify(references: &[Reference]) -> Shape {
    let links = links(references);
    if links >= FEWEST_LINKS && links * REFERENCES_PER_LINK >= references.len() as u32 {
        return Shape::PointerChasing { links };
    }
    let mut votes = Votes::default();
    for (steps, size) in steps(references).values() {
        votes.add(steps, *size);
    }
    votes.verdict()
}

/// The longest chain of loads in which each gives the address of the next.
fn links(references: &[Reference]) -> u32 {
    let mut depth = vec![0u32; references.len()];
    for j in 0..references.len() {
        for i in 0..j {
            if let Some(pointer) = references[i].loaded
                && pointer >= PAGE
                && references[j].address.wrapping_sub(pointer) < PAGE
            {
                depth[j] = depth[j].max(depth[i] + 1);
            }
        }
    }
    depth.into_iter().max().unwrap_or(0)
}

/// Steps from address to address, by instruction; all together if most instructions come once (an unrolled loop).
fn steps(references: &[Reference]) -> BTreeMap<u64, (Vec<i64>, u16)> {
    let by_pc = steps_by(references, |r| r.pc);
    let known: usize = by_pc.values().map(|(steps, _)| steps.len()).sum();
    if known * 2 < references.len() { steps_by(references, |_| 0) } else { by_pc }
}

fn steps_by(references: &[Reference], key: impl Fn(&Reference) -> u64) -> BTreeMap<u64, (Vec<i64>, u16)> {
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    let mut steps: BTreeMap<u64, (Vec<i64>, u16)> = BTreeMap::new();
    for r in references {
        if let Some(before) = last.insert(key(r), r.address) {
            let entry = steps.entry(key(r)).or_default();
            entry.0.push(r.address.wrapping_sub(before) as i64);
            entry.1 = entry.1.max(r.size);
        }
    }
    steps
}

/// The steps of all instructions, by what they are.
#[derive(Default)]
struct Votes {
    same: usize,
    near: usize,
    far: BTreeMap<i64, usize>,
    none: usize,
}

impl Votes {
    /// An instruction has a stride if three quarters of its moves are that far.
    fn add(&mut self, steps: &[i64], size: u16) {
        let mut moves: BTreeMap<i64, usize> = BTreeMap::new();
        for step in steps.iter().filter(|s| **s != 0) {
            *moves.entry(*step).or_default() += 1;
        }
        let moved: usize = moves.values().sum();
        self.same += steps.len() - moved;
        let Some((stride, times)) = moves.into_iter().max_by_key(|(_, times)| *times) else { return };
        if times * 4 < moved * 3 {
            self.none += moved;
        } else if stride.unsigned_abs() <= u64::from(size) {
            self.near += moved;
        } else {
            *self.far.entry(stride).or_default() += moved;
        }
    }

    fn verdict(&self) -> Shape {
        let far: usize = self.far.values().sum();
        let moved = self.near + far + self.none;
        if moved * 10 <= self.same {
            return if self.same > 0 { Shape::Repeated } else { Shape::Irregular };
        }
        if self.none * 4 > moved {
            return Shape::Irregular;
        }
        match self.far.iter().max_by_key(|(_, times)| **times) {
            Some((stride, _)) if far > self.near => Shape::Strided { stride: *stride },
            _ => Shape::Sequential,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(pc: u64, address: u64) -> Reference {
        Reference { pc, address, size: 8, ..Reference::default() }
    }

    fn loading(pc: u64, address: u64, value: u64) -> Reference {
        Reference { loaded: Some(value), ..at(pc, address) }
    }

    #[test]
    fn arrays() {
        let array = |stride: i64| (0..20).map(|i| at(1, (0x10_0000 + i * stride) as u64)).collect::<Vec<_>>();
        assert_eq!(classify(&array(8)), Shape::Sequential);
        assert_eq!(classify(&array(64)), Shape::Strided { stride: 64 });
        assert_eq!(classify(&array(-64)), Shape::Strided { stride: -64 });
        assert_eq!(classify(&array(0)), Shape::Repeated);
        // Two arrays of different elements, and a counter in memory.
        let both: Vec<Reference> =
            (0..10).flat_map(|i| [at(1, 0x1000 + 8 * i), at(2, 0x9000 + 4 * i), at(3, 0x77)]).collect();
        assert_eq!(classify(&both), Shape::Sequential);
    }

    #[test]
    fn unrolled_code_is_seen_as_a_whole() {
        let unrolled: Vec<Reference> = (0..20).map(|i| at(i, 0x1000 + i * 128)).collect();
        assert_eq!(classify(&unrolled), Shape::Strided { stride: 128 });
    }

    #[test]
    fn lists_need_values() {
        let nodes: Vec<u64> = (0..12u64).map(|i| 0x20_0000 + (i * 7919 % 64) * 0x1000).collect();
        let walk = |values: bool| -> Vec<Reference> {
            let node = |w: &[u64]| {
                let next = if values { loading(2, w[0] + 8, w[1]) } else { at(2, w[0] + 8) };
                [at(1, w[0]), next]
            };
            nodes.windows(2).flat_map(node).collect()
        };
        assert_eq!(classify(&walk(true)), Shape::PointerChasing { links: 10 });
        assert_eq!(classify(&walk(false)), Shape::Irregular);
    }

    #[test]
    fn an_array_of_pointers_is_no_chain() {
        let walk: Vec<Reference> = (0..12u64)
            .flat_map(|i| {
                let target = 0x20_0000 + (i * 7919 % 64) * 0x1000;
                [loading(1, 0x8000 + 8 * i, target), loading(2, target, 5)]
            })
            .collect();
        assert_eq!(classify(&walk), Shape::Irregular);
    }

    #[test]
    fn nothing_is_irregular() {
        assert_eq!(classify(&[]), Shape::Irregular);
        assert_eq!(classify(&[at(1, 1)]), Shape::Irregular);
    }
}
