//! How many events any range or box holds, at least and at most.

use crate::key::Key;
use crate::range::Range;
use crate::snapshot::Snapshot;

/// The true number of events lies between the two, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// Counts of all nodes inside.
    pub lower: u64,
    /// Counts of all nodes that overlap.
    pub upper: u64,
}

impl<K: Key> Snapshot<K> {
    /// Bounds for the keys from `lo` to `hi`, both included; in several dimensions for the box between these corners. The
    /// box need not be aligned. An empty one (`lo` above `hi` in some dimension) holds nothing.
    ///
    /// For a range of the tree `upper - lower` is at most `eps_effective * events`. For any other range of numbers it is at
    /// most twice that: what is uncertain lies around its two ends. A box has more edges, each of which may cut through
    /// ranges: the two bounds still hold, with a difference that depends on the data.
    pub fn bounds(&self, lo: K, hi: K) -> Bounds {
        let asked = Range { lo, hi };
        let mut bounds = Bounds { lower: 0, upper: 0 };
        for node in self.nodes.iter().filter(|node| overlap(&asked, &node.range)) {
            bounds.upper = bounds.upper.saturating_add(node.own);
            if asked.contains(&node.range) {
                bounds.lower = bounds.lower.saturating_add(node.own);
            }
        }
        bounds
    }
}

fn overlap<K: Key>(asked: &Range<K>, node: &Range<K>) -> bool {
    (0..K::DIMS).all(|dim| {
        let (lo, hi) = (asked.lo.coordinate(dim), asked.hi.coordinate(dim));
        lo <= hi && lo <= node.hi.coordinate(dim) && node.lo.coordinate(dim) <= hi
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Node};

    fn snapshot<K: Key>(nodes: Vec<Node<K>>) -> Snapshot<K> {
        let events = nodes.iter().map(|node| node.own).sum();
        Snapshot { config: Config::new(), events, eps_effective: 0.01, nodes_max: nodes.len() as u64, nodes }
    }

    #[test]
    fn counts_inside_are_certain_and_counts_across_are_possible() {
        let node = |lo, hi, own| Node { range: Range { lo, hi }, own };
        let tree = snapshot::<u64>(vec![node(0, u64::MAX, 3), node(16, 31, 10), node(17, 17, 100)]);
        assert_eq!(tree.bounds(16, 31), Bounds { lower: 110, upper: 113 });
        assert_eq!(tree.bounds(17, 17), Bounds { lower: 100, upper: 113 });
        assert_eq!(tree.bounds(10, 20), Bounds { lower: 100, upper: 113 });
        assert_eq!(tree.bounds(32, 40), Bounds { lower: 0, upper: 3 });
        assert_eq!(tree.bounds(0, u64::MAX), Bounds { lower: 113, upper: 113 });
        assert_eq!(tree.bounds(40, 32), Bounds { lower: 0, upper: 0 });
    }

    #[test]
    fn boxes_are_compared_by_dimension() {
        let node = |lo, hi, own| Node { range: Range { lo, hi }, own };
        let tree = snapshot::<[u32; 2]>(vec![node([0, 0], [1, 1], 5), node([2, 2], [2, 2], 7)]);
        assert_eq!(tree.bounds([0, 0], [0, 9]), Bounds { lower: 0, upper: 5 });
        assert_eq!(tree.bounds([2, 0], [9, 9]), Bounds { lower: 7, upper: 7 });
        assert_eq!(tree.bounds([0, 3], [9, 0]), Bounds { lower: 0, upper: 0 });
    }
}
