//! Sequitur (Nevill-Manning & Witten 1997): a grammar that produces exactly its input, built while the input arrives.
//!
//! Two invariants: no pair of neighbouring symbols stands twice in the grammar (unless the two overlap, as in `aaa`),
//! and every rule is used at least twice. Repetition in the input becomes rules.
//!
//! The textbook edits the grammar with every symbol of a repetition: a rule is made, then replaced by one that is a
//! symbol longer, and so on. Here a repetition is *followed* instead: from the first digram that stands elsewhere, each
//! further symbol is compared with what comes next there, and the grammar is edited once, when they part. The nodes of
//! the repeated part are moved into its rule, never copied. A symbol inside a repetition costs a comparison, not a
//! handful of table operations; the invariants are the same, and hold whenever [`Sequitur::flush`] was called.
//!
//! Several sequences (one per thread) share the rules. A break in a sequence is never part of a digram, so no rule spans
//! it.

mod arena;
mod digrams;
mod invariants;
mod repair;

use crate::grammar::{Grammar, GrammarBuilder, Symbol};
use arena::{BREAK, Sym, TERMINALS};
use digrams::Found;
use repair::Editor;

/// Symbols that [`Sequitur::extend`] looks ahead: enough to keep memory busy, few enough to stay in the nearest cache.
const AHEAD: usize = 32;

/// The number of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sequence(u32);

/// A repetition that is being followed: the end of the sequence equals what begins at `start`.
#[derive(Debug, Default)]
struct Follow {
    active: bool,
    /// First node of the earlier occurrence; its symbol is the last one of the sequence.
    start: u32,
    /// The node to compare with next.
    cursor: u32,
    /// Last node of the sequence: the earlier occurrence ends before it.
    end: u32,
    /// Uses of rules that the cursor is inside of, outermost first.
    inside: Vec<u32>,
}

/// A grammar under construction.
///
/// ```
/// use sonde_streams::sequitur::Sequitur;
///
/// let mut sequitur = Sequitur::new();
/// let sequence = sequitur.sequence();
/// for symbol in [1, 2, 3, 9, 1, 2, 3] {
///     sequitur.push(sequence, symbol);
/// }
/// let grammar = sequitur.grammar();
/// assert_eq!(grammar.expand_root(0), [Some(1), Some(2), Some(3), Some(9), Some(1), Some(2), Some(3)]);
/// assert_eq!(grammar.rules(), 2); // S -> A 9 A, A -> 1 2 3
/// ```
#[derive(Debug)]
pub struct Sequitur {
    editor: Editor,
    /// The rules that are the sequences.
    roots: Vec<u32>,
    current: usize,
    follow: Follow,
    /// Symbols to append when a repetition ends inside a rule.
    rest: Vec<Sym>,
    symbols: u64,
    /// Symbols whose digram was searched for.
    searches: u64,
    /// Whether that was often so in the last batch.
    often_searched: bool,
}

impl Default for Sequitur {
    fn default() -> Sequitur {
        Sequitur::new()
    }
}

impl Sequitur {
    /// Symbols must be below this.
    pub const MAX_SYMBOL: u32 = TERMINALS;

    /// An empty grammar without sequences.
    pub fn new() -> Sequitur {
        Sequitur {
            editor: Editor::new(),
            roots: Vec::new(),
            current: 0,
            follow: Follow::default(),
            rest: Vec::new(),
            symbols: 0,
            searches: 0,
            often_searched: false,
        }
    }

    /// Forgets everything, its sequences too; keeps the memory.
    pub fn clear(&mut self) {
        self.editor.arena.clear();
        self.editor.digrams.clear();
        self.roots.clear();
        self.follow.active = false;
        self.follow.inside.clear();
        self.symbols = 0;
        self.current = 0;
    }

    /// Begins a sequence.
    pub fn sequence(&mut self) -> Sequence {
        self.flush();
        self.roots.push(self.editor.arena.rule(true));
        Sequence(self.roots.len() as u32 - 1)
    }

    /// Symbols taken so far.
    pub fn symbols(&self) -> u64 {
        self.symbols
    }

    /// Symbols in the grammar's rules, with one more for each rule: what its memory grows with.
    #[inline]
    pub fn size(&self) -> usize {
        self.editor.arena.live()
    }

    /// Bytes held.
    pub fn memory_bytes(&self) -> usize {
        self.editor.arena.memory_bytes() + self.editor.digrams.memory_bytes()
    }

    /// The symbol that a repetition lets expect in this sequence: a caller can test for it before looking the real one up.
    #[inline]
    pub fn expected(&mut self, sequence: Sequence) -> Option<u32> {
        if !self.follow.active || self.current != sequence.0 as usize {
            return None;
        }
        let (arena, follow) = (&self.editor.arena, &mut self.follow);
        if follow.cursor == follow.end {
            return None;
        }
        loop {
            let sym = arena.sym(follow.cursor);
            match sym.as_rule() {
                Some(rule) => {
                    follow.inside.push(follow.cursor);
                    follow.cursor = arena.first(rule);
                }
                None => return sym.pairs().then_some(sym.0),
            }
        }
    }

    /// Appends a symbol, which must be below [`Sequitur::MAX_SYMBOL`], to a sequence.
    ///
    /// # Panics
    /// When the sequence is not one of this grammar.
    #[inline]
    pub fn push(&mut self, sequence: Sequence, symbol: u32) {
        debug_assert!(symbol < TERMINALS);
        self.symbols += 1;
        if self.expected(sequence) == Some(symbol) {
            return self.advance();
        }
        self.select(sequence);
        self.flush();
        self.append(Sym(symbol));
    }

    /// Appends several symbols: the same as [`Sequitur::push`] for each, and faster when many of them do not repeat.
    ///
    /// Where a digram is noted is most often not in the processor's cache, and what comes next depends on the answer. The
    /// symbols ahead say where later searches will begin, so that memory is asked for many of them at once.
    ///
    /// # Panics
    /// When the sequence is not one of this grammar.
    pub fn extend(&mut self, sequence: Sequence, symbols: &[u32]) {
        let mut last = None;
        for batch in symbols.chunks(AHEAD) {
            // While a repetition is followed nothing is searched.
            if self.often_searched {
                self.editor.digrams.touch(last, batch);
            }
            let before = self.searches;
            batch.iter().for_each(|s| self.push(sequence, *s));
            self.often_searched = (self.searches - before) * 4 > batch.len() as u64;
            last = batch.last().copied();
        }
    }

    /// Ends a stretch of a sequence: nothing before it forms a pair with anything after it.
    pub fn break_off(&mut self, sequence: Sequence) {
        self.select(sequence);
        self.flush();
        let guard = self.editor.arena.guard(self.roots[self.current]);
        let last = self.editor.arena.prev(guard);
        if last != guard && self.editor.arena.sym(last).0 != BREAK {
            self.link_last(guard, Sym(BREAK));
        }
    }

    #[inline(always)]
    fn select(&mut self, sequence: Sequence) {
        if self.current != sequence.0 as usize {
            // Another sequence may change what this one is compared with.
            self.flush();
            self.current = sequence.0 as usize;
        }
    }

    /// Moves past the node at the cursor, out of every rule that it was the last of.
    #[inline]
    fn advance(&mut self) {
        let arena = &self.editor.arena;
        let mut at = arena.next(self.follow.cursor);
        while arena.sym(at).is_guard()
            && let Some(outer) = self.follow.inside.pop()
        {
            at = arena.next(outer);
        }
        self.follow.cursor = at;
    }

    #[inline(always)]
    fn link_last(&mut self, guard: u32, sym: Sym) -> u32 {
        let arena = &mut self.editor.arena;
        let (last, node) = (arena.prev(guard), arena.node(sym));
        arena.link(last, node);
        arena.link(node, guard);
        node
    }

    /// Appends to the current sequence while no repetition is followed; begins to follow one if the new digram is known.
    #[inline]
    fn append(&mut self, sym: Sym) {
        let guard = self.editor.arena.guard(self.roots[self.current]);
        let last = self.editor.arena.prev(guard);
        let left = self.editor.arena.sym(last);
        self.searches += 1;
        if left.pairs()
            && let Found::At(start) =
                self.editor.digrams.find_or_insert(&self.editor.arena, left, sym, last)
            // Of `aaa`, the second pair is part of the first.
            && self.editor.arena.next(start) != last
        {
            let cursor = self.editor.arena.next(start);
            self.follow.active = true;
            (self.follow.start, self.follow.cursor, self.follow.end) = (start, cursor, last);
            return self.advance();
        }
        self.link_last(guard, sym);
    }

    /// Makes the grammar what the symbols so far call for: ends the repetition that is being followed.
    #[inline]
    pub fn flush(&mut self) {
        if self.follow.active {
            self.part();
        }
    }

    /// The repetition ends: what was the same becomes a rule, used at both places.
    fn part(&mut self) {
        self.follow.active = false;
        let Follow { start, cursor, end, .. } = self.follow;
        let outermost = self.follow.inside.first().copied().unwrap_or(cursor);
        let last_same = self.editor.arena.prev(outermost);
        self.collect_rest(cursor);
        let editor = &mut self.editor;
        let rule = Sym::rule(editor.carve(start, last_same));
        editor.forget(editor.arena.prev(end));
        let old = editor.arena.sym(end);
        editor.arena.nodes[end as usize].sym = rule;
        editor.add_use(rule);
        editor.later(editor.arena.prev(end));
        if editor.drop_use(old) {
            editor.expand(start);
        }
        let guard = editor.arena.guard(self.roots[self.current]);
        for i in 0..self.rest.len() {
            let before = self.editor.arena.prev(guard);
            self.link_last(guard, self.rest[i]);
            self.editor.later(before);
        }
        self.editor.settle();
    }

    /// The repetition ended inside rules: of each the beginning was the same, and has to follow in the sequence. Their
    /// uses are counted at once, so that none is expanded meanwhile.
    fn collect_rest(&mut self, cursor: u32) {
        self.rest.clear();
        for depth in 0..self.follow.inside.len() {
            let stop = self.follow.inside.get(depth + 1).copied().unwrap_or(cursor);
            let Some(rule) = self.editor.arena.sym(self.follow.inside[depth]).as_rule() else { continue };
            let first = self.editor.arena.first(rule);
            if first == stop {
                continue;
            }
            let last = self.editor.arena.prev(stop);
            let sym = if first == last {
                self.editor.arena.sym(first)
            } else {
                Sym::rule(self.editor.carve(first, last))
            };
            self.editor.add_use(sym);
            self.rest.push(sym);
        }
        self.follow.inside.clear();
    }

    /// The grammar so far, as plain data; see [`Grammar`] for its order.
    pub fn grammar(&mut self) -> Grammar {
        self.flush();
        let arena = &self.editor.arena;
        let mut builder = GrammarBuilder::new(arena.rules.len());
        let symbol = |n: u32| match arena.sym(n) {
            Sym(BREAK) => Symbol::Break,
            sym => sym.as_rule().map_or(Symbol::Terminal(sym.0), Symbol::Rule),
        };
        builder
            .build(&self.roots, &mut |rule, body: &mut Vec<Symbol>| body.extend(arena.body(rule).map(symbol)))
    }
}
