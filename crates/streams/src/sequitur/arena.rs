//! The symbols of all rules as doubly linked rings in one array: what the rest of Sequitur edits.
//!
//! Indices instead of pointers: 12 bytes a symbol, no `unsafe`, and a stale index is a wrong answer that a test finds,
//! not undefined behaviour.

/// Marks a reference to a rule.
const RULE: u32 = 1 << 31;
/// Marks the guard that closes a rule's ring.
const GUARD: u32 = RULE | 1 << 30;
/// Never equal to anything, itself included: no digram spans it.
pub(super) const BREAK: u32 = RULE - 1;
/// Terminals are below this.
pub(super) const TERMINALS: u32 = 1 << 30;

/// What a node holds: a terminal, a rule, a guard or a break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sym(pub u32);

impl Sym {
    pub(super) fn rule(id: u32) -> Sym {
        Sym(RULE | id)
    }

    /// The rule that it stands for.
    #[inline(always)]
    pub(super) fn as_rule(self) -> Option<u32> {
        if self.0 & GUARD == RULE { Some(self.0 & !GUARD) } else { None }
    }

    #[inline(always)]
    pub(super) fn is_guard(self) -> bool {
        self.0 & GUARD == GUARD
    }

    /// Whether it can be part of a digram.
    #[inline(always)]
    pub(super) fn pairs(self) -> bool {
        !self.is_guard() && self.0 != BREAK
    }
}

/// One symbol of a rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub sym: Sym,
    pub prev: u32,
    pub next: u32,
}

/// A rule: the guard of its ring, and how often it is used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub guard: u32,
    pub refs: u32,
    /// The start of a sequence: never used by others, never expanded.
    pub root: bool,
}

/// The sym of nodes that are not in use: like a guard, it is in no digram and no match.
const FREE: Sym = Sym(u32::MAX);
const NONE: u32 = u32::MAX;

/// Nodes and rules, with the free ones chained.
#[derive(Debug)]
pub(super) struct Arena {
    pub nodes: Vec<Node>,
    pub rules: Vec<Rule>,
    free_nodes: u32,
    free_rules: Vec<u32>,
    live: usize,
}

impl Arena {
    pub(super) fn new() -> Arena {
        Arena { nodes: Vec::new(), rules: Vec::new(), free_nodes: NONE, free_rules: Vec::new(), live: 0 }
    }

    /// Forgets everything, keeps the memory.
    pub(super) fn clear(&mut self) {
        self.nodes.clear();
        self.rules.clear();
        self.free_rules.clear();
        self.free_nodes = NONE;
        self.live = 0;
    }

    /// Nodes in use, guards included.
    #[inline]
    pub(super) fn live(&self) -> usize {
        self.live
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
            + self.rules.capacity() * size_of::<Rule>()
            + self.free_rules.capacity() * 4
    }

    #[inline(always)]
    pub(super) fn sym(&self, n: u32) -> Sym {
        self.nodes[n as usize].sym
    }

    #[inline(always)]
    pub(super) fn next(&self, n: u32) -> u32 {
        self.nodes[n as usize].next
    }

    /// The next node, or the same one if it is in no ring.
    pub(super) fn next_or_self(&self, n: u32) -> u32 {
        if self.sym(n) == FREE { n } else { self.next(n) }
    }

    #[inline(always)]
    pub(super) fn prev(&self, n: u32) -> u32 {
        self.nodes[n as usize].prev
    }

    #[inline]
    pub(super) fn link(&mut self, left: u32, right: u32) {
        self.nodes[left as usize].next = right;
        self.nodes[right as usize].prev = left;
    }

    /// A node that is in no ring yet.
    #[inline]
    pub(super) fn node(&mut self, sym: Sym) -> u32 {
        self.live += 1;
        let n = self.free_nodes;
        let node = Node { sym, prev: n, next: n };
        if n == NONE {
            self.nodes.push(node);
            return self.nodes.len() as u32 - 1;
        }
        self.free_nodes = self.next(n);
        self.nodes[n as usize] = node;
        n
    }

    pub(super) fn release(&mut self, n: u32) {
        self.nodes[n as usize] = Node { sym: FREE, prev: NONE, next: self.free_nodes };
        self.free_nodes = n;
        self.live -= 1;
    }

    /// An empty rule.
    pub(super) fn rule(&mut self, root: bool) -> u32 {
        let id = self.free_rules.pop().unwrap_or(self.rules.len() as u32);
        let guard = self.node(Sym(GUARD | id));
        self.link(guard, guard);
        let rule = Rule { guard, refs: 0, root };
        match self.rules.get_mut(id as usize) {
            Some(old) => *old = rule,
            None => self.rules.push(rule),
        }
        id
    }

    /// Gives back a rule whose ring is empty or taken over.
    pub(super) fn release_rule(&mut self, id: u32) {
        let guard = self.rules[id as usize].guard;
        self.release(guard);
        self.rules[id as usize] = Rule { guard: NONE, refs: 0, root: false };
        self.free_rules.push(id);
    }

    /// The rule that a guard closes.
    #[inline]
    pub(super) fn rule_of_guard(&self, guard: u32) -> u32 {
        self.sym(guard).0 & !GUARD
    }

    #[inline]
    pub(super) fn first(&self, rule: u32) -> u32 {
        self.next(self.rules[rule as usize].guard)
    }

    #[inline]
    pub(super) fn guard(&self, rule: u32) -> u32 {
        self.rules[rule as usize].guard
    }

    /// The rule whose whole body is `first..=last`, if there is one and it may be used.
    #[inline]
    pub(super) fn whole(&self, first: u32, last: u32) -> Option<u32> {
        let guard = self.prev(first);
        if !self.sym(guard).is_guard() || self.next(last) != guard {
            return None;
        }
        let rule = self.rule_of_guard(guard);
        (!self.rules[rule as usize].root).then_some(rule)
    }

    /// The nodes of a rule, in order.
    pub(super) fn body(&self, rule: u32) -> impl Iterator<Item = u32> + '_ {
        let guard = self.guard(rule);
        std::iter::successors(Some(self.next(guard)), |n| Some(self.next(*n)))
            .take_while(move |n| *n != guard)
    }
}
