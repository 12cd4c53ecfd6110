//! From a pc to its copy: plan, emit, place, describe.

use crate::cache::{CHECKING, Cache, ExitInfo, RECORDING, Superblock, WatchedLoad};
use crate::code_map::{Check, CodeMap};
use crate::filling::Filling;
use crate::in_place::Original;
use crate::state::Engine;
use crate::wanted::Wanted;
use core::sync::atomic::Ordering::{Acquire, Release};
use sonde_wire::Counter;
use sonde_wire::descriptor::{HEAD_WORDS, Head};
use sonde_wire::marker::Cause;
use sonde_x64::emit::{Emitter, Unchecked};
use sonde_x64::flags;
use sonde_x64::memory::{Access, Reference, Repeat, Value};
use sonde_x64::plan::{ExitKind, Plan, Planner, Watch};

/// Everything that translation uses, behind one lock.
pub struct Translator {
    /// The cache.
    pub cache: Cache,
    /// Which code may be copied.
    pub code: CodeMap,
    /// Make plans, by version: where nothing is recorded, where to go is all there is to know.
    pub planners: [Planner; 2],
    /// Emits copies, by version.
    pub emitters: [Emitter; 2],
    /// The plan at hand.
    pub plan: Plan,
    /// Most instructions per superblock.
    pub max_insns: usize,
    /// Counts changes of the program's mappings.
    pub generation: u32,
    /// The table of branches without a check ([`sonde_wire::checks`]).
    pub unchecked: &'static [u32],
    /// Which loads are wanted, where not all are.
    pub wanted: Option<Wanted>,
    /// The pages of the ring of descriptions.
    pub ring: Filling,
}

/// The loads of a plan of which it can change whether they are recorded.
fn watched_loads(plan: &Plan) -> impl Iterator<Item = WatchedLoad> {
    let can_be = |r: &&Reference| {
        let logged = matches!(r.value, Value::Word { .. } | Value::Words { .. } | Value::Unrecorded);
        r.access == Access::Load && r.repeat == Repeat::Once && logged
    };
    plan.refs.iter().filter(can_be).filter_map(|r| {
        let insn = plan.insns.get(r.insn as usize)?;
        Some(WatchedLoad::new(insn.pc, r.recorded))
    })
}

/// Bytes given to the planner at a time.
const FETCH: u64 = 1024;

/// The bytes of code at `pc`, if they may be copied.
pub fn code_at<'a>(code: &mut CodeMap, pc: u64) -> Option<&'a [u8]> {
    let range = code.find(pc)?;
    if !range.cacheable {
        return None;
    }
    let len = (range.end - pc).min(FETCH);
    range.low = range.low.min(pc);
    range.high = range.high.max(pc + len - 1);
    let at = match code.in_place.original(pc, len) {
        Original::Same => pc,
        Original::At(at) => at,
        Original::Unknown => return None,
    };
    // SAFETY: the mapping list says these bytes are mapped readable (executable implies readable on x86-64) and not
    // writable; the list was checked at the begin of the burst. A program that unmaps code while another of its
    // threads runs it would crash on its own. Where Sonde changed the code, the original lies in a mapping of Sonde's.
    Some(unsafe { core::slice::from_raw_parts(at as *const u8, len as usize) })
}

/// The kind of an exit as stored.
pub fn kind_code(kind: ExitKind) -> u8 {
    match kind {
        ExitKind::Taken => 0,
        ExitKind::Jump => 1,
        ExitKind::Call => 2,
        ExitKind::Return => 3,
        ExitKind::IndirectJump => 4,
        ExitKind::IndirectCall => 5,
        ExitKind::Syscall => 6,
        ExitKind::Native => 7,
        ExitKind::Fall => 8,
    }
}

impl Translator {
    /// Exits of all copies made so far: one that is made has some.
    pub fn exits(&self) -> u32 {
        self.cache.next_exit()
    }

    /// The copy of `pc`, made if there is none.
    pub fn copy_of(&mut self, engine: &Engine, pc: u64, version: u8) -> Result<Superblock, Cause> {
        self.look_at_wanted(engine);
        if let Some(sb) = self.cache.find(pc, version) {
            return Ok(sb);
        }
        let began = sonde_sys::time::tsc();
        let made = self.translate(engine, pc, version);
        engine.control().count(Counter::TranslateTicks, sonde_sys::time::tsc().wrapping_sub(began));
        made
    }

    fn translate(&mut self, engine: &Engine, pc: u64, version: u8) -> Result<Superblock, Cause> {
        self.make_plan(pc, version);
        if self.plan.insns.is_empty() {
            return Err(match self.plan.exits.last().map(|e| e.kind) {
                Some(ExitKind::Syscall) => Cause::Syscall,
                Some(ExitKind::Native) if code_at(&mut self.code, pc).is_some() => Cause::Instruction,
                _ => Cause::Code,
            });
        }
        let bytes = self.emitters[version as usize & 1].code.bytes.len();
        let loads = if version == RECORDING { self.plan.refs.len() } else { 0 };
        if !self.cache.has_room(bytes, self.plan.exits.len(), loads) {
            return Err(Cause::CacheFull);
        }
        if version == RECORDING && !self.describe(engine, pc) {
            return Err(Cause::Buffers);
        }
        let emitter = &self.emitters[version as usize & 1];
        let sb = Superblock {
            pc,
            version,
            body: emitter.body as u32,
            quick_entry: emitter.quick_entry,
            after_call: emitter.after_call,
            first_exit: self.cache.next_exit(),
            insns: self.plan.insns.len() as u16,
            exits: self.plan.exits.len() as u16,
            unrecorded: self.plan.unrecorded,
            ..Superblock::default()
        };
        let (links, base) = (&emitter.links, self.cache.next);
        let exits = self.plan.exits.iter().enumerate().map(|(i, e)| {
            let (link, away) = match links.iter().find(|l| l.exit == i) {
                Some(l) => (base + l.at as u64, l.away),
                None => (0, 0),
            };
            ExitInfo { target: e.target, link, away, kind: kind_code(e.kind) }
        });
        let used = u64::from(sb.first_exit) + u64::from(sb.exits);
        engine.control().exits_used.store(used, Release);
        let loads = watched_loads(&self.plan).filter(|_| version == RECORDING);
        let sb = self.cache.add(sb, &emitter.code.bytes, exits, loads, emitter.ways);
        self.expect_return(version);
        let blocks = self.plan.insns.iter().filter(|i| i.branch).count().max(1);
        engine.control().count(Counter::Superblocks, 1);
        engine.control().count(Counter::SuperblockInsns, u64::from(sb.insns));
        engine.control().count(Counter::SuperblockBlocks, blocks as u64);
        engine.control().count(Counter::CodeBytes, bytes as u64);
        self.count_checks(engine, pc, version);
        Ok(sb)
    }

    /// What the table says of the file that the code at `pc` is of. The same for all of one mapping, so that copies come
    /// out the same when they are emitted again, also where a part of the mapping was given other rights since.
    fn unchecked_at(&mut self, pc: u64) -> Option<Unchecked> {
        let range = self.code.find(pc)?;
        let offsets = sonde_wire::checks::find(self.unchecked, range.identity)?;
        Some(Unchecked { base: range.start.wrapping_sub(range.offset), offsets })
    }

    /// Reads the mappings again. Says whether copies have to be forgotten because code that is new has double addresses: what
    /// was taken for a stray jump may come from there now.
    pub fn look_at_code(&mut self) -> bool {
        let changed = self.code.refresh() == Check::Changed;
        let Some(whole) = self.cache.whole.as_mut().filter(|_| changed) else { return false };
        for range in self.code.of_program() {
            whole.open(range.start, range.end);
        }
        self.code.has_doubles()
    }

    /// Whether branches to `pc` may change flags on the way.
    fn has_quick_entry(&mut self, pc: u64, version: u8) -> bool {
        let code = &mut self.code;
        version == CHECKING
            && self.cache.whole.is_some()
            && !code.has_double(pc)
            && flags::are_dead(pc, flags::BY_CMP, &mut |at| code_at(code, at))
    }

    /// The superblock at hand may end in a call: what comes behind it is mostly come to by returns.
    fn expect_return(&mut self, version: u8) {
        let Some(whole) = self.cache.whole.as_mut().filter(|_| version == CHECKING) else { return };
        let is_call = |kind| matches!(kind, ExitKind::Call | ExitKind::IndirectCall);
        if let (Some(exit), Some(insn)) = (self.plan.exits.last(), self.plan.insns.last())
            && is_call(exit.kind)
        {
            whole.expect_return(insn.pc + u64::from(insn.len));
        }
    }

    /// Books the checks of the superblock at hand that were left out.
    fn count_checks(&mut self, engine: &Engine, pc: u64, version: u8) {
        if self.unchecked.is_empty() {
            return;
        }
        let left_out = self.emitters[version as usize & 1].left_out;
        engine.control().count(Counter::ChecksLeftOut, u64::from(left_out));
        if version == CHECKING && self.unchecked_at(pc).is_none() {
            engine.control().count(Counter::NotAnalysed, 1);
        }
    }

    /// Plans and emits the superblock of `pc` for the next place in the cache.
    fn make_plan(&mut self, pc: u64, version: u8) {
        let unchecked = self.unchecked_at(pc).unwrap_or_default();
        let quick_entry = self.has_quick_entry(pc, version);
        let emitter = &mut self.emitters[version as usize & 1];
        emitter.unchecked = unchecked;
        emitter.quick_entry = quick_entry;
        emitter.after_call = self.cache.whole.as_ref().is_some_and(|whole| whole.is_after_call(pc));
        emitter.start(pc, self.cache.next, self.cache.next_exit());
        let code = &mut self.code;
        let mut fetch = |at: u64| code_at(code, at);
        let wanted = self.wanted.as_ref().filter(|_| version == RECORDING);
        let is_wanted = |pc: u64| wanted.is_none_or(|wanted| wanted.wants(pc));
        let watch = if wanted.is_some() { Watch::Loads(&is_wanted) } else { Watch::All };
        self.planners[version as usize & 1].plan_watched(
            pc,
            self.max_insns,
            watch,
            &mut fetch,
            &mut self.plan,
            emitter,
        );
    }

    /// Takes over which loads are wanted, if Sonde changed that. Threads may be anywhere.
    pub fn look_at_wanted(&mut self, engine: &Engine) {
        let Some(wanted) = self.wanted.as_mut().filter(|wanted| wanted.is_outdated(engine.control())) else {
            return;
        };
        let began = sonde_sys::time::tsc();
        wanted.update(engine.control());
        let given_up = self.cache.give_up(&|pc| wanted.wants(pc));
        engine.control().count(Counter::Watched, 1);
        engine.control().count(Counter::Rewatched, given_up as u64);
        engine.control().count(Counter::TranslateTicks, sonde_sys::time::tsc().wrapping_sub(began));
    }

    /// Plans and emits an existing superblock again, to know what lies where in its copy.
    pub fn replan(&mut self, sb: &Superblock) -> &Emitter {
        let unchecked = self.unchecked_at(sb.pc).unwrap_or_default();
        let emitter = &mut self.emitters[sb.version as usize & 1];
        emitter.unchecked = unchecked;
        emitter.quick_entry = sb.quick_entry;
        emitter.after_call = sb.after_call;
        emitter.start(sb.pc, sb.at, sb.first_exit);
        let code = &mut self.code;
        let mut fetch = |at: u64| code_at(code, at);
        // What was recorded when it was made, not what is wanted now.
        let watch = Watch::AllBut(sb.unrecorded);
        let planner = &mut self.planners[sb.version as usize & 1];
        planner.plan_watched(sb.pc, sb.insns as usize, watch, &mut fetch, &mut self.plan, emitter);
        emitter
    }

    /// Publishes the plan at hand for the reader. False if the ring is full.
    fn describe(&mut self, engine: &Engine, pc: u64) -> bool {
        let control = engine.control();
        let code_bytes: u64 = self.plan.segments.iter().map(|s| u64::from(s.1).next_multiple_of(8)).sum();
        let unrecorded = self.plan.unrecorded;
        let head_words = HEAD_WORDS as u64 + u64::from(unrecorded != 0);
        let bytes = (head_words + 2 * self.plan.segments.len() as u64) * 8 + code_bytes;
        let ring = control.regions.descriptors;
        let mut at = control.described.load(Acquire);
        let skip = if at % ring.len + bytes > ring.len { ring.len - at % ring.len } else { 0 };
        if at + skip + bytes - control.descriptions_read.load(Acquire) > ring.len {
            return false;
        }
        let place = |position: u64| (engine.shared as u64 + ring.start + position % ring.len) as *mut u64;
        if skip > 0 {
            // SAFETY: the ring is mapped, and positions are whole words.
            unsafe { *place(at) = 0 };
            at += skip;
        }
        self.ring.reach(place(at) as u64 + bytes);
        let head = Head {
            bytes: bytes as u32,
            first_exit: self.cache.next_exit(),
            pc,
            exits: self.plan.exits.len() as u16,
            insns: self.plan.insns.len() as u16,
            segments: self.plan.segments.len() as u16,
            last_kind: self.plan.exits.last().map_or(0, |e| kind_code(e.kind)),
            unrecorded: unrecorded != 0,
            generation: self.generation,
        };
        let mut to = place(at);
        let mut put = |word: u64| {
            // SAFETY: the record was seen to fit between `at` and the end of the ring.
            unsafe {
                *to = word;
                to = to.add(1);
            }
        };
        head.encode().into_iter().for_each(&mut put);
        if unrecorded != 0 {
            put(unrecorded);
        }
        for (start, len) in &self.plan.segments {
            put(*start);
            put(u64::from(*len));
        }
        for (start, len) in &self.plan.segments {
            let Some(code) = code_at(&mut self.code, *start) else { return false };
            let (words, rest) = code[..*len as usize].as_chunks::<8>();
            words.iter().for_each(|word| put(u64::from_le_bytes(*word)));
            if !rest.is_empty() {
                let mut word = [0u8; 8];
                word[..rest.len()].copy_from_slice(rest);
                put(u64::from_le_bytes(word));
            }
        }
        control.described.store(at + bytes, Release);
        true
    }

    /// New code gets new copies; old copies stay where they are, for threads that have yet to leave them.
    pub fn forget(&mut self, engine: &Engine) {
        self.cache.forget();
        self.code.forget_copies();
        self.generation += 1;
        engine.control().count(Counter::Flushes, 1);
    }

    /// Throws all copies away. No thread may be in them.
    pub fn flush(&mut self, engine: &Engine) {
        self.cache.clear();
        self.code.forget_copies();
        self.generation += 1;
        engine.control().count(Counter::Flushes, 1);
    }
}
