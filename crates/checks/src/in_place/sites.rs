//! Where checks go: the branches that are led through a stub, and the runs of instructions that are replaced.

use super::bodies::{Bodies, Body, Trust, branch_target, is_padding};
use super::flow::{self, Cycles, Group, groups};
use super::special;
use super::stubs::{Run, Stubs};
use super::{Edit, InPlace, Layout, Miss, What};
use crate::module::Module;
use crate::plan::{Entries, Scheme};
use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register, UsedMemory};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Bytes of a jump.
const JUMP: u64 = 5;

/// How far from its top the stack is taken to be there: as far as functions go without asking for more.
const NEAR_TOP: u64 = 128;

/// Plans the checks of a module.
pub fn choose(bodies: &Bodies<'_>, module: &Module, scheme: Scheme, layout: Layout) -> InPlace {
    let fewest = scheme.entries == Entries::Cycles;
    let mut chooser = Chooser {
        bodies,
        module,
        checked: if fewest { module.graph.fewest() } else { scheme.entries_of(module) },
        loops: module.loops.iter().map(|l| (l.branch, scheme.keeps(l))).collect(),
        all_jumps: scheme.boring != Some(u32::MAX),
        fewest,
        at_entry: HashSet::new(),
        stopped: HashSet::new(),
        stubs: Stubs::new(bodies, layout),
        factory: InstructionInfoFactory::new(),
        taken: BTreeMap::new(),
        runs: false,
    };
    let mut body = Vec::new();
    for function in &bodies.functions {
        let starts = chooser.called_from_anywhere(function.start, function.start + function.size);
        if !starts.is_empty() {
            bodies.decode(function, &mut body);
            chooser.entries(function, &starts, &body);
        }
    }
    for functions in groups(bodies) {
        chooser.group(&Group::new(bodies, functions));
    }
    chooser.outside();
    chooser.stubs.finish()
}

struct Chooser<'b, 'd> {
    bodies: &'b Bodies<'d>,
    module: &'b Module,
    /// By function: whether its entry has a check.
    checked: Vec<bool>,
    /// Back-edges within functions, and whether they have a check.
    loops: HashMap<u64, bool>,
    /// Whether indirect jumps have a check.
    all_jumps: bool,
    /// Whether checks are left out that no cycle needs because of others.
    fewest: bool,
    /// Functions that count in their own first instructions.
    at_entry: HashSet<u64>,
    /// Instructions that control does not get past without a check.
    stopped: HashSet<u64>,
    stubs: Stubs<'b, 'd>,
    factory: InstructionInfoFactory,
    /// Runs that are replaced: where they begin and end.
    taken: BTreeMap<u64, u64>,
    /// Whether runs of several instructions may be replaced in this function.
    runs: bool,
}

impl<'b> Chooser<'b, '_> {
    /// Entries that may be reached from anywhere count in their first instructions.
    fn entries(&mut self, function: &Body, starts: &[u64], body: &[Instruction]) {
        self.runs = function.trust == Trust::Runs;
        for start in starts {
            // There may be several entries to what the tables for unwinding take for one function.
            let from = body.binary_search_by_key(start, |insn| insn.ip()).ok();
            let from = from.filter(|_| function.trust != Trust::Nothing);
            if !from.is_some_and(|from| self.place_at_entry(&body[from..])) {
                self.miss(*start, What::Entry);
            }
        }
    }

    /// Functions with a check in a stretch of code that may be called from anywhere.
    fn called_from_anywhere(&self, from: u64, to: u64) -> Vec<u64> {
        let starts = &self.module.starts;
        let range = starts.partition_point(|s| *s < from)..starts.partition_point(|s| *s < to);
        let functions = &self.module.graph.functions;
        range.filter(|f| self.checked[*f] && functions[*f].address_taken).map(|f| starts[f]).collect()
    }

    /// Places a check in the instructions that run whenever a function begins.
    fn place_at_entry(&mut self, body: &[Instruction]) -> bool {
        let Some(start) = body.first().map(|insn| insn.ip()) else { return false };
        let from = usize::from(body.first().is_some_and(|insn| insn.mnemonic() == Mnemonic::Endbr64));
        for i in from..body.len() {
            let insn = &body[i];
            if i > from && self.bodies.is_target(insn.ip()) {
                return false;
            }
            if !self.is_free(insn.ip(), insn.next_ip()) {
                return false;
            }
            if let Some(len) = self.run_from(&body[i..]) {
                let run = &body[i..i + len];
                let to = self.stubs.count_and_run(run);
                self.replace(insn.ip(), run[len - 1].next_ip(), to);
                self.stopped.insert(insn.ip());
                self.at_entry.insert(start);
                return true;
            }
            // A call or jump that always runs can count as well, at what it leads to.
            let always = matches!(insn.flow_control(), FlowControl::Call | FlowControl::UnconditionalBranch);
            if let Some(target) = branch_target(insn).filter(|_| always && is_long(insn)) {
                let to = self.stubs.count_and_go(target);
                self.edit(insn.next_ip() - 4, false, to);
                self.stopped.insert(insn.ip());
                self.at_entry.insert(start);
                return true;
            }
            if !is_movable(insn) {
                return false;
            }
        }
        false
    }

    /// Instructions at the begin that can be replaced by a jump. The last may be a jump.
    fn run_from(&mut self, body: &[Instruction]) -> Option<usize> {
        let first = body.first()?.ip();
        for (i, insn) in body.iter().enumerate() {
            let inner = i > 0;
            if inner && !self.is_inner(insn) {
                return None;
            }
            let long_enough = insn.next_ip() - first >= JUMP;
            if !(is_movable(insn) || long_enough && is_plain_jump(insn)) {
                return None;
            }
            if long_enough {
                return Some(i + 1);
            }
        }
        None
    }

    /// Whether an instruction can be another than the first of a run: nothing leads there, and it does not fault.
    fn is_inner(&mut self, insn: &Instruction) -> bool {
        self.runs && !self.bodies.is_target(insn.ip()) && !self.may_fault(insn)
    }

    /// The instructions around the jump `at` that can be replaced, and where they end.
    fn run_around<'i>(&mut self, body: &'i [Instruction], at: usize) -> Option<(Run<'i>, u64)> {
        let jump = &body[at];
        let mut first = at;
        // What was the first until now is not, and must not fault or be jumped to; the jump itself may fault.
        while jump.next_ip() - body[first].ip() < JUMP {
            let next = &body[first];
            let inner = if first == at {
                self.runs && !self.bodies.is_target(next.ip())
            } else {
                self.is_inner(next)
            };
            let moves = |i: &usize| is_movable(&body[*i]) || body[*i].is_jcc_short();
            let Some(before) = first.checked_sub(1).filter(|i| inner && moves(i)) else { break };
            first = before;
        }
        let mut end = at + 1;
        while end_of(body, end) - body[first].ip() < JUMP {
            let next = body.get(end)?;
            let falls = super::bodies::falls(jump);
            let free = if falls { is_movable(next) && self.is_inner(next) } else { is_padding(next) };
            if !free || !self.runs || self.bodies.is_target(next.ip()) {
                return None;
            }
            end += 1;
        }
        let behind = if super::bodies::falls(jump) { &body[at + 1..end] } else { &[] };
        let free = self.is_free(body[first].ip(), end_of(body, end));
        free.then(|| (Run { before: &body[first..at], jump, behind }, end_of(body, end)))
    }

    /// Whether it uses memory, other than the top of the stack, and to read the module's own data: a fault must come at the first
    /// instruction of a run, so that it can be led back to where it belongs.
    fn may_fault(&mut self, insn: &Instruction) -> bool {
        let faults = matches!(
            insn.mnemonic(),
            Mnemonic::Div | Mnemonic::Idiv | Mnemonic::Hlt | Mnemonic::Into | Mnemonic::Bound
        ) || insn.is_privileged();
        let own = |m: &UsedMemory| insn.is_ip_rel_memory_operand() && m.access() == OpAccess::Read;
        let near_top = |m: &UsedMemory| {
            m.base() == Register::RSP
                && m.index() == Register::None
                && (m.displacement() as i64).unsigned_abs() < NEAR_TOP
        };
        let used = |m: &&UsedMemory| !matches!(m.access(), OpAccess::None | OpAccess::NoMemAccess);
        faults || self.factory.info(insn).used_memory().iter().filter(used).any(|m| !own(m) && !near_top(m))
    }

    /// Direct calls of what does not count itself; then the indirect jumps, and then the jumps back, that are on a cycle.
    fn group(&mut self, group: &Group) {
        for (function, range) in group.functions.iter().zip(&group.ranges) {
            match function.trust {
                Trust::Nothing => self.stubs.out.opaque += 1,
                Trust::Single => self.stubs.out.guarded += 1,
                Trust::Runs => {}
            }
            let understood = function.trust != Trust::Nothing;
            self.stubs.out.uses_gs |= understood && group.code[range.clone()].iter().any(special::uses_gs);
        }
        self.each(group, What::Call, |chooser, _, insn| {
            insn.is_call_near() && branch_target(insn).is_some_and(|target| chooser.counts_at_calls(target))
        });
        if !group.code.iter().any(may_lead_back) {
            return;
        }
        let cycles = self.cycles(group);
        let stopped = self.stopped.len();
        self.each(group, What::Jump, |chooser, function, insn| {
            let leads_back = |to: &u64| cycles.contain(insn.ip(), *to);
            chooser.all_jumps && flow::targets(chooser.bodies, function, insn).iter().any(leads_back)
        });
        let cycles = if self.stopped.len() == stopped { cycles } else { self.cycles(group) };
        self.each(group, What::BackEdge, |chooser, _, insn| chooser.is_back_edge(insn, &cycles));
    }

    /// Entries and calls of code that the tables for unwinding do not know: it is not changed.
    fn outside(&mut self) {
        let functions = &self.bodies.functions;
        let is_inside = |at: u64| {
            let number = functions.partition_point(|f| f.start <= at);
            number > 0 && functions[number - 1].contains(at)
        };
        for start in self.called_from_anywhere(0, u64::MAX) {
            if !is_inside(start) {
                self.miss(start, What::Entry);
            }
        }
        let module = self.module;
        for (at, callee) in &module.calls {
            if !is_inside(*at) && self.counts_at_calls(module.starts[*callee]) {
                self.miss(*at, What::Call);
            }
        }
    }

    /// What is left of the cycles of a group by the checks that are there.
    fn cycles<'g>(&self, group: &'g Group) -> Cycles<'g> {
        group.cycles(self.bodies, |insn| self.fewest && self.stops(insn))
    }

    /// Whether control meets a check when it passes an instruction: its own, or that of what it calls.
    fn stops(&self, insn: &Instruction) -> bool {
        let called = branch_target(insn).filter(|_| insn.is_call_near());
        self.stopped.contains(&insn.ip()) || called.is_some_and(|target| self.at_entry.contains(&target))
    }

    /// Places a check at each instruction of a group that wants one.
    fn each(&mut self, group: &Group, what: What, wants: impl Fn(&Self, &Body, &Instruction) -> bool) {
        for (function, range) in group.functions.iter().zip(&group.ranges) {
            let body = &group.code[range.clone()];
            let mut reached = None;
            self.runs = function.trust == Trust::Runs;
            for (i, insn) in body.iter().enumerate() {
                if insn.flow_control() == FlowControl::Next
                    || self.is_counted(insn.ip())
                    || !wants(self, function, insn)
                {
                    continue;
                }
                let reached = reached.get_or_insert_with(|| self.bodies.reached(function, body));
                if function.trust == Trust::Nothing || !reached[i] || !self.place(what, body, i) {
                    self.miss(insn.ip(), what);
                } else if what != What::BackEdge {
                    self.stopped.insert(insn.ip());
                }
            }
        }
    }

    /// Whether an instruction jumps back, and needs a check for that.
    fn is_back_edge(&self, insn: &Instruction, cycles: &Cycles<'_>) -> bool {
        let jumps = !insn.is_call_near();
        let Some(target) = branch_target(insn).filter(|t| jumps && *t <= insn.ip()) else { return false };
        if self.at_entry.contains(&target) {
            return false;
        }
        let on_cycle = || cycles.contain(insn.ip(), target);
        match self.loops.get(&insn.ip()) {
            Some(kept) => *kept && on_cycle(),
            // A tail call; or a way into the middle of another function.
            None => match self.module.starts.binary_search(&target) {
                Ok(number) => self.checked[number],
                Err(_) => on_cycle(),
            },
        }
    }

    /// Places a check. False if that cannot be done.
    fn place(&mut self, what: What, body: &[Instruction], at: usize) -> bool {
        let insn = &body[at];
        match branch_target(insn) {
            Some(target) if is_long(insn) => {
                let to = self.stubs.count_and_go(target);
                self.edit(insn.next_ip() - 4, false, to);
                true
            }
            target => {
                if what == What::Call {
                    return false;
                }
                let Some((run, end)) = self.run_around(body, at) else {
                    return self.place_at_call_before(body, at);
                };
                let first = run.before.first().unwrap_or(run.jump).ip();
                let to = match target {
                    Some(target) => self.stubs.run_and_count(&run, target),
                    None => self.stubs.run_and_jump(&run),
                };
                self.replace(first, end, to);
                true
            }
        }
    }

    /// Where nothing but a call leads to a jump, the call can count instead, at what it leads to.
    fn place_at_call_before(&mut self, body: &[Instruction], at: usize) -> bool {
        let call = at.checked_sub(1).map(|i| &body[i]).filter(|insn| insn.is_call_near());
        let Some((call, target)) = call.and_then(|call| Some((call, branch_target(call)?))) else {
            return false;
        };
        if self.bodies.is_target(body[at].ip()) || !self.runs {
            return false;
        }
        if !self.stopped.contains(&call.ip()) {
            let to = self.stubs.count_and_go(target);
            self.edit(call.next_ip() - 4, false, to);
            self.stopped.insert(call.ip());
        }
        true
    }

    /// Whether an address is that of a function with a check that it does not count itself.
    fn counts_at_calls(&self, target: u64) -> bool {
        !self.at_entry.contains(&target)
            && self.module.starts.binary_search(&target).is_ok_and(|number| self.checked[number])
    }

    fn replace(&mut self, from: u64, end: u64, to: u32) {
        self.edit(from + 1, true, to);
        self.taken.insert(from, end);
    }

    /// Whether an instruction is part of a run that counts, or counts itself.
    fn is_counted(&self, at: u64) -> bool {
        self.stopped.contains(&at) || !self.is_free(at, at + 1)
    }

    /// Whether no run lies there.
    fn is_free(&self, from: u64, end: u64) -> bool {
        self.taken.range(..end).next_back().is_none_or(|(_, last)| *last <= from)
    }

    fn edit(&mut self, field: u64, jump: bool, to: u32) {
        self.stubs.out.edits.push(Edit { field, jump, to });
        self.stubs.out.placed += 1;
    }

    fn miss(&mut self, at: u64, what: What) {
        self.stubs.out.misses.push(Miss { at, what });
        self.stubs.out.missed += 1;
    }
}

fn end_of(body: &[Instruction], end: usize) -> u64 {
    body[end - 1].next_ip()
}

/// Whether an instruction does the same at another place.
fn is_movable(insn: &Instruction) -> bool {
    insn.flow_control() == FlowControl::Next
        && !matches!(
            insn.mnemonic(),
            Mnemonic::Syscall | Mnemonic::Endbr64 | Mnemonic::Rdsspq | Mnemonic::Xbegin
        )
}

/// Whether it jumps back, or indirectly.
fn may_lead_back(insn: &Instruction) -> bool {
    match insn.flow_control() {
        FlowControl::Next | FlowControl::Call => false,
        FlowControl::IndirectBranch => true,
        _ => branch_target(insn).is_some_and(|target| target <= insn.ip()),
    }
}

/// Whether it is a direct jump whose condition, if it has one, is of the flags.
fn is_plain_jump(insn: &Instruction) -> bool {
    insn.is_jcc_short_or_near() || insn.is_jmp_short_or_near()
}

/// Whether a branch ends in four bytes that say where it leads.
fn is_long(insn: &Instruction) -> bool {
    insn.is_jcc_near() || insn.is_call_near() || insn.is_jmp_near()
}
