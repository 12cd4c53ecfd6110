//! The reader behind the report: exact counts, code by path, and a range-adaptive tree over data addresses.
//!
//! Code costs one counter per pass: how often each path was taken says all about its blocks, so the tree over code is
//! made at the end. Addresses go to their tree in batches.

use sonde_event::{Begin, Catalog, Count, Counts, End, Reader, Run};
use sonde_rap::{Config, ConfigError, Tree};

/// Largest error of a tree as a share of all events: finer than what is shown.
const EPS: f64 = 0.005;
/// Limit on a tree's memory.
const TREE_BYTES: usize = 16 << 20;
/// Addresses in a batch.
const BATCH: usize = 1 << 13;
/// Repeated string instructions are spread over the bytes that they touch, in steps of this size.
const STEP: u64 = 64;
/// Most steps of one instruction; longer ones take larger steps.
const MOST_STEPS: u64 = 256;

fn config() -> Config {
    Config::new().eps(EPS).max_memory(TREE_BYTES)
}

/// Counts, and keeps what the hot ranges need.
pub struct Ranges {
    count: Count,
    /// How often each path was taken, by exit number.
    paths: Vec<u64>,
    /// Blocks of passes that were cut short: their paths have no number.
    odd: Tree<u64>,
    data: Tree<u64>,
    batch: Vec<u64>,
}

impl Ranges {
    /// Nothing counted yet.
    pub fn new() -> Result<Ranges, ConfigError> {
        Ok(Ranges {
            count: Count::default(),
            paths: Vec::new(),
            odd: Tree::new(config())?,
            data: Tree::new(config())?,
            batch: Vec::with_capacity(BATCH),
        })
    }

    /// What was counted.
    pub fn counts(&self) -> Counts {
        self.count.counts
    }

    /// The tree over data addresses.
    pub fn data(&mut self) -> &mut Tree<u64> {
        self.data.add_slice(&self.batch);
        self.batch.clear();
        &mut self.data
    }

    /// A tree over block pcs, each weighted by the instructions executed in it.
    pub fn code(&mut self, catalog: &Catalog) -> Result<Tree<u64>, ConfigError> {
        let mut tree = Tree::new(config())?;
        for (pc, weight) in self.blocks(catalog) {
            tree.add_weighted(pc, weight);
        }
        // The trees have the same parameters, and passes cut short are one per burst at most.
        tree.merge(&self.odd.snapshot()).expect("trees of the same shape");
        Ok(tree)
    }

    /// Every block executed in a whole pass, with the instructions executed in it.
    pub fn blocks<'a>(&'a self, catalog: &'a Catalog) -> impl Iterator<Item = (u64, u64)> + 'a {
        let taken = self.paths.iter().enumerate().filter(|(_, count)| **count > 0);
        taken.flat_map(|(exit, count)| {
            let path = catalog.path(exit as u32);
            let superblock = path.and_then(|p| catalog.superblock(p.superblock));
            let pair = path.zip(superblock);
            pair.into_iter().flat_map(move |(path, superblock)| {
                let blocks = &superblock.blocks[..path.blocks as usize];
                blocks
                    .iter()
                    .map(move |b| (b.pc, count * u64::from(b.insns.min(path.insns.saturating_sub(b.first)))))
            })
        })
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        self.paths.capacity() * 8 + self.odd.memory_bytes() + self.data.memory_bytes() + BATCH * 8
    }

    #[inline]
    fn add(&mut self, address: u64) {
        self.batch.push(address);
        if self.batch.len() == BATCH {
            self.data.add_slice(&self.batch);
            self.batch.clear();
        }
    }

    fn add_repeated(&mut self, address: u64, count: u64, size: u64) {
        let bytes = count.saturating_mul(size.max(1));
        let step = STEP.max((bytes / MOST_STEPS).next_multiple_of(STEP));
        let mut left = count;
        let each = (step / size.max(1)).max(1);
        let mut at = address;
        while left > 0 {
            let now = left.min(each);
            self.data.add_weighted(at, now);
            left -= now;
            at = at.wrapping_add(step);
        }
    }

    fn count_path(&mut self, run: &Run<'_>) {
        match run.exit() {
            Some(exit) => {
                let exit = exit as usize;
                if exit >= self.paths.len() {
                    self.paths.resize((exit + 1).next_power_of_two(), 0);
                }
                self.paths[exit] += 1;
            }
            None => {
                for block in run.blocks() {
                    self.odd.add_weighted(block.block.pc, u64::from(block.insns));
                }
            }
        }
    }
}

impl Reader for Ranges {
    fn begin(&mut self, begin: &Begin) {
        self.count.begin(begin);
    }

    fn run(&mut self, run: &Run<'_>) {
        self.count.run(run);
        self.count_path(run);
        for r in run.references() {
            match r.address {
                Some(address) if r.count == 1 => self.add(address),
                Some(address) => self.add_repeated(address, r.count, u64::from(r.size)),
                None => {}
            }
        }
    }

    fn end(&mut self, end: &End) {
        self.count.end(end);
    }
}
