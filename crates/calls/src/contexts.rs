//! The calling-context tree, bounded.

use crate::profile::Context;
use rustc_hash::FxHashMap;

/// The context above all others.
pub const ROOT: u32 = 0;
/// Stands for all contexts that were not kept.
pub const ELSEWHERE: u32 = 1;

/// How far up a repetition of a function is looked for.
const RECURSION: usize = 1024;

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
}

impl Contexts {
    /// With at most so many contexts. With `sampled` they weigh what [`Contexts::sampled`] says.
    pub fn new(most: usize, sampled: bool) -> Contexts {
        let node = |parent| Context { parent, ..Context::default() };
        Contexts {
            nodes: vec![node(ROOT), node(ROOT)],
            children: FxHashMap::default(),
            most: most.max(2),
            sampled,
            not_kept: 0,
        }
    }

    /// The context of `function` called in `from`. A function that is active already is its first activation, so that
    /// recursion does not grow the tree (Ammons, Ball and Larus 1997).
    pub fn enter(&mut self, from: u32, function: u64, around: bool) -> u32 {
        if from == ELSEWHERE {
            self.not_kept += 1;
            return ELSEWHERE;
        }
        if let Some(known) = self.children.get(&(from, function, around)) {
            return *known;
        }
        if self.nodes.len() >= self.most || self.children.len() >= 2 * self.most {
            self.not_kept += 1;
            return ELSEWHERE;
        }
        let to = self.active(from, function).unwrap_or_else(|| {
            self.nodes.push(Context { parent: from, function, around, ..Context::default() });
            self.nodes.len() as u32 - 1
        });
        self.children.insert((from, function, around), to);
        to
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

    /// The function of a context.
    pub fn function(&self, context: u32) -> u64 {
        self.nodes[context as usize].function
    }

    /// A context was called.
    pub fn called(&mut self, context: u32, weight: u64) {
        let node = &mut self.nodes[context as usize];
        node.calls += 1;
        node.calls_weight += weight;
    }

    /// Instructions were executed in a context. They weigh something unless time is sampled.
    #[inline]
    pub fn executed(&mut self, context: u32, instructions: u64, weight: u64) {
        let node = &mut self.nodes[context as usize];
        node.instructions += instructions;
        node.weight += if self.sampled { 0 } else { instructions * weight };
    }

    /// So much time was spent in a context.
    pub fn sampled(&mut self, context: u32, time: u64) {
        self.nodes[context as usize].weight += time;
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
