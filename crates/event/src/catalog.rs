//! The static side: superblocks, their blocks, and the paths that can be taken through them.

use crate::error::StreamError;
use crate::plain::PlainRecipe;
use crate::recipe::Recipe;
use sonde_wire::descriptor::{HEAD_WORDS, Head};
use sonde_x64::memory::{Access, Reference, Repeat, Value};
use sonde_x64::plan::{Detail, ExitKind, Insn, Limits, NoSink, Plan, Planner, Watch};

/// A basic block: instructions up to and including a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The program's pc.
    pub pc: u64,
    /// Bytes.
    pub len: u32,
    /// Index of its first instruction in the superblock.
    pub first: u16,
    /// Instructions.
    pub insns: u16,
}

/// One way through a superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Index of the superblock in the catalog.
    pub superblock: u32,
    /// Why it ends.
    pub kind: ExitKind,
    /// Instructions executed.
    pub insns: u16,
    /// Blocks executed; the last one may be cut short.
    pub blocks: u16,
    /// References made.
    pub refs: u16,
    /// Words of its record.
    pub words: u16,
    /// Next pc, if it is always the same.
    pub target: u64,
    /// Loads among the references (repeated ones count once).
    pub loads: u16,
    /// Loads among them whose value is not recorded.
    pub unknown_loads: u16,
    /// References that happened but are not recorded, because nobody wanted them.
    pub unrecorded: u16,
}

impl Path {
    /// The path that makes these references.
    pub(crate) fn counting(self, refs: &[Reference]) -> Path {
        let count = |of: fn(&&Reference) -> bool| refs.iter().filter(of).count() as u16;
        let is_unknown = |r: &&Reference| {
            r.access == Access::Load && matches!(r.value, Value::Unknown | Value::Unrecorded)
        };
        Path {
            refs: refs.len() as u16,
            loads: count(|r| r.access == Access::Load),
            unknown_loads: count(is_unknown),
            unrecorded: count(|r| !r.recorded),
            ..self
        }
    }
}

/// What every pass by an exit has, in few bytes: readers that look at very many passes stay in the nearest cache with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathSize {
    /// Words of its record; 0 if there is no such exit.
    pub words: u16,
    /// Instructions executed.
    pub insns: u16,
    /// Blocks executed.
    pub blocks: u16,
    /// References made.
    pub refs: u16,
    /// Loads among them.
    pub loads: u16,
    /// Loads among them whose value is not recorded.
    pub unknown_loads: u16,
    /// References that are not recorded.
    pub unrecorded: u16,
    /// [`PathSize::BY_PATH`] and the like.
    pub flags: u16,
}

impl PathSize {
    /// The superblock [counts by path](Superblock::counts_by_path).
    pub const BY_PATH: u16 = 1;
    /// Only the log tells where it leads.
    pub const INDIRECT: u16 = 2;

    fn of(path: &Path, by_path: bool) -> PathSize {
        let indirect = if path.target == 0 { PathSize::INDIRECT } else { 0 };
        PathSize {
            words: path.words,
            insns: path.insns,
            blocks: path.blocks,
            refs: path.refs,
            loads: path.loads,
            unknown_loads: path.unknown_loads,
            unrecorded: path.unrecorded,
            flags: indirect | if by_path { PathSize::BY_PATH } else { 0 },
        }
    }
}

/// A superblock with everything that is known about it.
#[derive(Clone, Debug)]
pub struct Superblock {
    /// The program's pc.
    pub pc: u64,
    /// Number of its first exit.
    pub first_exit: u32,
    /// Exits.
    pub exits: u16,
    /// Generation of the program's mappings in which it was made.
    pub generation: u32,
    /// Instructions.
    pub insns: Vec<Insn>,
    /// Blocks.
    pub blocks: Vec<Block>,
    /// References.
    pub refs: Vec<Reference>,
    /// Whether a reference depends on something other than plain words (repeats, no address).
    pub has_special: bool,
    /// Whether each reference is one load or store, and no address of what is recorded is missing: then paths say how many.
    pub counts_by_path: bool,
    /// The references again, as they are computed.
    pub(crate) recipes: Vec<Recipe>,
    /// And once more, if all of them are plain.
    pub(crate) plain: Vec<PlainRecipe>,
}

/// All superblocks seen, and the paths by exit number.
pub struct Catalog {
    planner: Planner,
    /// Memory for the plan under way: what is kept of it is copied in the size that it has.
    plan: Plan,
    superblocks: Vec<Superblock>,
    paths: Vec<Option<Path>>,
    sizes: Vec<PathSize>,
}

/// More exits than any superblock has.
const MAX_EXITS: usize = 64;
/// Exits whose descriptions may be missing.
const MISSING_EXITS: usize = 1 << 20;

impl Catalog {
    /// An empty catalog for a stream recorded with this detail.
    pub fn new(detail: Detail) -> Catalog {
        Catalog {
            planner: Planner::new(detail, Limits::default()),
            plan: Plan::default(),
            superblocks: Vec::new(),
            paths: Vec::new(),
            sizes: Vec::new(),
        }
    }

    /// The path of an exit number.
    #[inline]
    pub fn path(&self, exit: u32) -> Option<&Path> {
        self.paths.get(exit as usize)?.as_ref()
    }

    /// The size of a pass by an exit.
    #[inline]
    pub fn size(&self, exit: u32) -> PathSize {
        self.sizes.get(exit as usize).copied().unwrap_or_default()
    }

    /// A superblock by its index.
    #[inline]
    pub fn superblock(&self, index: u32) -> Option<&Superblock> {
        self.superblocks.get(index as usize)
    }

    /// The superblock that holds an exit number.
    pub fn superblock_of_exit(&self, exit: u32) -> Option<&Superblock> {
        self.superblock(self.path(exit)?.superblock)
    }

    /// Bytes used, roughly. A catalog grows with the code that is described, not with how often it runs.
    pub fn memory_bytes(&self) -> usize {
        let paths =
            self.paths.capacity() * size_of::<Option<Path>>() + self.sizes.capacity() * size_of::<PathSize>();
        let of = |s: &Superblock| {
            size_of::<Superblock>()
                + s.insns.capacity() * size_of::<Insn>()
                + s.blocks.capacity() * size_of::<Block>()
                + s.refs.capacity() * (size_of::<Reference>() + size_of::<Recipe>())
                + s.plain.capacity() * size_of::<PlainRecipe>()
        };
        paths + self.superblocks.iter().map(of).sum::<usize>()
    }

    /// All superblocks.
    pub fn superblocks(&self) -> &[Superblock] {
        &self.superblocks
    }

    /// Adds one description (whole words, as published by the probe).
    pub fn add(&mut self, words: &[u64]) -> Result<(), StreamError> {
        let index = self.superblocks.len();
        let bad = |what| StreamError::BadDescription { index, what };
        let head: &[u64; HEAD_WORDS] = words.first_chunk().ok_or(bad("shorter than its head"))?;
        let head = Head::decode(head);
        if head.bytes as usize != words.len() * 8 {
            return Err(bad("its length does not match"));
        }
        let (watch, rest) = match words[HEAD_WORDS..].split_first() {
            Some((bits, rest)) if head.unrecorded => (Watch::AllBut(*bits), rest),
            _ => (Watch::All, &words[HEAD_WORDS..]),
        };
        let segments = segments(rest, head.segments as usize).ok_or(bad("its code is cut off"))?;
        let mut plan = std::mem::take(&mut self.plan);
        let mut fetch = |at: u64| {
            // A jump can lead into the middle of an instruction: the segment that begins there goes first.
            let begins = segments.iter().find(|(s, b)| *s == at && !b.is_empty());
            let holds = || segments.iter().find(|(s, b)| at.wrapping_sub(*s) < b.len() as u64);
            let (start, bytes) = begins.or_else(holds)?;
            bytes.get((at - start) as usize..)
        };
        self.planner.plan_watched(head.pc, head.insns as usize, watch, &mut fetch, &mut plan, &mut NoSink);
        let is_as_published =
            plan.insns.len() == head.insns as usize && plan.exits.len() == head.exits as usize;
        let added = match is_as_published {
            true => self.insert(&head, &plan),
            false => Err(bad("its code does not give the plan it was published with")),
        };
        self.plan = plan;
        added
    }

    fn insert(&mut self, head: &Head, plan: &Plan) -> Result<(), StreamError> {
        let index = self.superblocks.len();
        let end = head.first_exit as usize + plan.exits.len();
        // Exits are numbered in the order of descriptions; some of those can be missing (a damaged trace), but a
        // number that is far off would only make us reserve memory for nothing.
        if end > (index + 1) * MAX_EXITS + MISSING_EXITS {
            return Err(StreamError::BadDescription { index, what: "its exit number is out of order" });
        }
        let blocks = blocks_of(&plan.insns);
        if self.paths.len() < end {
            self.paths.resize(end, None);
            self.sizes.resize(end, PathSize::default());
        }
        let by_path = !plan.refs.iter().any(is_counted_apart);
        for (i, exit) in plan.exits.iter().enumerate() {
            let last = i + 1 == plan.exits.len();
            let kind = if last { kind_from(head.last_kind).unwrap_or(exit.kind) } else { exit.kind };
            let path = Path {
                superblock: index as u32,
                kind,
                insns: exit.insns,
                blocks: blocks.iter().filter(|b| b.first < exit.insns).count() as u16,
                refs: exit.refs,
                words: exit.words,
                target: exit.target,
                loads: 0,
                unknown_loads: 0,
                unrecorded: 0,
            };
            let path = path.counting(&plan.refs[..exit.refs as usize]);
            self.sizes[head.first_exit as usize + i] = PathSize::of(&path, by_path);
            self.paths[head.first_exit as usize + i] = Some(path);
        }
        self.superblocks.push(Superblock {
            pc: head.pc,
            first_exit: head.first_exit,
            exits: head.exits,
            generation: head.generation,
            has_special: plan.refs.iter().any(|r| r.repeat != Repeat::Once || r.address.is_none()),
            counts_by_path: by_path,
            plain: PlainRecipe::all(&plan.refs, &plan.insns),
            recipes: plan.refs.iter().map(|r| Recipe::new(r, &plan.insns)).collect(),
            insns: plan.insns.clone(),
            blocks,
            refs: plan.refs.clone(),
        });
        Ok(())
    }
}

fn is_counted_apart(r: &Reference) -> bool {
    r.repeat != Repeat::Once || r.recorded && r.address.is_none()
}

/// The segments of a description: start address and bytes.
fn segments(mut words: &[u64], count: usize) -> Option<Vec<(u64, Vec<u8>)>> {
    if words.len() < 2 * count {
        return None;
    }
    let (table, code) = words.split_at(2 * count);
    words = code;
    let mut segments = Vec::with_capacity(count);
    for entry in table.chunks_exact(2) {
        let len = usize::try_from(entry[1]).ok()?;
        let need = len.div_ceil(8);
        if need > words.len() {
            return None;
        }
        let (mine, rest) = words.split_at(need);
        let mut bytes: Vec<u8> = mine.iter().flat_map(|w| w.to_le_bytes()).collect();
        bytes.truncate(len);
        segments.push((entry[0], bytes));
        words = rest;
    }
    Some(segments)
}

fn blocks_of(insns: &[Insn]) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    for (i, insn) in insns.iter().enumerate() {
        match blocks.last_mut() {
            Some(block) if open => {
                block.len += u32::from(insn.len);
                block.insns += 1;
            }
            _ => blocks.push(Block { pc: insn.pc, len: u32::from(insn.len), first: i as u16, insns: 1 }),
        }
        open = !insn.branch;
    }
    blocks
}

fn kind_from(code: u8) -> Option<ExitKind> {
    const KINDS: [ExitKind; 9] = [
        ExitKind::Taken,
        ExitKind::Jump,
        ExitKind::Call,
        ExitKind::Return,
        ExitKind::IndirectJump,
        ExitKind::IndirectCall,
        ExitKind::Syscall,
        ExitKind::Native,
        ExitKind::Fall,
    ];
    KINDS.get(code as usize).copied()
}
