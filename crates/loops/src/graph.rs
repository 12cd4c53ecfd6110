//! The code that was executed, as blocks that no branch enters or leaves in the middle. Superblocks overlap and begin
//! anywhere, so blocks are split as their middles turn out to be places to go to.

use crate::natural::{Forest, Rows, natural_loops};
use rustc_hash::{FxHashMap, FxHashSet};
use sonde_event::{Catalog, Class, ExitKind, Insn, Superblock};
use std::collections::BTreeSet;

/// A block: its instructions' pcs, and how it ends.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub insns: Vec<u64>,
    /// Where its last instruction ends.
    pub end: u64,
    /// Whether it has one way to go on (it falls through, jumps or calls).
    pub straight: bool,
    /// Class of its last instruction if that is a branch.
    pub branch: Option<Class>,
    /// Superblocks that run through it.
    members: Vec<u32>,
}

impl Node {
    pub fn pc(&self) -> u64 {
        self.insns[0]
    }

    fn last(&self) -> u64 {
        self.insns[self.insns.len() - 1]
    }
}

/// A block within a superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub node: u32,
    /// Index of its first instruction in the superblock.
    pub first: u16,
}

/// A block was cut in two: `upper` begins at `pc` and was the end of `lower`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Split {
    pub lower: u32,
    pub upper: u32,
    pub pc: u64,
}

/// The blocks and what is known of the ways between them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    pub nodes: Vec<Node>,
    /// Block by the pc of each instruction.
    at: FxHashMap<u64, u32>,
    /// Blocks of each superblock; empty until it is run.
    placed: Vec<Vec<Step>>,
    /// Ways that were taken out of superblocks: pc of the last instruction, and where it went.
    pub jumps: FxHashSet<(u64, u64)>,
    /// Function entries: what was called.
    pub entries: BTreeSet<u64>,
    /// Blocks given up since other code was found in their place.
    pub replaced: u64,
    /// Instructions in all blocks.
    insns: usize,
}

impl Graph {
    /// The block that holds an instruction.
    pub fn find(&self, pc: u64) -> Option<u32> {
        self.at.get(&pc).copied()
    }

    /// The blocks of a superblock, if it was placed.
    #[inline]
    pub fn steps(&self, superblock: u32) -> &[Step] {
        self.placed.get(superblock as usize).map_or(&[], |s| s)
    }

    /// The function entry at or below a pc.
    pub fn entry_of(&self, pc: u64) -> u64 {
        self.entries.range(..=pc).next_back().copied().unwrap_or(0)
    }

    pub fn memory_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
            + self.at.capacity() * 17
            + self.insns * 8
            + self.placed.iter().map(|s| s.capacity() * size_of::<Step>() + 24).sum::<usize>()
            + self.nodes.iter().map(|n| n.members.capacity() * 4).sum::<usize>()
            + self.jumps.capacity() * 17
            + self.entries.len() * 24
    }

    /// Divides a superblock into blocks, old and new. Tells which old ones had to be cut.
    pub fn place(&mut self, index: u32, superblock: &Superblock) -> Vec<Split> {
        let mut splits = Vec::new();
        let mut steps: Vec<Step> = Vec::new();
        let insns = &superblock.insns;
        let mut i = 0;
        while i < insns.len() {
            let known = self.at.get(&insns[i].pc).copied().filter(|n| self.matches(*n, &insns[i..]));
            let (node, len) = match known {
                Some(node) => self.reuse(node, &insns[i..], &mut splits),
                None => self.create(&insns[i..]),
            };
            steps.push(Step { node, first: i as u16 });
            i += len;
        }
        for step in &steps {
            self.nodes[step.node as usize].members.push(index);
        }
        if self.placed.len() <= index as usize {
            self.placed.resize(index as usize + 1, Vec::new());
        }
        self.placed[index as usize] = steps;
        splits
    }

    /// Whether a block's instructions are those that come here; where they are not, other code was mapped there, and
    /// the block is taken out of the map.
    fn matches(&mut self, node: u32, insns: &[Insn]) -> bool {
        let block = &self.nodes[node as usize];
        let from = block.insns.iter().position(|pc| *pc == insns[0].pc).unwrap_or(0);
        let tail = &block.insns[from..];
        let equal = tail.iter().zip(insns).all(|(pc, insn)| *pc == insn.pc);
        let ends = |insn: &Insn| insn.pc.wrapping_add(u64::from(insn.len));
        let whole = insns.len() < tail.len() || ends(&insns[tail.len() - 1]) == block.end;
        let early = insns.iter().take(tail.len().min(insns.len()) - 1).any(|insn| insn.branch);
        if equal && whole && !early {
            return true;
        }
        self.replaced += 1;
        for pc in &self.nodes[node as usize].insns {
            self.at.remove(pc);
        }
        false
    }

    fn reuse(&mut self, node: u32, insns: &[Insn], splits: &mut Vec<Split>) -> (u32, usize) {
        let node = self.split(node, insns[0].pc, splits);
        let len = self.nodes[node as usize].insns.len();
        if insns.len() < len {
            // The superblock ends in the middle.
            let pc = self.nodes[node as usize].insns[insns.len()];
            self.split(node, pc, splits);
            return (node, insns.len());
        }
        (node, len)
    }

    /// The block that begins at `pc`, cut out of `node` if need be.
    fn split(&mut self, node: u32, pc: u64, splits: &mut Vec<Split>) -> u32 {
        let block = &mut self.nodes[node as usize];
        let Some(at) = block.insns.iter().position(|p| *p == pc).filter(|at| *at > 0) else { return node };
        let upper = Node { insns: block.insns.split_off(at), ..block.clone() };
        block.end = pc;
        block.straight = true;
        block.branch = None;
        let new = self.nodes.len() as u32;
        for pc in &upper.insns {
            self.at.insert(*pc, new);
        }
        for member in &upper.members {
            let steps = &mut self.placed[*member as usize];
            let mut i = 0;
            while i < steps.len() {
                if steps[i].node == node {
                    steps.insert(i + 1, Step { node: new, first: steps[i].first + at as u16 });
                    i += 1;
                }
                i += 1;
            }
        }
        self.nodes.push(upper);
        splits.push(Split { lower: node, upper: new, pc });
        new
    }

    fn create(&mut self, insns: &[Insn]) -> (u32, usize) {
        let new = self.nodes.len() as u32;
        let mut pcs = Vec::new();
        let mut end = 0;
        let mut branch = None;
        for insn in insns {
            if self.at.contains_key(&insn.pc) {
                break;
            }
            self.at.insert(insn.pc, new);
            pcs.push(insn.pc);
            end = insn.pc.wrapping_add(u64::from(insn.len));
            if insn.branch {
                branch = Some(insn.class);
                break;
            }
        }
        let straight = !matches!(branch, Some(Class::Conditional | Class::IndirectJump | Class::Return));
        let len = pcs.len();
        self.insns += len;
        self.nodes.push(Node { insns: pcs, end, straight, branch, members: Vec::new() });
        (new, len)
    }

    /// Adds what the descriptions show beyond what was run: where branches that were not taken go, if that code is
    /// known. Blocks are cut there.
    pub fn add_static(&mut self, catalog: &Catalog) -> Vec<Split> {
        let mut splits = Vec::new();
        for (index, superblock) in catalog.superblocks().iter().enumerate() {
            if self.steps(index as u32).is_empty() {
                continue;
            }
            for exit in superblock.first_exit..superblock.first_exit + u32::from(superblock.exits) {
                let Some(path) = catalog.path(exit) else { continue };
                let direct = matches!(path.kind, ExitKind::Taken | ExitKind::Jump | ExitKind::Fall);
                let from = (path.insns as usize).checked_sub(1).and_then(|i| superblock.insns.get(i));
                let (true, Some(from)) = (direct, from) else { continue };
                if let Some(node) = self.find(path.target) {
                    self.split(node, path.target, &mut splits);
                    self.jumps.insert((from.pc, path.target));
                }
            }
        }
        splits
    }

    /// All ways between blocks.
    pub fn rows(&self) -> Rows {
        let mut edges: Vec<(u32, u32)> = Vec::new();
        for steps in &self.placed {
            edges.extend(steps.windows(2).map(|w| (w[0].node, w[1].node)));
        }
        for (i, node) in self.nodes.iter().enumerate() {
            // Cut blocks fall through; behind a call the function goes on, unless another begins there.
            let goes_on = match node.branch {
                None => true,
                Some(Class::Call) => !self.entries.contains(&node.end),
                Some(_) => false,
            };
            if let (true, Some(to)) = (goes_on, self.starts(node.end)) {
                edges.push((i as u32, to));
            }
        }
        for (from, to) in &self.jumps {
            if let (Some(from), Some(to)) = (self.find(*from), self.starts(*to)) {
                edges.push((from, to));
            }
        }
        Rows::new(self.nodes.len(), &mut edges)
    }

    fn starts(&self, pc: u64) -> Option<u32> {
        self.find(pc).filter(|n| self.nodes[*n as usize].pc() == pc)
    }

    /// The loops as far as they are known now, with the graph that they were found in.
    pub fn analyse(&self) -> (Forest, Rows) {
        let rows = self.rows();
        let roots: Vec<u32> = self.entries.iter().filter_map(|pc| self.starts(*pc)).collect();
        let forest = natural_loops(&rows, &roots, &self.guesses(&rows));
        (forest, rows)
    }

    /// Where code may have been entered whose entry was not seen, as when recording began in the middle of a function:
    /// first what nothing leads to, then what a backward branch leads to, then anything; low addresses first.
    fn guesses(&self, rows: &Rows) -> Vec<u32> {
        let mut led = vec![false; self.nodes.len()];
        let mut looped = vec![false; self.nodes.len()];
        for (a, b) in rows.edges() {
            led[b as usize] = true;
            looped[b as usize] |= self.nodes[b as usize].pc() <= self.nodes[a as usize].last();
        }
        let mut all: Vec<u32> = (0..self.nodes.len() as u32).collect();
        all.sort_unstable_by_key(|n| {
            let i = *n as usize;
            (led[i], !looped[i], self.nodes[i].pc())
        });
        all
    }
}
