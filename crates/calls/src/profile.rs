//! What is left of the control flow of a run: plain data, to be stored, merged and shown.

use crate::contexts::{ELSEWHERE, ROOT, shrink};
use sonde_event::total;
use std::collections::{BTreeMap, HashMap};

/// A hot code region: the instructions that lead up to a branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Region {
    /// The branch that ends it.
    pub branch: u64,
    /// How often the branch was executed.
    pub count: u64,
    /// Instructions since the branch before, added up.
    pub instructions: u64,
    /// Their weight.
    pub weight: u64,
}

/// A branch that was taken backwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backward {
    /// The branch.
    pub branch: u64,
    /// How often.
    pub count: u64,
    /// Weight.
    pub weight: u64,
}

/// A function that was called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Invoked {
    /// Its first instruction.
    pub entry: u64,
    /// Calls.
    pub count: u64,
    /// Weight.
    pub weight: u64,
}

/// A call site and a function called from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pair {
    /// The call instruction.
    pub site: u64,
    /// The function's first instruction.
    pub callee: u64,
    /// Calls.
    pub count: u64,
    /// Weight.
    pub weight: u64,
}

/// A node of the calling-context tree. Number 0 is the root; number 1 stood for contexts that were not kept, and has nothing
/// since their callers stand for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// The caller's context: a smaller number (the root is its own).
    pub parent: u32,
    /// The function's first instruction, or with `around` any instruction of it.
    pub function: u64,
    /// The function was not seen to be entered: the burst began in it, or returned to it.
    pub around: bool,
    /// Calls that led here.
    pub calls: u64,
    /// Their weight.
    pub calls_weight: u64,
    /// Instructions executed in this very context, and in contexts called from it that are not kept.
    pub instructions: u64,
    /// Their weight.
    pub weight: u64,
    /// The part of it that belongs to contexts which are not kept.
    pub rest: u64,
}

/// What did not fit into the limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotKept {
    /// Calls into contexts that were not kept; what they executed is counted for the nearest caller that is.
    pub contexts: u64,
    /// Calls of pairs that were not kept.
    pub pairs: u64,
    /// Calls of functions that were not kept.
    pub functions: u64,
}

/// Who called whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallProfile {
    /// Instructions.
    pub instructions: u64,
    /// Their weight.
    pub weight: u64,
    /// Bursts.
    pub bursts: u64,
    /// Calls.
    pub calls: u64,
    /// Those among them that were jumps from the end of one function to the beginning of another, which returns for both.
    pub tail_calls: u64,
    /// Returns.
    pub returns: u64,
    /// Returns to callers from before the burst.
    pub returns_beyond: u64,
    /// Returns that match no call.
    pub returns_unmatched: u64,
    /// Jumps out of several calls at once (`longjmp`).
    pub unwound: u64,
    /// Parts that longer bursts were weighed in, beyond one each.
    pub split_bursts: u64,
    /// Holes in the stream.
    pub gaps: u64,
    /// By branch address.
    pub regions: Vec<Region>,
    /// By branch address.
    pub backward: Vec<Backward>,
    /// By entry.
    pub functions: Vec<Invoked>,
    /// By site, then callee.
    pub pairs: Vec<Pair>,
    /// Parents before children.
    pub contexts: Vec<Context>,
    /// What did not fit.
    pub not_kept: NotKept,
}

impl Region {
    /// Nothing counted yet.
    pub fn at(branch: u64) -> Region {
        Region { branch, ..Region::default() }
    }
}

impl Backward {
    /// Nothing counted yet.
    pub fn at(branch: u64) -> Backward {
        Backward { branch, ..Backward::default() }
    }
}

/// Unites neighbours with equal keys.
fn unite<T: Copy, K: Ord>(all: &mut Vec<T>, key: impl Fn(&T) -> K, add: impl Fn(&mut T, &T)) {
    all.sort_by_key(|item| key(item));
    all.dedup_by(|next, first| {
        let same = key(next) == key(first);
        if same {
            add(first, next);
        }
        same
    });
}

impl CallProfile {
    /// Puts everything in order and unites what has the same addresses.
    pub(crate) fn sort(&mut self) {
        unite(
            &mut self.regions,
            |r| r.branch,
            |a, b| {
                a.count = a.count.saturating_add(b.count);
                a.instructions = a.instructions.saturating_add(b.instructions);
                a.weight = a.weight.saturating_add(b.weight);
            },
        );
        unite(
            &mut self.backward,
            |b| b.branch,
            |a, b| {
                a.count = a.count.saturating_add(b.count);
                a.weight = a.weight.saturating_add(b.weight);
            },
        );
        unite(
            &mut self.functions,
            |f| f.entry,
            |a, b| {
                a.count = a.count.saturating_add(b.count);
                a.weight = a.weight.saturating_add(b.weight);
            },
        );
        unite(
            &mut self.pairs,
            |p| (p.site, p.callee),
            |a, b| {
                a.count = a.count.saturating_add(b.count);
                a.weight = a.weight.saturating_add(b.weight);
            },
        );
        self.contexts = ordered(&self.contexts);
    }

    /// Replaces every address by what `place` gives for it.
    pub fn relocate(&mut self, place: &mut dyn FnMut(u64) -> u64) {
        self.regions.iter_mut().for_each(|r| r.branch = place(r.branch));
        self.backward.iter_mut().for_each(|b| b.branch = place(b.branch));
        self.functions.iter_mut().for_each(|f| f.entry = place(f.entry));
        for pair in &mut self.pairs {
            (pair.site, pair.callee) = (place(pair.site), place(pair.callee));
        }
        for context in self.contexts.iter_mut().skip(ELSEWHERE as usize + 1) {
            context.function = place(context.function);
        }
        self.sort();
    }

    /// Adds another run.
    pub fn merge(&mut self, other: &CallProfile) {
        self.instructions = self.instructions.saturating_add(other.instructions);
        self.weight = self.weight.saturating_add(other.weight);
        self.bursts = self.bursts.saturating_add(other.bursts);
        self.calls = self.calls.saturating_add(other.calls);
        self.tail_calls = self.tail_calls.saturating_add(other.tail_calls);
        self.returns = self.returns.saturating_add(other.returns);
        self.returns_beyond = self.returns_beyond.saturating_add(other.returns_beyond);
        self.returns_unmatched = self.returns_unmatched.saturating_add(other.returns_unmatched);
        self.unwound = self.unwound.saturating_add(other.unwound);
        self.split_bursts = self.split_bursts.saturating_add(other.split_bursts);
        self.gaps = self.gaps.saturating_add(other.gaps);
        sonde_event::add_counts!(NotKept { contexts, pairs, functions }: &mut self.not_kept, &other.not_kept);
        self.regions.extend(&other.regions);
        self.backward.extend(&other.backward);
        self.functions.extend(&other.functions);
        self.pairs.extend(&other.pairs);
        let shift = self.contexts.len() as u32;
        self.contexts.extend(other.contexts.iter().enumerate().map(|(i, context)| {
            // Both roots, and both contexts that stand for the rest, become one.
            let reserved = i as u32 <= ELSEWHERE || shift == 0;
            let parent = if context.parent <= ELSEWHERE {
                context.parent
            } else {
                context.parent.saturating_add(shift)
            };
            Context { parent: if reserved { context.parent } else { parent }, ..*context }
        }));
        if shift > 0 && other.contexts.len() > ELSEWHERE as usize {
            for reserved in [ROOT, ELSEWHERE] {
                let from = self.contexts[(shift + reserved) as usize];
                add(&mut self.contexts[reserved as usize], &from);
            }
            self.contexts.drain(shift as usize..=(shift + ELSEWHERE) as usize);
            let gone = ELSEWHERE + 1;
            for context in &mut self.contexts[shift as usize..] {
                if context.parent > ELSEWHERE {
                    context.parent -= gone;
                }
            }
        }
        self.sort();
    }

    /// Instructions (weighted) executed in each context and everything called from it, by number.
    pub fn inclusive(&self) -> Vec<u64> {
        let mut all: Vec<u64> = self.contexts.iter().map(|c| c.weight).collect();
        for i in (ELSEWHERE as usize + 1..all.len()).rev() {
            let parent = self.contexts[i].parent as usize;
            all[parent] = all[parent].saturating_add(all[i]);
        }
        if all.len() > ELSEWHERE as usize {
            all[ROOT as usize] = all[ROOT as usize].saturating_add(all[ELSEWHERE as usize]);
        }
        all
    }

    /// Keeps at most so many contexts, those that are heaviest with all they call.
    pub fn keep_contexts(&mut self, most: usize) {
        if self.contexts.len() > most {
            let shrunk = shrink(&self.contexts, most);
            self.not_kept.contexts = self.not_kept.contexts.saturating_add(shrunk.calls);
            self.contexts = shrunk.kept;
        }
    }

    /// The entry of the function that an address lies in, as far as calls tell: the nearest called entry below it.
    pub fn function_of(&self, address: u64) -> u64 {
        let below = self.functions.partition_point(|f| f.entry <= address);
        below.checked_sub(1).map_or(address, |i| self.functions[i].entry)
    }

    /// Whether the numbers fit together.
    pub fn check(&self) -> Result<(), String> {
        let sorted = |ok: bool, what: &str| if ok { Ok(()) } else { Err(format!("{what} are not in order")) };
        sorted(self.regions.is_sorted_by(|a, b| a.branch < b.branch), "regions")?;
        sorted(self.backward.is_sorted_by(|a, b| a.branch < b.branch), "backward branches")?;
        sorted(self.functions.is_sorted_by(|a, b| a.entry < b.entry), "functions")?;
        sorted(self.pairs.is_sorted_by(|a, b| (a.site, a.callee) < (b.site, b.callee)), "call pairs")?;
        let called = total(self.functions.iter().map(|f| f.count));
        if called.saturating_add(self.not_kept.functions) != self.calls {
            return Err(format!("{} calls, but {called} by function", self.calls));
        }
        if self.tail_calls > self.calls {
            return Err(format!("{} calls, but {} by jumps", self.calls, self.tail_calls));
        }
        let executed = total(self.contexts.iter().map(|c| c.instructions));
        if executed != self.instructions {
            return Err(format!("{} instructions, but {executed} by context", self.instructions));
        }
        let weight = total(self.contexts.iter().map(|c| c.weight));
        if weight != self.weight {
            return Err(format!("a weight of {}, but {weight} by context", self.weight));
        }
        let regions = total(self.regions.iter().map(|r| r.instructions));
        if regions > self.instructions {
            return Err(format!("{regions} instructions in regions, of {}", self.instructions));
        }
        if self.contexts.iter().any(|c| c.rest > c.weight) {
            return Err("contexts that are not kept have more weight than their callers with them".into());
        }
        let misplaced = |(i, c): (usize, &Context)| i > ELSEWHERE as usize && c.parent as usize >= i;
        match self.contexts.iter().enumerate().position(misplaced) {
            Some(i) => Err(format!("context {i} comes before its caller")),
            None => Ok(()),
        }
    }
}

fn add(to: &mut Context, from: &Context) {
    to.calls = to.calls.saturating_add(from.calls);
    to.calls_weight = to.calls_weight.saturating_add(from.calls_weight);
    to.instructions = to.instructions.saturating_add(from.instructions);
    to.weight = to.weight.saturating_add(from.weight);
    to.rest = to.rest.saturating_add(from.rest);
}

/// The same tree with equal children united, in preorder, children by address.
fn ordered(contexts: &[Context]) -> Vec<Context> {
    if contexts.is_empty() {
        return Vec::new();
    }
    let mut united: Vec<Context> = contexts[..=ELSEWHERE as usize].to_vec();
    let mut at: HashMap<(u32, u64, bool), u32> = HashMap::new();
    let mut now: Vec<u32> = vec![ROOT, ELSEWHERE];
    for context in &contexts[ELSEWHERE as usize + 1..] {
        let parent = now[context.parent as usize];
        let number = *at.entry((parent, context.function, context.around)).or_insert_with(|| {
            united.push(Context {
                parent,
                function: context.function,
                around: context.around,
                ..Context::default()
            });
            united.len() as u32 - 1
        });
        add(&mut united[number as usize], context);
        now.push(number);
    }
    preorder(&united)
}

fn preorder(contexts: &[Context]) -> Vec<Context> {
    let mut children: BTreeMap<(u32, u64, bool), u32> = BTreeMap::new();
    for (i, c) in contexts.iter().enumerate().skip(ELSEWHERE as usize + 1) {
        children.insert((c.parent, c.function, c.around), i as u32);
    }
    let mut all = contexts[..=ELSEWHERE as usize].to_vec();
    let below = |old: u32| children.range((old, 0, false)..=(old, u64::MAX, true)).rev().map(|(_, i)| *i);
    let mut open: Vec<(u32, u32)> = below(ROOT).map(|i| (i, ROOT)).collect();
    while let Some((old, parent)) = open.pop() {
        let new = all.len() as u32;
        all.push(Context { parent, ..contexts[old as usize] });
        open.extend(below(old).map(|i| (i, new)));
    }
    all
}

#[cfg(test)]
#[path = "profile_tests.rs"]
mod tests;
