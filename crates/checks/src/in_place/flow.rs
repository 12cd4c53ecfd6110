//! Where control goes within functions, and between the parts that one was laid out in: what lies on a cycle.

use super::bodies::{Bodies, Body, branch_target, falls};
use crate::components::components;
use iced_x86::{FlowControl, Instruction};

/// Functions that jump into each other's middle: mostly one, or one and its part that seldom runs.
pub struct Group {
    pub functions: Vec<Body>,
    /// Their instructions, in the order of addresses.
    pub code: Vec<Instruction>,
    /// By function: where its instructions are.
    pub ranges: Vec<std::ops::Range<usize>>,
}

/// All functions in groups.
pub fn groups(bodies: &Bodies<'_>) -> Vec<Vec<Body>> {
    let functions = &bodies.functions;
    let mut parent: Vec<usize> = (0..functions.len()).collect();
    fn root(parent: &mut [usize], mut of: usize) -> usize {
        while parent[of] != of {
            parent[of] = parent[parent[of]];
            of = parent[of];
        }
        of
    }
    let holder = |at: u64| {
        let number = functions.partition_point(|f| f.start <= at).checked_sub(1)?;
        functions[number].contains(at).then_some(number)
    };
    let mut code = Vec::new();
    for (number, function) in functions.iter().enumerate() {
        bodies.decode(function, &mut code);
        for insn in code.iter().filter(|insn| insn.flow_control() != FlowControl::Call) {
            let tables = bodies.jump(insn.ip()).unwrap_or_default().iter().copied();
            let outside = branch_target(insn).into_iter().chain(tables).filter(|t| !function.contains(*t));
            for other in outside.filter_map(holder).collect::<Vec<_>>() {
                let (a, b) = (root(&mut parent, number), root(&mut parent, other));
                parent[a.max(b)] = a.min(b);
            }
        }
    }
    let mut groups: Vec<Vec<Body>> = vec![Vec::new(); functions.len()];
    for (number, function) in functions.iter().enumerate() {
        groups[root(&mut parent, number)].push(*function);
    }
    groups.retain(|group| !group.is_empty());
    groups
}

impl Group {
    pub fn new(bodies: &Bodies<'_>, functions: Vec<Body>) -> Group {
        let (mut code, mut ranges, mut one) = (Vec::new(), Vec::new(), Vec::new());
        for function in &functions {
            bodies.decode(function, &mut one);
            ranges.push(code.len()..code.len() + one.len());
            code.append(&mut one);
        }
        Group { functions, code, ranges }
    }

    fn number(&self, at: u64) -> Option<usize> {
        self.code.binary_search_by_key(&at, |insn| insn.ip()).ok()
    }

    /// The cycles that are left if no control gets past the instructions that `stops` tells.
    pub fn cycles(&self, bodies: &Bodies<'_>, stops: impl Fn(&Instruction) -> bool) -> Cycles<'_> {
        let (mut first, mut to) = (Vec::with_capacity(self.code.len() + 1), Vec::new());
        for (function, range) in self.functions.iter().zip(&self.ranges) {
            for i in range.clone() {
                let insn = &self.code[i];
                first.push(to.len());
                if stops(insn) {
                    continue;
                }
                to.extend((falls(insn) && i + 1 < self.code.len()).then_some(i + 1));
                let direct = branch_target(insn).filter(|_| insn.flow_control() != FlowControl::Call);
                to.extend(direct.and_then(|target| self.number(target)));
                to.extend(targets(bodies, function, insn).iter().filter_map(|target| self.number(*target)));
            }
        }
        first.push(to.len());
        let successor = |i: usize, k: usize| to[first[i]..first[i + 1]].get(k).copied();
        Cycles { group: self, component: components(self.code.len(), successor) }
    }
}

/// Where an indirect jump may lead; nowhere for all others.
pub fn targets<'b>(bodies: &'b Bodies<'_>, function: &Body, insn: &Instruction) -> &'b [u64] {
    match insn.flow_control() {
        // What the linkage table leads to is a function.
        FlowControl::IndirectBranch if insn.is_ip_rel_memory_operand() => &[],
        FlowControl::IndirectBranch => bodies.jump(insn.ip()).unwrap_or_else(|| bodies.labels(function)),
        _ => &[],
    }
}

/// What lies on a cycle.
pub struct Cycles<'g> {
    group: &'g Group,
    component: Vec<usize>,
}

impl Cycles<'_> {
    /// Whether a way from one instruction to another is on a cycle, which is so if it leads back.
    pub fn contain(&self, from: u64, to: u64) -> bool {
        match (self.group.number(from), self.group.number(to)) {
            (Some(from), Some(to)) => self.component[from] == self.component[to],
            _ => false,
        }
    }
}
