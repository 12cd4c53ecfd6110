//! The interface that every analysis implements, and what it gets to see.

use crate::catalog::{Block, Path, PathSize, Superblock};
use crate::maps::Mapping;
use crate::passes::Passes;
use crate::plain::{PlainRecipe, PlainRef};
use crate::recipe::Recipe;
use sonde_wire::marker::{self, Cause};
use sonde_x64::memory::{Access, Repeat, Value};
use sonde_x64::plan::Insn;

/// A burst begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begin {
    /// Thread.
    pub tid: i32,
    /// Time stamp of the processor.
    pub time: u64,
    /// First pc.
    pub pc: u64,
    /// What the kernel did for the thread when the burst was asked for, if the thread was not in its own code then.
    pub kernel: Option<Kernel>,
}

/// What the kernel does for a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// The system call right before the instruction that the burst begins at.
    Call,
    /// A page fault of that instruction.
    Fault,
}

/// A burst ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Thread.
    pub tid: i32,
    /// Time stamp of the processor.
    pub time: u64,
    /// Why.
    pub cause: Cause,
    /// Where the program goes on natively.
    pub pc: u64,
}

/// A system call was run while recording (in bursts that do not end before it).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syscall {
    /// Thread.
    pub tid: i32,
    /// Its number.
    pub number: u64,
    /// Its result.
    pub result: u64,
    /// Where the program went on.
    pub pc: u64,
}

/// A handler of the program begins while recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Thread.
    pub tid: i32,
    /// The signal.
    pub signal: i32,
    /// The pc that was interrupted.
    pub pc: u64,
}

/// Reads a stream. All methods do nothing unless implemented. Live streams are read by a thread of its own.
pub trait Reader: Send {
    /// A burst begins.
    fn begin(&mut self, _begin: &Begin) {}
    /// The burst of a thread that has just begun stands for this much CPU time, in nanoseconds; told where that changes
    /// during a run.
    fn pace(&mut self, _tid: i32, _period_ns: u64) {}
    /// A path was executed.
    fn run(&mut self, _run: &Run<'_>) {}
    /// Paths were executed, one after the other: tells `run` of each, unless a reader can do better.
    fn passes(&mut self, passes: &Passes<'_>) {
        passes.runs().for_each(|run| self.run(&run));
    }
    /// A burst ends.
    fn end(&mut self, _end: &End) {}
    /// A system call was run.
    fn syscall(&mut self, _syscall: &Syscall) {}
    /// A handler begins.
    fn signal(&mut self, _signal: &Signal) {}
    /// Something was mapped in the program, or grew; `wants_mappings` asks for a look.
    fn mapping(&mut self, _mapping: &Mapping) {}
    /// Whether the reader met addresses that lie in no mapping it was told of. A live source then looks soon, and asks
    /// again after each buffer.
    fn wants_mappings(&self) -> bool {
        false
    }
    /// Which loads need not be recorded any more, if that has changed since it was asked last. A live source that can
    /// leave them out asks after each buffer; references that it leaves out come as not [recorded](Ref::recorded).
    fn unwatched(&mut self) -> Option<Unwatched<'_>> {
        None
    }
    /// A part of the stream is missing here: it was damaged or could not be read.
    fn gap(&mut self) {}
}

/// Loads that need not be recorded: those whose bit is set in a table of [`sonde_wire::unwatched`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unwatched<'a> {
    /// Which hash function.
    pub function: u8,
    /// The table, of [`sonde_wire::unwatched::WORDS`] words.
    pub bits: &'a [u64],
}

/// One pass through a superblock.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// The superblock.
    pub superblock: &'a Superblock,
    /// The way taken through it.
    pub path: &'a Path,
    /// The logged words; word 0 is the header.
    pub words: &'a [u64],
    /// Thread.
    pub tid: i32,
    /// The thread's fs base.
    pub fs_base: u64,
    /// Where the thread went next, if that is known yet.
    pub next_pc: Option<u64>,
}

/// A block and how much of it was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRun {
    /// The block.
    pub block: Block,
    /// Instructions executed; fewer than the block has if it was left by a fault.
    pub insns: u16,
}

/// A memory reference with its address and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ref {
    /// Pc of the instruction.
    pub pc: u64,
    /// Direction.
    pub access: Access,
    /// Bytes of one repetition; 0 if the architecture does not say.
    pub size: u16,
    /// Whether it was recorded. If not, it happened all the same, but nobody wanted to know its address and value.
    pub recorded: bool,
    /// Address, if its form is supported and it was recorded.
    pub address: Option<u64>,
    /// Value, if recorded; of operands wider than 8 bytes the low 8 (see [`Run::wide_value`]).
    pub value: Option<u64>,
    /// How often, for repeated string instructions (may be 0); 1 otherwise.
    pub count: u64,
    /// Part of an atomic read-modify-write: the value is racy.
    pub atomic: bool,
    /// The access may not have happened (masked forms).
    pub conditional: bool,
}

impl<'a> Run<'a> {
    /// The number of the exit taken; none for a pass that was cut short.
    #[inline]
    pub fn exit(&self) -> Option<u32> {
        let header = *self.words.first()? as u32;
        if header < marker::FIRST { header.checked_sub(1) } else { None }
    }

    /// Instructions executed.
    #[inline]
    pub fn instructions(&self) -> u64 {
        u64::from(self.path.insns)
    }

    /// The instructions executed.
    #[inline]
    pub fn insns(&self) -> &'a [Insn] {
        &self.superblock.insns[..self.path.insns as usize]
    }

    /// The blocks executed, in order.
    #[inline]
    pub fn blocks(&self) -> impl Iterator<Item = BlockRun> + 'a {
        let done = self.path.insns;
        self.superblock.blocks[..self.path.blocks as usize]
            .iter()
            .map(move |b| BlockRun { block: *b, insns: b.insns.min(done - b.first) })
    }

    /// How often each repeated string instruction was gone through again, see [`Counts::repetitions`].
    pub fn repetitions(&self) -> impl Iterator<Item = u64> + '_ {
        let made = self.superblock.refs.get(..self.path.refs as usize).unwrap_or(&[]);
        // Copies and comparisons make two references; the second tells nothing new.
        let firsts = made.iter().enumerate().filter(|(i, r)| *i == 0 || made[i - 1].insn != r.insn);
        firsts.filter_map(|(_, r)| match r.repeat {
            Repeat::Once => None,
            Repeat::Counted { before, after } => {
                let left = self.word(after);
                let done = self.word(before).wrapping_sub(left);
                // A comparison that ended it is not followed by a look at what is left.
                Some(if left == 0 { done } else { done.saturating_sub(1) })
            }
        })
    }

    #[inline(always)]
    fn word(&self, index: u16) -> u64 {
        self.words.get(index as usize).copied().unwrap_or(0)
    }

    /// The references made, in order. What is not used of them is not computed.
    #[inline]
    pub fn references(&self) -> impl Iterator<Item = Ref> + '_ {
        let made = self.superblock.recipes.get(..self.path.refs as usize).unwrap_or(&[]);
        made.iter().map(move |r| self.reference(r))
    }

    /// How the references made are computed, in order, if all of them are plain: for readers that look at many passes at
    /// once.
    #[inline]
    pub fn plain_recipes(&self) -> Option<&'a [PlainRecipe]> {
        self.superblock.plain.get(..self.path.refs as usize)
    }

    /// The references made, in order, if all of them are plain: faster than [`Run::references`], which says the same.
    #[inline]
    pub fn plain_references(&self) -> Option<impl ExactSizeIterator<Item = PlainRef> + '_> {
        let made = self.superblock.plain.get(..self.path.refs as usize)?;
        // A return at the end of what is known; it is the last reference if there is one.
        if self.next_pc.is_none() && made.last().is_some_and(PlainRecipe::needs_next_pc) {
            return None;
        }
        let (words, fs_base, next_pc) = (self.words, self.fs_base, self.next_pc.unwrap_or(0));
        Some(made.iter().map(move |recipe| recipe.compute(words, fs_base, next_pc)))
    }

    /// Always inlined: a reader that uses only addresses does not pay for values.
    #[inline(always)]
    fn reference(&self, r: &Recipe) -> Ref {
        Ref {
            pc: r.pc,
            access: r.access,
            size: r.size,
            recorded: r.recorded,
            address: if r.has_address { Some(self.address(r)) } else { None },
            value: self.value(&r.value, r.size),
            count: match r.repeat {
                Repeat::Once => 1,
                Repeat::Counted { before, after } => self.word(before).wrapping_sub(self.word(after)),
            },
            atomic: r.atomic,
            conditional: r.conditional,
        }
    }

    #[inline(always)]
    fn address(&self, r: &Recipe) -> u64 {
        let term = |i: usize| self.word(r.words[i]).wrapping_mul(u64::from(r.scales[i]));
        r.offset.wrapping_add(term(0)).wrapping_add(term(1)).wrapping_add(self.fs_base & r.fs_mask)
    }

    #[inline(always)]
    fn value(&self, value: &Value, size: u16) -> Option<u64> {
        let raw = match *value {
            Value::Unknown | Value::Unrecorded => return None,
            Value::Const(c) => c,
            Value::Word { index, delta } => self.word(index).wrapping_add(delta),
            Value::Words { first, .. } => self.word(first),
            Value::NextPc => self.next_pc?,
        };
        Some(if size < 8 { raw & ((1 << (8 * u32::from(size))) - 1) } else { raw })
    }

    /// All words of the value of reference number `index`, for vector operands; empty if it is not recorded as such.
    pub fn wide_value(&self, index: usize) -> &'a [u64] {
        match self.superblock.refs.get(index).map(|r| r.value) {
            Some(Value::Words { first, count }) => {
                self.words.get(first as usize..first as usize + count as usize).unwrap_or(&[])
            }
            _ => &[],
        }
    }
}

/// Exact totals of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bursts.
    pub bursts: u64,
    /// Superblock passes.
    pub runs: u64,
    /// Blocks.
    pub blocks: u64,
    /// Instructions; a repeated string instruction counts once.
    pub instructions: u64,
    /// Times that a repeated string instruction was gone through again: once for each repetition and once more to find
    /// that none is left, less the one in `instructions`. The sum of both is what tools count that execute repetitions
    /// one by one, as valgrind's do. 0 if nothing but blocks was recorded.
    pub repetitions: u64,
    /// Loads; each repetition counts.
    pub loads: u64,
    /// Stores; each repetition counts.
    pub stores: u64,
    /// References whose address form is not supported.
    pub without_address: u64,
    /// References that were not recorded, because nobody wanted them. They are in `loads` and `stores` all the same.
    pub unrecorded: u64,
}

impl Counts {
    /// Adds the totals of another stream.
    pub fn add(&mut self, other: &Counts) {
        crate::add_counts!(Counts {
            bursts, runs, blocks, instructions, repetitions, loads, stores, without_address, unrecorded
        }: self, other);
    }

    /// Blocks and references together.
    pub fn events(&self) -> u64 {
        self.blocks.saturating_add(self.loads).saturating_add(self.stores)
    }
}

/// The reader that counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    /// What was counted so far.
    pub counts: Counts,
}

impl Count {
    /// A pass some of whose references happen several times, or whose addresses are not known.
    fn count_apart(&mut self, run: &Run<'_>) {
        let c = &mut self.counts;
        // A damaged log can claim any number of repetitions.
        c.repetitions = run.repetitions().fold(c.repetitions, u64::saturating_add);
        for r in run.references() {
            match r.access {
                Access::Load => c.loads = c.loads.saturating_add(r.count),
                Access::Store => c.stores = c.stores.saturating_add(r.count),
            }
            c.without_address += u64::from(r.recorded && r.address.is_none());
        }
    }
}

impl Reader for Count {
    fn begin(&mut self, _: &Begin) {
        self.counts.bursts += 1;
    }

    fn run(&mut self, run: &Run<'_>) {
        let c = &mut self.counts;
        c.runs += 1;
        c.blocks += u64::from(run.path.blocks);
        c.instructions += run.instructions();
        c.unrecorded += u64::from(run.path.unrecorded);
        if run.superblock.counts_by_path {
            c.loads = c.loads.saturating_add(u64::from(run.path.loads));
            c.stores = c.stores.saturating_add(u64::from(run.path.refs - run.path.loads));
        } else {
            self.count_apart(run);
        }
    }

    fn passes(&mut self, passes: &Passes<'_>) {
        let (mut blocks, mut insns, mut unrecorded) = (0, 0, 0);
        let (mut loads, mut refs, mut apart) = (0, 0, false);
        for taken in passes.taken() {
            let (size, times) = (passes.size(taken.exit), u64::from(taken.times));
            blocks += times * u64::from(size.blocks);
            insns += times * u64::from(size.insns);
            unrecorded += times * u64::from(size.unrecorded);
            if size.flags & PathSize::BY_PATH != 0 {
                loads += times * u64::from(size.loads);
                refs += times * u64::from(size.refs);
            } else {
                apart = true;
            }
        }
        if apart {
            let is_apart = |exit| passes.size(exit).flags & PathSize::BY_PATH == 0;
            let list = passes.list().iter().enumerate();
            list.filter(|(_, pass)| is_apart(pass.exit))
                .filter_map(|(index, _)| passes.run(index))
                .for_each(|run| self.count_apart(&run));
        }
        let c = &mut self.counts;
        c.runs += passes.list().len() as u64;
        c.blocks += blocks;
        c.instructions += insns;
        c.unrecorded += unrecorded;
        c.loads = c.loads.saturating_add(loads);
        c.stores = c.stores.saturating_add(refs - loads);
    }
}
