//! What is counted while a thread is followed.

use crate::contexts::{Contexts, ROOT};
use crate::profile::CallProfile;
use crate::steps::{Last, Steps};
use crate::thread::{Pending, Returned, Thread};
use rustc_hash::FxHashMap;

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
            self.go(thread, turn.target, weight);
        }
        self.contexts.executed(thread.context, u64::from(steps.insns - done), weight);
        if !matches!(thread.pending, Pending::Call { .. }) || steps.last != Last::IndirectJump {
            thread.pending = pending(steps.last);
        }
    }

    /// A call through a stub is a call to where the stub jumps.
    fn arrive(&mut self, thread: &mut Thread, steps: &Steps, weight: u64) {
        let through = matches!(thread.pending, Pending::Call { .. }) && steps.is_stub();
        if !through {
            self.go(thread, steps.pc, weight);
        }
    }

    fn go(&mut self, thread: &mut Thread, target: u64, weight: u64) {
        match std::mem::replace(&mut thread.pending, Pending::None) {
            Pending::None => {}
            Pending::Jump => self.jumped(thread, target),
            Pending::Call { site, back } => self.call(thread, site, back, target, weight),
            Pending::Return => self.returned(thread, target),
        }
    }

    fn call(&mut self, thread: &mut Thread, site: Option<u64>, back: u64, callee: u64, weight: u64) {
        let caller = self.contexts.function(thread.context);
        let context = self.contexts.enter(thread.context, callee, false);
        self.contexts.called(context, weight);
        thread.push(back, context);
        self.totals.calls += 1;
        bounded(&mut self.functions, callee, self.most, &mut self.totals.not_kept.functions, weight);
        if let Some(site) = site {
            if self.backs.len() < self.most {
                self.backs.entry(back).or_insert(caller);
            }
            bounded(&mut self.pairs, (site, callee), self.most, &mut self.totals.not_kept.pairs, weight);
        }
    }

    fn returned(&mut self, thread: &mut Thread, target: u64) {
        self.totals.returns += 1;
        match thread.pop(target) {
            Returned::To(context) => thread.context = context,
            Returned::Beyond => {
                self.totals.returns_beyond += 1;
                thread.context = self.contexts.enter(ROOT, target, true);
            }
            Returned::Unmatched => self.totals.returns_unmatched += 1,
        }
    }

    /// An indirect jump to where a call returns to is `longjmp`: the frames above the function there are gone.
    fn jumped(&mut self, thread: &mut Thread, target: u64) {
        if let Some(function) = self.backs.get(&target) {
            self.totals.unwound += u64::from(thread.unwind(|c| self.contexts.function(c) == *function));
        }
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
        Last::Call { site, back } => Pending::Call { site: Some(site), back },
        Last::Return => Pending::Return,
        Last::IndirectJump => Pending::Jump,
        Last::Other => Pending::None,
    }
}
