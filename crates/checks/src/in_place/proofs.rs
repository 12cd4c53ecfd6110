//! What must hold of every plan, shown for real files: changes are apart and do what was there, and every cycle meets a
//! check.

use super::bodies::{Bodies, Body, Trust, branch_target, falls, is_padding};
use super::{Edit, InPlace, Layout, What, flow};
use crate::components::components;
use crate::{Module, Scheme};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Register};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

const LAYOUT: Layout = Layout { checks: 0x40, app_r14: 0x48, save: 0x50, target: 0x58 };

/// Bytes of what counts a check, with and without flags.
const COUNTS: [usize; 2] = [15, 42];

/// A file, its plan, and all instructions of its functions.
struct Planned<'d> {
    name: String,
    bodies: Bodies<'d>,
    module: Module,
    plan: InPlace,
    boring: Option<u32>,
    code: Vec<(Instruction, Body)>,
}

/// Where checks are.
#[derive(Default)]
struct Checks {
    /// Instructions that control does not pass without one.
    passed: HashSet<u64>,
    /// Jumps that are not taken without one, or are known to be missed.
    taken: HashSet<u64>,
    /// Entries that are known to be missed.
    missed: HashSet<u64>,
}

impl<'d> Planned<'d> {
    fn new(path: &Path, bytes: &'d [u8], module: &Module, scheme: &str) -> Planned<'d> {
        let file = Module::parse(path, bytes).unwrap();
        let bodies = Bodies::of(&file);
        let scheme: Scheme = scheme.parse().unwrap();
        let plan = super::sites::choose(&bodies, module, scheme, LAYOUT);
        let (mut code, mut one) = (Vec::new(), Vec::new());
        for function in &bodies.functions {
            bodies.decode(function, &mut one);
            code.extend(one.iter().map(|insn| (*insn, *function)));
        }
        let name = format!("{} {scheme:?}", path.display());
        Planned { name, bodies, module: module.clone(), plan, boring: scheme.boring, code }
    }

    fn number(&self, at: u64) -> Option<usize> {
        self.code.binary_search_by_key(&at, |(insn, _)| insn.ip()).ok()
    }

    fn stub(&self, at: u32) -> Instruction {
        let bytes = &self.plan.stubs[at as usize..];
        Decoder::with_ip(64, bytes, u64::from(at), DecoderOptions::NONE).decode()
    }

    /// How many bytes count, if the stub begins with that.
    fn counts(&self, stub: u32) -> Option<usize> {
        let first = self.stub(stub);
        let ours = first.memory_base() == Register::None && first.segment_prefix() == Register::GS;
        let keeps = first.memory_displacement64() == LAYOUT.save as u64;
        ours.then_some(COUNTS[usize::from(keeps)])
    }

    /// The instructions that a change replaces.
    fn run(&self, edit: &Edit) -> &[(Instruction, Body)] {
        let at = edit.field - 1;
        let first = self.number(at).unwrap_or_else(|| panic!("{}: no instruction at {at:x}", self.name));
        // The next run may follow at once.
        let begins = |at: u64| {
            self.plan
                .edits
                .binary_search_by_key(&(at + 1), |e| e.field)
                .is_ok_and(|i| self.plan.edits[i].jump)
        };
        let moved = |at: u64| self.plan.moved.binary_search_by_key(&at, |(at, _)| *at).is_ok() && !begins(at);
        let replaced = |(insn, _): &&(Instruction, Body)| insn.ip() < at + 5 || moved(insn.ip());
        let len = self.code[first..].iter().take_while(replaced).count();
        &self.code[first..first + len]
    }

    fn changes_are_apart_and_within_functions(&self) {
        let mut end = 0;
        for edit in &self.plan.edits {
            let from = edit.field - u64::from(edit.jump);
            assert!(from >= end, "{}: {from:x} overlaps", self.name);
            end = edit.field + 4;
            let number = self.bodies.functions.partition_point(|f| f.start <= from) - 1;
            let function = self.bodies.functions[number];
            assert!(function.contains(from) && function.contains(end - 1), "{}: {from:x}", self.name);
            assert_ne!(function.trust, Trust::Nothing, "{}: {from:x}", self.name);
            assert!((edit.to as usize) < self.plan.stubs.len());
            if !edit.jump {
                let last = self.code.partition_point(|(insn, _)| insn.ip() < edit.field) - 1;
                let (insn, _) = self.code[last];
                assert_eq!(
                    insn.next_ip(),
                    edit.field + 4,
                    "{}: {from:x} has its target elsewhere",
                    self.name
                );
                assert!(branch_target(&insn).is_some() && insn.len() >= 5, "{}: {from:x}", self.name);
            }
        }
    }

    /// A copy does what the instruction did: it is the same, or leads to the same places.
    fn same(&self, insn: &Instruction, copy: u32) {
        let what = || format!("{}: {:x}, copied to {copy:x}", self.name, insn.ip());
        let now = self.stub(copy);
        match branch_target(insn) {
            Some(target) if insn.is_jcc_short_or_near() && now.condition_code() == insn.condition_code() => {
                assert_eq!(branch_target(&now), Some(target), "{}", what());
            }
            Some(_) if insn.is_jcc_short_or_near() => {
                let mut opposite = *insn;
                opposite.negate_condition_code();
                assert_eq!(now.condition_code(), opposite.condition_code(), "{}", what());
            }
            // What follows instead is a check, or the jump itself in its long form.
            Some(_) => {}
            None => assert_eq!(now, *insn, "{}", what()),
        }
    }

    fn runs_do_what_was_there(&self) {
        let moved: HashMap<u64, u32> = self.plan.moved.iter().copied().collect();
        assert_eq!(moved.len(), self.plan.moved.len(), "{}", self.name);
        for edit in self.plan.edits.iter().filter(|edit| edit.jump) {
            let run = self.run(edit);
            let (first, function) = run[0];
            assert!(run.len() == 1 || function.trust == Trust::Runs, "{}: {:x}", self.name, first.ip());
            let counted = self.counts(edit.to).unwrap_or(0);
            self.same(&first, edit.to + counted as u32);
            let mut ended = !falls(&first);
            for (insn, _) in &run[1..] {
                assert!(
                    !self.bodies.is_target(insn.ip()),
                    "{}: something leads to {:x}",
                    self.name,
                    insn.ip()
                );
                match moved.get(&insn.ip()) {
                    Some(copy) => self.same(insn, *copy),
                    None => assert!(ended && is_padding(insn), "{}: {:x} is lost", self.name, insn.ip()),
                }
                ended |= !falls(insn);
                assert!(
                    !insn.is_call_near() && !insn.is_call_near_indirect(),
                    "{}: {:x}",
                    self.name,
                    insn.ip()
                );
            }
        }
    }

    fn checks(&self) -> Checks {
        let Checks { mut passed, mut taken, mut missed } = Checks::default();
        for edit in &self.plan.edits {
            if !edit.jump {
                let last = self.code.partition_point(|(insn, _)| insn.ip() < edit.field) - 1;
                taken.insert(self.code[last].0.ip());
                continue;
            }
            let run = self.run(edit);
            let jump = run.iter().rfind(|(insn, _)| insn.flow_control() != FlowControl::Next);
            match (self.counts(edit.to), jump) {
                (Some(_), _) | (None, None) => passed.insert(run[0].0.ip()),
                (None, Some((jump, _))) => taken.insert(jump.ip()),
            };
        }
        for miss in &self.plan.misses {
            let known = if miss.what == What::Entry { &mut missed } else { &mut taken };
            known.insert(miss.at);
        }
        let boring = |l: &&crate::Loop| self.boring.is_some_and(|k| l.is_boring(k));
        taken.extend(self.module.loops.iter().filter(boring).map(|l| l.branch));
        Checks { passed, taken, missed }
    }

    /// Whether whatever begins at an instruction meets a check before control can part.
    fn counts_itself(&self, start: usize, Checks { passed, taken, missed }: &Checks) -> bool {
        let first = self.code[start].0.ip();
        let straight = |(insn, _): &&(Instruction, Body)| {
            insn.flow_control() == FlowControl::Next && !passed.contains(&insn.ip())
        };
        let last = start + self.code[start..].iter().take_while(straight).count();
        let Some((insn, _)) = self.code.get(last) else { return false };
        let always = matches!(insn.flow_control(), FlowControl::Call | FlowControl::UnconditionalBranch);
        let counts = passed.contains(&insn.ip()) || always && taken.contains(&insn.ip());
        counts && !missed.contains(&first)
    }

    /// The node of an address: an instruction, or a function that the tables for unwinding do not know.
    fn node(&self, at: u64) -> usize {
        let unknown = self.code.len();
        let function = || self.module.function(at).map_or(unknown, |number| unknown + 1 + number);
        self.number(at).unwrap_or_else(function)
    }

    /// Nodes are the instructions, one for everything that is not known, which leads to all functions that may be called
    /// from anywhere, and one for each function that has no other. What was missed is reported, and counts as if it were
    /// there.
    fn every_cycle_meets_a_check(&self) {
        let checks = self.checks();
        let Checks { passed, taken, missed } = &checks;
        let unknown = self.code.len();
        let mut edges: Vec<Vec<usize>> = Vec::with_capacity(unknown + 1);
        for (i, (insn, function)) in self.code.iter().enumerate() {
            let mut to = Vec::new();
            let checked = taken.contains(&insn.ip());
            let calls = matches!(insn.flow_control(), FlowControl::Call | FlowControl::IndirectCall);
            let called = branch_target(insn).filter(|_| calls).and_then(|target| self.number(target));
            let counts = called.is_some_and(|start| self.counts_itself(start, &checks));
            if passed.contains(&insn.ip()) || missed.contains(&insn.ip()) || checked && calls || counts {
                edges.push(to);
                continue;
            }
            let next = self.code.get(i + 1).filter(|(next, _)| next.ip() == insn.next_ip());
            to.extend(next.filter(|_| falls(insn)).map(|_| i + 1));
            if !checked {
                to.extend(branch_target(insn).map(|target| self.node(target)));
                let tables = flow::targets(&self.bodies, function, insn).iter();
                to.extend(tables.filter_map(|target| self.number(*target)));
                let out =
                    matches!(insn.flow_control(), FlowControl::IndirectBranch | FlowControl::IndirectCall);
                to.extend(out.then_some(unknown));
            }
            edges.push(to);
        }
        let called = self.module.graph.functions.iter().zip(&self.module.starts);
        let from_anywhere =
            called.filter(|(f, _)| f.address_taken).filter_map(|(_, start)| self.number(*start));
        edges.push(from_anywhere.collect());
        for (number, function) in self.module.graph.functions.iter().enumerate() {
            let calls = self.module.calls.iter().filter(|(at, _)| self.module.function(*at) == Some(number));
            let unchecked = calls.filter(|(at, _)| self.number(*at).is_none() && !taken.contains(at));
            let mut to: Vec<usize> =
                unchecked.map(|(_, callee)| self.node(self.module.starts[*callee])).collect();
            to.extend(function.calls_unknown.then_some(unknown));
            edges.push(to);
        }
        let component = components(edges.len(), |node, i| edges[node].get(i).copied());
        let place = |node: usize| self.code.get(node).map_or(0, |(insn, _)| insn.ip());
        for from in 0..edges.len() {
            let on_cycle = |to: &usize| component[*to] == component[from];
            if edges[from].iter().any(on_cycle) {
                let others = (0..edges.len()).filter(|node| component[*node] == component[from]);
                let all: Vec<String> = others.map(|node| format!("{:x}", place(node))).take(200).collect();
                panic!("{}: no check on the cycle {}", self.name, all.join(" "));
            }
        }
    }
}

fn prove(path: &Path) -> Option<(usize, usize)> {
    let module = Module::open(path).ok()?;
    let bytes = std::fs::read(path).ok()?;
    let mut sum = (0, 0);
    for scheme in ["orig", "EC+L4"] {
        let planned = Planned::new(path, &bytes, &module, scheme);
        planned.changes_are_apart_and_within_functions();
        planned.runs_do_what_was_there();
        planned.every_cycle_meets_a_check();
        sum = (sum.0 + planned.plan.placed, sum.1 + planned.plan.missed);
    }
    Some(sum)
}

/// Libraries of this machine, smaller ones first.
fn libraries() -> Vec<(u64, PathBuf)> {
    let entries =
        ["/usr/lib/x86_64-linux-gnu", "/usr/lib64"].into_iter().filter_map(|f| std::fs::read_dir(f).ok());
    let files = entries.flatten().flatten().map(|e| e.path()).filter(|p| p.to_string_lossy().contains(".so"));
    let real = files.filter_map(|p| std::fs::canonicalize(p).ok());
    let mut all: Vec<(u64, PathBuf)> =
        real.filter_map(|p| Some((std::fs::metadata(&p).ok().filter(|m| m.is_file())?.len(), p))).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Some of them; `SONDE_LIBRARIES=all` for every library of the machine, which takes minutes.
#[test]
fn plans_of_libraries_hold() {
    let all = std::env::var_os("SONDE_LIBRARIES").is_some_and(|which| which == "all");
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let own = maps.lines().filter_map(|l| l.split_whitespace().nth(5)).filter(|f| f.contains(".so"));
    let mut files: Vec<PathBuf> = own.map(PathBuf::from).collect();
    let chosen: Vec<PathBuf> =
        libraries().into_iter().filter(|(size, _)| all || *size < 200_000).map(|(_, p)| p).collect();
    let step = if all { 1 } else { 1 + chosen.len() / 24 };
    files.extend(chosen.iter().step_by(step).cloned());
    files.sort_unstable();
    files.dedup();
    // Nothing of the loader is changed.
    files.retain(|f| !f.to_string_lossy().contains("/ld-"));
    let sums: Vec<(usize, usize)> = files.iter().filter_map(|f| prove(f)).collect();
    let (placed, missed) = sums.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert!(placed > 1000 && missed * 8 < placed, "{placed} placed, {missed} missed");
}
