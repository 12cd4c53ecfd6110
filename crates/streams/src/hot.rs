//! Which parts of a grammar are hot data streams: the one-pass analysis of Chilimbi & Hirzel (2002), and the threshold
//! that paper 4 (section 5.2) asks for.
//!
//! A stream's heat is its length times the number of its occurrences that do not overlap. Every rule is a candidate. Its
//! occurrences in the derivation of the input never overlap each other, and going from users to used, those inside a
//! stream that is already hot are not counted again: what is left are *cold uses*. So:
//!
//! - the heat given is at most the true heat (other occurrences may be hidden in other rules), and all hot streams
//!   together stand for that many different references: coverage is exact, never counted twice;
//! - not promised: that every hot subsequence is found. Only what Sequitur made a rule is looked at.
//!
//! One case would be lost that a user cares about: a sequence longer than the longest stream that is always repeated as
//! a whole is one rule without rules inside. [`cut`] divides such rules into pieces first.

use crate::grammar::{Grammar, GrammarBuilder, Symbol};

/// Which lengths count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lengths {
    /// The shortest stream.
    pub min: u64,
    /// The longest stream.
    pub max: u64,
}

impl Lengths {
    fn holds(self, length: u64) -> bool {
        (self.min..=self.max).contains(&length)
    }
}

/// What a pass over a grammar found, by rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heat {
    /// The threshold used.
    pub threshold: u64,
    /// Occurrences in the input.
    pub uses: Vec<u64>,
    /// Occurrences outside hot streams.
    pub cold_uses: Vec<u64>,
    /// The rules that are hot, in order.
    pub hot: Vec<u32>,
    /// References in hot streams.
    pub covered: u64,
}

/// A grammar prepared for several passes.
#[derive(Debug)]
pub struct Analysis<'a> {
    grammar: &'a Grammar,
    lengths: Lengths,
    uses: Vec<u64>,
    /// The rules used by each rule, one after the other.
    children: Vec<u32>,
    starts: Vec<usize>,
}

impl<'a> Analysis<'a> {
    /// Counts the uses of every rule. Roots are used once.
    pub fn new(grammar: &'a Grammar, lengths: Lengths) -> Analysis<'a> {
        let mut uses = vec![0u64; grammar.rules()];
        uses[..grammar.roots()].fill(1);
        let (mut children, mut starts) = (Vec::new(), vec![0]);
        for rule in 0..grammar.rules() {
            let from = children.len();
            children.extend(grammar.children(rule));
            starts.push(children.len());
            for child in &children[from..] {
                uses[*child as usize] += uses[rule];
            }
        }
        Analysis { grammar, lengths, uses, children, starts }
    }

    /// References in the input.
    pub fn references(&self) -> u64 {
        (0..self.grammar.roots()).map(|r| self.grammar.length(r)).sum()
    }

    /// One pass: which streams have at least this heat.
    pub fn pass(&self, threshold: u64) -> Heat {
        let (mut cold_uses, mut hot) = (Vec::new(), Vec::new());
        let covered = self.pass_into(threshold, &mut cold_uses, &mut hot);
        Heat { threshold, uses: self.uses.clone(), cold_uses, hot, covered }
    }

    /// The same into vectors that are used again; returns the references covered.
    fn pass_into(&self, threshold: u64, cold_uses: &mut Vec<u64>, hot: &mut Vec<u32>) -> u64 {
        cold_uses.clone_from(&self.uses);
        hot.clear();
        let mut covered = 0u64;
        for (rule, uses) in self.uses.iter().enumerate() {
            let length = self.grammar.length(rule);
            let heat = length.saturating_mul(cold_uses[rule]);
            let is_hot = rule >= self.grammar.roots() && self.lengths.holds(length) && heat >= threshold;
            if is_hot {
                hot.push(rule as u32);
                covered += heat;
            }
            let taken = if is_hot { *uses } else { uses - cold_uses[rule] };
            if taken > 0 {
                for child in &self.children[self.starts[rule]..self.starts[rule + 1]] {
                    cold_uses[*child as usize] -= taken;
                }
            }
        }
        covered
    }

    /// The pass with the highest threshold, found by halving, at which hot streams cover `coverage` (0 to 1) of the
    /// references. Where even the lowest does not, that one: a stream of the least length that occurs twice.
    ///
    /// Coverage need not fall steadily with the threshold (a long stream that is no longer hot can give way to shorter
    /// ones that cover more), so a still higher threshold may do as well; the one returned does, and the next does not.
    pub fn search(&self, coverage: f64) -> Heat {
        let references = self.references();
        let enough = |covered: u64| covered as f64 >= coverage * references as f64;
        let (mut cold_uses, mut hot) = (Vec::new(), Vec::new());
        let mut best = 2 * self.lengths.min.max(1);
        if enough(self.pass_into(best, &mut cold_uses, &mut hot)) && !hot.is_empty() {
            let mut fails = references.saturating_add(1).max(best + 1);
            while fails - best > 1 {
                let middle = best + (fails - best) / 2;
                if enough(self.pass_into(middle, &mut cold_uses, &mut hot)) {
                    best = middle;
                } else {
                    fails = middle;
                }
            }
        }
        self.pass(best)
    }
}

/// Divides the rules longer than `lengths.max` so that what has no rule inside them can be found: each run of terminals
/// and of rules shorter than `lengths.min` becomes pieces of at most `lengths.max`, which are rules of their own. A piece
/// occurs as often as the rule, and pieces do not overlap, so heat means the same. Sequences are not divided: what
/// stands in them occurs once.
pub fn cut(grammar: &Grammar, lengths: Lengths) -> Grammar {
    let before = grammar.rules();
    let mut cutter = Cutter { lengths, first_piece: before, ..Cutter::default() };
    let mut bodies = vec![0..0; before];
    for rule in (grammar.roots()..before).filter(|r| grammar.length(*r) > lengths.max) {
        let from = cutter.body.len();
        for symbol in grammar.body(rule) {
            cutter.take(*symbol, length_of(grammar, *symbol));
        }
        cutter.close();
        bodies[rule] = from..cutter.body.len();
    }
    let roots: Vec<u32> = (0..grammar.roots() as u32).collect();
    GrammarBuilder::new(before + cutter.ends.len()).build(&roots, &mut |rule, body| {
        let rule = rule as usize;
        body.extend_from_slice(match bodies.get(rule) {
            Some(unchanged) if unchanged.is_empty() => grammar.body(rule),
            Some(divided) => &cutter.body[divided.clone()],
            None => cutter.piece_of(rule),
        });
    })
}

fn length_of(grammar: &Grammar, symbol: Symbol) -> u64 {
    match symbol {
        Symbol::Terminal(_) => 1,
        Symbol::Rule(r) => grammar.length(r as usize),
        Symbol::Break => 0,
    }
}

/// Makes the new bodies of rules, and the pieces in them.
#[derive(Default)]
struct Cutter {
    lengths: Lengths,
    /// Number of the first piece.
    first_piece: usize,
    /// New bodies, one after the other.
    body: Vec<Symbol>,
    /// Pieces, one after the other; the last may still grow.
    pieces: Vec<Symbol>,
    /// Where each finished piece ends.
    ends: Vec<usize>,
    /// Length of the piece that grows.
    length: u64,
}

impl Cutter {
    fn take(&mut self, symbol: Symbol, length: u64) {
        if length >= self.lengths.min.max(2) || symbol == Symbol::Break {
            self.close();
            self.body.push(symbol);
            return;
        }
        if self.length + length > self.lengths.max {
            self.close();
        }
        self.pieces.push(symbol);
        self.length += length;
    }

    fn close(&mut self) {
        let from = self.ends.last().copied().unwrap_or(0);
        if self.pieces.len() - from > 1 && self.length >= self.lengths.min {
            self.body.push(Symbol::Rule((self.first_piece + self.ends.len()) as u32));
            self.ends.push(self.pieces.len());
        } else {
            self.body.extend(self.pieces.drain(from..));
        }
        self.length = 0;
    }

    fn piece_of(&self, rule: usize) -> &[Symbol] {
        let piece = rule - self.first_piece;
        let from = piece.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.pieces[from..self.ends[piece]]
    }
}
