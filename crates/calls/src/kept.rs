//! What is counted while a thread is followed.

use crate::code::Code;
use crate::contexts::{Contexts, ROOT};
use crate::profile::CallProfile;
use crate::steps::{Last, Steps, Stub};
use crate::thread::{Pending, Returned, Thread};
use rustc_hash::FxHashMap;
use sonde_symbol::{Piece, PieceKind};

/// How often, and what it weighs.
#[derive(Clone, Copy, Default)]
pub struct Tally {
    /// How often.
    pub count: u64,
    /// Weight of all.
    pub weight: u64,
}

impl Tally {
    /// Once more.
    pub fn add(&mut self, weight: u64) {
        self.count += 1;
        self.weight += weight;
    }
}

/// What grows with what is seen.
pub struct Kept {
    /// The calling-context tree.
    pub contexts: Contexts,
    /// By site and callee.
    pub pairs: FxHashMap<(u64, u64), Tally>,
    /// By entry.
    pub functions: FxHashMap<u64, Tally>,
    /// What code lies where.
    pub code: Code,
    /// Where computed jumps went: what is there, and whether a function begins.
    targets: FxHashMap<u64, (Option<Piece>, bool)>,
    /// The function around each place that a call returns to, for jumps back there (longjmp).
    backs: FxHashMap<u64, u64>,
    /// Weight that regions get from passes that ended without a branch.
    pub carried: FxHashMap<u64, Tally>,
    most: usize,
    sampled: bool,
    /// Totals; its lists are filled in at the end.
    pub totals: CallProfile,
}

impl Kept {
    /// With at most so many contexts, and so many pairs and functions; contexts weigh the time of samples or what they executed.
    pub fn new(contexts: usize, most: usize, sampled: bool) -> Kept {
        Kept {
            contexts: Contexts::new(contexts, sampled),
            sampled,
            pairs: FxHashMap::default(),
            functions: FxHashMap::default(),
            code: Code::default(),
            targets: FxHashMap::default(),
            backs: FxHashMap::default(),
            carried: FxHashMap::default(),
            most,
            totals: CallProfile::default(),
        }
    }

    /// A thread went this way. Its instructions are added up at the end, by exit.
    pub fn pass(&mut self, thread: &mut Thread, steps: &Steps, weight: u64) {
        self.arrive(thread, steps, weight);
        self.carry(thread, steps, weight);
        let mut done = 0;
        for turn in &steps.turns {
            self.contexts.executed(thread.context, u64::from(turn.insns - done), weight);
            done = turn.insns;
            thread.pending = pending(turn.last);
            // A callee behind a stub is not known yet.
            if !(turn.to_stub && thread.pending.calls()) {
                self.go(thread, turn.target, weight);
            }
        }
        self.contexts.executed(thread.context, u64::from(steps.insns - done), weight);
        if !thread.pending.calls() {
            thread.pending = pending(steps.last);
        }
    }

    /// A call through a stub is a call to where the stub jumps.
    fn arrive(&mut self, thread: &mut Thread, steps: &Steps, weight: u64) {
        if !thread.pending.calls() || steps.stub == Stub::No {
            return self.go(thread, steps.pc, weight);
        }
        if steps.stub == Stub::Binding {
            thread.pending.bind();
        }
    }

    fn go(&mut self, thread: &mut Thread, target: u64, weight: u64) {
        match std::mem::replace(&mut thread.pending, Pending::None) {
            Pending::None => {}
            Pending::Jump { site, within, indirect } => {
                // Most computed jumps are those of a `switch`.
                if !(within.0..within.1).contains(&target) {
                    self.jumped(thread, site, indirect, target, weight);
                }
            }
            Pending::Call { site, back, binding } => {
                let caller = thread.context;
                self.call(thread, site, back, target, weight);
                if binding {
                    thread.binds(site, caller);
                }
            }
            Pending::Tail { site, binding } => {
                let caller = thread.calls_from();
                self.tail(thread, site, target, weight);
                if binding {
                    thread.binds(Some(site), caller);
                }
            }
            Pending::Return => self.returned(thread, target),
        }
    }

    fn call(&mut self, thread: &mut Thread, site: Option<u64>, back: u64, callee: u64, weight: u64) {
        let caller = self.contexts.function(thread.context);
        let context = self.contexts.enter(thread.context, callee, false);
        self.contexts.called(context, weight);
        thread.push(back, context, callee);
        if site.is_some() && self.backs.len() < self.most {
            self.backs.entry(back).or_insert(caller);
        }
        self.count(site, callee, weight);
    }

    /// A jump from one function to the beginning of another: the callee uses the frame of the caller, and returns for both.
    fn tail(&mut self, thread: &mut Thread, site: u64, callee: u64, weight: u64) {
        // Nothing of what loaded the program is left when that begins.
        let starts = matches!(self.target(callee).0, Some(piece) if piece.kind == PieceKind::Start);
        let caller = if starts { ROOT } else { thread.calls_from() };
        let context = self.contexts.enter(caller, callee, false);
        self.contexts.called(context, weight);
        if starts {
            thread.go_on_as(context, callee)
        } else {
            thread.follow(context, callee)
        }
        self.totals.tail_calls += 1;
        self.count(Some(site), callee, weight);
    }

    /// The callee of a call was looked up, and begins.
    fn bound(&mut self, thread: &mut Thread, site: Option<u64>, caller: u32, callee: u64, weight: u64) {
        let context = self.contexts.enter(caller, callee, false);
        self.contexts.called(context, weight);
        thread.go_on_as(context, callee);
        self.count(site, callee, weight);
    }

    fn count(&mut self, site: Option<u64>, callee: u64, weight: u64) {
        self.totals.calls += 1;
        bounded(&mut self.functions, callee, self.most, &mut self.totals.not_kept.functions, weight);
        if let Some(site) = site {
            bounded(&mut self.pairs, (site, callee), self.most, &mut self.totals.not_kept.pairs, weight);
        }
    }

    fn returned(&mut self, thread: &mut Thread, target: u64) {
        self.totals.returns += 1;
        match thread.pop(target) {
            Returned::To(context) => thread.context = context,
            Returned::Beyond => {
                self.totals.returns_beyond += 1;
                self.begin_around(thread, target);
            }
            // Where an exception is caught nothing was called.
            Returned::Unmatched if self.landed(thread, target) => {}
            Returned::Unmatched => self.totals.returns_unmatched += 1,
        }
    }

    /// A thread goes on at `pc`, in a function whose callers are not known.
    pub fn begin_around(&mut self, thread: &mut Thread, pc: u64) {
        let function = self.code.function(pc);
        let context = self.contexts.enter(ROOT, function, true);
        thread.go_on_as(context, function);
    }

    /// A jump out of its function, or in code of which nothing is known.
    fn jumped(&mut self, thread: &mut Thread, site: u64, indirect: bool, target: u64, weight: u64) {
        let (piece, is_entry) = self.target(target);
        // Without a piece, what was called before is taken for the beginning of a function.
        let current = self.contexts.function(thread.context);
        let is_known = piece.is_none() && current != target && self.functions.contains_key(&target);
        if is_entry || is_known {
            return match thread.bound() {
                Some((site, caller)) => self.bound(thread, site, caller, target, weight),
                None => self.tail(thread, site, target, weight),
            };
        }
        // Back to where a call returns to is `longjmp`: the frames above the function there are gone.
        if !indirect || self.landed(thread, target) {
            return;
        }
        if let Some(function) = self.backs.get(&target) {
            self.totals.unwound += u64::from(thread.unwind(|c| self.contexts.function(c) == *function));
        }
    }

    /// Goes back to the innermost frame of the function that `target` lies in the middle of. Whether there was one.
    fn landed(&mut self, thread: &mut Thread, target: u64) -> bool {
        let Some(piece) = self.target(target).0 else { return false };
        let landed = thread.unwind(|c| self.contexts.function(c) == piece.function);
        self.totals.unwound += u64::from(landed);
        landed
    }

    fn target(&mut self, target: u64) -> (Option<Piece>, bool) {
        if let Some(known) = self.targets.get(&target) {
            return *known;
        }
        let found = self.code.target(target);
        if self.targets.len() < self.most {
            self.targets.insert(target, found);
        }
        found
    }

    /// Code was mapped: what was found of targets may have changed.
    pub fn forget_targets(&mut self) {
        self.targets.clear();
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        let maps = self.pairs.capacity() + self.functions.capacity() + self.carried.capacity();
        maps * size_of::<((u64, u64), Tally)>()
            + self.backs.capacity() * 17
            + self.targets.capacity() * size_of::<(u64, (Option<Piece>, bool))>()
            + self.code.memory_bytes()
            + self.contexts.memory_bytes()
    }

    /// Instructions of passes without a branch belong to the region of the next branch.
    fn carry(&mut self, thread: &mut Thread, steps: &Steps, weight: u64) {
        match steps.branches.first() {
            Some(branch) => {
                if thread.carry > 0 {
                    let carried = self.carried.entry(branch.pc).or_default();
                    carried.count += u64::from(thread.carry);
                    carried.weight += u64::from(thread.carry) * weight;
                }
                thread.carry = steps.tail;
            }
            None => thread.carry = thread.carry.saturating_add(steps.tail),
        }
    }

    /// A thread began at `pc` and was interrupted after so many instructions.
    pub fn cut_short(&mut self, thread: &mut Thread, pc: u64, insns: u32, weight: u64) {
        self.go(thread, pc, weight);
        self.contexts.executed(thread.context, u64::from(insns), weight);
        self.totals.instructions += u64::from(insns);
        self.totals.weight += if self.sampled { 0 } else { u64::from(insns) * weight };
        thread.carry = thread.carry.saturating_add(insns);
    }
}

fn bounded<K: std::hash::Hash + Eq>(
    map: &mut FxHashMap<K, Tally>,
    key: K,
    most: usize,
    not_kept: &mut u64,
    weight: u64,
) {
    if map.len() < most {
        map.entry(key).or_default().add(weight);
    } else {
        match map.get_mut(&key) {
            Some(tally) => tally.add(weight),
            None => *not_kept += 1,
        }
    }
}

fn pending(last: Last) -> Pending {
    match last {
        Last::Call { site, back } => Pending::Call { site: Some(site), back, binding: false },
        Last::Return => Pending::Return,
        Last::IndirectJump { site, within } => Pending::Jump { site, within, indirect: true },
        Last::Jump { site } => Pending::Jump { site, within: (0, 0), indirect: false },
        Last::Tail { site } => Pending::Tail { site, binding: false },
        Last::Other => Pending::None,
    }
}
