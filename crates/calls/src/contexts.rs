//! The calling-context tree, bounded.
//!
//! Programs with many functions have more contexts than fit. What happens in one that is not kept is counted for its nearest
//! caller that is, apart from what that did itself: so the time of a function with all that it calls stays right however few
//! contexts are kept. Now and then light ones make room, so that it does not matter which came first.

use crate::profile::Context;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// The context above all others.
pub const ROOT: u32 = 0;
/// Stood for all contexts that were not kept, in older profiles.
pub const ELSEWHERE: u32 = 1;

/// Marks the number of a context: the thread is not in it but in something that it called and that is not kept.
const BEYOND: u32 = 1 << 31;

/// How far up a repetition of a function is looked for.
const RECURSION: usize = 1024;

/// Instructions between two times that room is made, for each context kept: making room is to cost little beside following.
const PAUSE: u64 = 256;

/// The tree while it grows.
pub struct Contexts {
    nodes: Vec<Context>,
    /// Where a call leads: from a context, to a function.
    children: FxHashMap<(u32, u64, bool), u32>,
    most: usize,
    /// Whether weights are those of samples.
    sampled: bool,
    /// Calls into contexts that were not kept.
    pub not_kept: u64,
    /// Instructions so far, and those at which room can be made again.
    instructions: u64,
    shrink_at: u64,
}

impl Contexts {
    /// With at most so many contexts. With `sampled` they weigh what [`Contexts::sampled`] says.
    pub fn new(most: usize, sampled: bool) -> Contexts {
        let node = |parent| Context { parent, ..Context::default() };
        Contexts {
            nodes: vec![node(ROOT), node(ROOT)],
            children: FxHashMap::default(),
            most: most.clamp(2, BEYOND as usize),
            sampled,
            not_kept: 0,
            instructions: 0,
            shrink_at: 0,
        }
    }

    /// The context of `function` called in `from`. A function that is active already is its first activation, so that
    /// recursion does not grow the tree (Ammons, Ball and Larus 1997).
    pub fn enter(&mut self, from: u32, function: u64, around: bool) -> u32 {
        if from & BEYOND != 0 {
            self.not_kept += 1;
            return from;
        }
        if let Some(known) = self.children.get(&(from, function, around)) {
            return *known;
        }
        if self.is_full() {
            self.not_kept += 1;
            return from | BEYOND;
        }
        let to = self.active(from, function).unwrap_or_else(|| {
            self.nodes.push(Context { parent: from, function, around, ..Context::default() });
            self.nodes.len() as u32 - 1
        });
        self.children.insert((from, function, around), to);
        to
    }

    /// Whether a number stands for a context that is not kept, by its nearest caller.
    pub fn is_beyond(context: u32) -> bool {
        context & BEYOND != 0
    }

    fn is_full(&self) -> bool {
        self.nodes.len() >= self.most || self.children.len() >= 2 * self.most
    }

    fn active(&self, from: u32, function: u64) -> Option<u32> {
        let mut at = from;
        for _ in 0..RECURSION {
            if at <= ELSEWHERE {
                return None;
            }
            let node = &self.nodes[at as usize];
            if node.function == function && !node.around {
                return Some(at);
            }
            at = node.parent;
        }
        None
    }

    /// The function of a context; 0 if it is not kept.
    pub fn function(&self, context: u32) -> u64 {
        self.nodes.get(context as usize).map_or(0, |node| node.function)
    }

    /// A context was called.
    pub fn called(&mut self, context: u32, weight: u64) {
        if let Some(node) = self.nodes.get_mut(context as usize) {
            node.calls += 1;
            node.calls_weight += weight;
        }
    }

    /// Instructions were executed in a context. They weigh something unless time is sampled.
    #[inline]
    pub fn executed(&mut self, context: u32, instructions: u64, weight: u64) {
        let node = &mut self.nodes[(context & !BEYOND) as usize];
        node.instructions += instructions;
        let weight = if self.sampled { 0 } else { instructions * weight };
        node.weight += weight;
        if context & BEYOND != 0 {
            node.rest += weight;
        }
        self.instructions += instructions;
    }

    /// So much time was spent in a context.
    pub fn sampled(&mut self, context: u32, time: u64) {
        let node = &mut self.nodes[(context & !BEYOND) as usize];
        node.weight += time;
        node.rest += if context & BEYOND != 0 { time } else { 0 };
    }

    /// Whether it is time to make room.
    #[inline]
    pub fn wants_room(&self) -> bool {
        self.instructions >= self.shrink_at && self.is_full()
    }

    /// Drops the lightest quarter. Returns the new number of every context.
    pub fn make_room(&mut self) -> impl Fn(u32) -> u32 + use<> {
        let keep = self.most / 4 * 3;
        let shrunk = shrink(&self.nodes, keep);
        self.nodes = shrunk.kept;
        self.not_kept += shrunk.calls;
        let numbers = shrunk.numbers;
        let number = move |context: u32| numbers[(context & !BEYOND) as usize] | context & BEYOND;
        let known = std::mem::take(&mut self.children);
        let moved = known
            .into_iter()
            .map(|((from, function, around), to)| ((number(from), function, around), number(to)));
        self.children = moved.filter(|((from, ..), to)| (from | to) & BEYOND == 0).collect();
        self.shrink_at = self.instructions.saturating_add(PAUSE * self.most as u64);
        number
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Context>()
            + self.children.capacity() * (size_of::<((u32, u64, bool), u32)>() + 1)
    }

    /// The tree, parents before children.
    pub fn into_nodes(self) -> Vec<Context> {
        self.nodes
    }
}

/// A smaller tree.
pub(crate) struct Shrunk {
    pub kept: Vec<Context>,
    /// The new number of each context; of one that is gone its nearest caller's, marked.
    numbers: Vec<u32>,
    /// Calls of contexts that are gone.
    pub calls: u64,
}

/// The heaviest contexts, with all they call, as a tree of at most `most` (at least two). What others executed is counted for
/// the nearest of their callers that stays.
pub(crate) fn shrink(nodes: &[Context], most: usize) -> Shrunk {
    let reserved = ELSEWHERE as usize + 1;
    let mut inclusive: Vec<u64> = nodes.iter().map(|c| c.weight).collect();
    for i in (reserved..nodes.len()).rev() {
        let parent = nodes[i].parent as usize;
        inclusive[parent] = inclusive[parent].saturating_add(inclusive[i]);
    }
    let mut order: Vec<usize> = (reserved..nodes.len()).collect();
    // A caller is at least as heavy as what it calls, and comes before it: so what stays is a tree.
    order.sort_unstable_by_key(|i| (Reverse(inclusive[*i]), *i));
    let mut stays = vec![false; nodes.len()];
    let room = most.saturating_sub(reserved);
    (0..reserved.min(nodes.len())).chain(order.into_iter().take(room)).for_each(|i| stays[i] = true);
    let mut shrunk = Shrunk { kept: Vec::new(), numbers: Vec::with_capacity(nodes.len()), calls: 0 };
    for (node, stays) in nodes.iter().zip(stays) {
        if stays {
            shrunk.numbers.push(shrunk.kept.len() as u32);
            let parent = shrunk.numbers[node.parent as usize] & !BEYOND;
            shrunk.kept.push(Context { parent, ..*node });
        } else {
            let caller = shrunk.numbers[node.parent as usize] | BEYOND;
            shrunk.numbers.push(caller);
            let rest = &mut shrunk.kept[(caller & !BEYOND) as usize];
            rest.instructions = rest.instructions.saturating_add(node.instructions);
            rest.weight = rest.weight.saturating_add(node.weight);
            rest.rest = rest.rest.saturating_add(node.weight);
            shrunk.calls = shrunk.calls.saturating_add(node.calls);
        }
    }
    shrunk
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Executes `weight` instructions in every function of some chains of calls.
    fn run(contexts: &mut Contexts, chains: &[(&[u64], u64)]) -> Vec<u32> {
        let go = |(chain, weight): &(&[u64], u64)| {
            let mut at = ROOT;
            for function in *chain {
                at = contexts.enter(at, *function, false);
                contexts.called(at, 1);
                contexts.executed(at, *weight, 1);
            }
            at
        };
        chains.iter().map(go).collect()
    }

    fn inclusive(nodes: &[Context], function: u64) -> u64 {
        let under = |mut i: usize| loop {
            if nodes[i].function == function {
                return true;
            }
            if i <= ELSEWHERE as usize {
                return false;
            }
            i = nodes[i].parent as usize;
        };
        nodes.iter().enumerate().filter(|(i, _)| under(*i)).map(|(_, c)| c.weight).sum()
    }

    #[test]
    fn what_does_not_fit_is_counted_for_the_nearest_caller() {
        let mut contexts = Contexts::new(4, false);
        let at = run(&mut contexts, &[(&[10, 20], 1), (&[10, 20, 30, 40], 5), (&[10, 50], 7)]);
        assert_eq!((contexts.function(at[1]), contexts.function(at[2])), (0, 0));
        assert_eq!(contexts.not_kept, 3);
        let nodes = contexts.into_nodes();
        assert_eq!((inclusive(&nodes, 10), inclusive(&nodes, 20)), (1 + 1 + 20 + 14, 1 + 15));
        let main = nodes.iter().find(|c| c.function == 10).unwrap();
        assert_eq!((main.weight, main.rest), (1 + 5 + 7 + 7, 7), "50 is not what 10 did itself");
    }

    #[test]
    fn heavy_contexts_that_come_late_find_room() {
        let mut contexts = Contexts::new(8, false);
        let cold: Vec<u64> = (100..120).collect();
        for function in &cold {
            run(&mut contexts, &[(&[10, *function], 1)]);
        }
        assert!(contexts.wants_room());
        let number = contexts.make_room();
        let at = run(&mut contexts, &[(&[10, 500], 1000)])[0];
        assert_eq!(contexts.function(at), 500);
        assert_eq!(number(ROOT), ROOT);
        assert!(!contexts.wants_room(), "not again at once");
        let nodes = contexts.into_nodes();
        assert_eq!(inclusive(&nodes, 10), 20 + 20 + 2000);
        assert!(nodes.len() <= 8);
    }
}
