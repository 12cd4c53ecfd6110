//! Editing a grammar without breaking it: carving rules out, substituting, expanding, and checking again what was
//! touched until no digram stands twice and no rule is used once.

use super::arena::{Arena, Sym};
use super::digrams::{Digrams, Found};

/// A grammar and the places in it that have to be looked at again.
#[derive(Debug)]
pub(super) struct Editor {
    pub arena: Arena,
    pub digrams: Digrams,
    again: Vec<u32>,
}

impl Editor {
    pub(super) fn new() -> Editor {
        Editor { arena: Arena::new(), digrams: Digrams::new(), again: Vec::new() }
    }

    /// The digram that begins at `n` goes. Of three equal symbols only one pair is noted, since the pairs overlap; when
    /// that goes, the other has to be noted, if it still stands then.
    #[inline]
    pub(super) fn forget(&mut self, n: u32) {
        let next = self.arena.next(n);
        let (a, b) = (self.arena.sym(n), self.arena.sym(next));
        if a == b && a.pairs() {
            self.later(self.arena.prev(n));
            self.later(next);
        }
    }

    /// The digram that begins at `n` is to be looked at when everything is linked.
    #[inline]
    pub(super) fn later(&mut self, n: u32) {
        self.again.push(n);
    }

    /// One use fewer; true if a single one is left.
    #[inline]
    pub(super) fn drop_use(&mut self, sym: Sym) -> bool {
        let Some(rule) = sym.as_rule() else { return false };
        let rule = &mut self.arena.rules[rule as usize];
        rule.refs -= 1;
        rule.refs == 1
    }

    #[inline]
    pub(super) fn add_use(&mut self, sym: Sym) {
        if let Some(rule) = sym.as_rule() {
            self.arena.rules[rule as usize].refs += 1;
        }
    }

    /// Makes `first..=last` a rule: the one whose whole body it is, or a new one that stands where it was. The nodes are
    /// moved, not copied, so the digrams inside stay noted.
    pub(super) fn carve(&mut self, first: u32, last: u32) -> u32 {
        if let Some(rule) = self.arena.whole(first, last) {
            return rule;
        }
        let (before, after) = (self.arena.prev(first), self.arena.next(last));
        self.forget(before);
        self.forget(last);
        let rule = self.arena.rule(false);
        let here = self.arena.node(Sym::rule(rule));
        self.arena.rules[rule as usize].refs = 1;
        self.arena.link(before, here);
        self.arena.link(here, after);
        let guard = self.arena.guard(rule);
        self.arena.link(guard, first);
        self.arena.link(last, guard);
        self.later(before);
        self.later(here);
        rule
    }

    /// Puts the body of a rule in the place of its only use.
    pub(super) fn expand(&mut self, n: u32) {
        let Some(rule) = self.arena.sym(n).as_rule() else { return };
        let (before, after) = (self.arena.prev(n), self.arena.next(n));
        self.forget(before);
        self.forget(n);
        let guard = self.arena.guard(rule);
        let (first, last) = (self.arena.next(guard), self.arena.prev(guard));
        self.arena.link(before, first);
        self.arena.link(last, after);
        self.arena.release(n);
        self.arena.release_rule(rule);
        self.later(before);
        self.later(last);
    }

    /// Expands `n` if it is the only use of a rule.
    fn expand_if_single(&mut self, n: u32) {
        if let Some(rule) = self.arena.sym(n).as_rule()
            && self.arena.rules[rule as usize].refs == 1
        {
            self.expand(n);
        }
    }

    /// Looks at everything that was touched, and at what that touches.
    #[inline]
    pub(super) fn settle(&mut self) {
        while let Some(n) = self.again.pop() {
            let next = self.arena.nodes[n as usize].next;
            let a = self.arena.sym(n);
            // A free node looks like a guard.
            if !a.pairs() {
                continue;
            }
            let b = self.arena.sym(next);
            if !b.pairs() {
                continue;
            }
            if let Found::At(m) = self.digrams.find_or_insert(&self.arena, a, b, n)
                && self.arena.next(m) != n
                && next != m
            {
                self.unite(n, m);
            }
        }
    }

    /// The digrams at `n` and `m` are the same: one rule for both.
    fn unite(&mut self, n: u32, m: u32) {
        let (n_last, m_last) = (self.arena.next(n), self.arena.next(m));
        // A rule that consists of the digram stays; what is replaced is the other place.
        let (kept, kept_last, replaced) = if self.arena.whole(n, n_last).is_some() {
            self.forget(m);
            self.later(n);
            (n, n_last, m)
        } else {
            (m, m_last, n)
        };
        let rule = self.carve(kept, kept_last);
        self.substitute(replaced, rule);
        self.expand_if_single(kept);
        self.expand_if_single(kept_last);
    }

    /// Replaces the two symbols from `n` by a rule.
    fn substitute(&mut self, n: u32, rule: u32) {
        let second = self.arena.next(n);
        let (before, after) = (self.arena.prev(n), self.arena.next(second));
        self.forget(before);
        self.forget(n);
        self.forget(second);
        let (a, b) = (self.arena.sym(n), self.arena.sym(second));
        self.drop_use(a);
        self.drop_use(b);
        self.arena.link(n, after);
        self.arena.release(second);
        self.arena.nodes[n as usize].sym = Sym::rule(rule);
        self.add_use(Sym::rule(rule));
        self.later(before);
        self.later(n);
    }
}
