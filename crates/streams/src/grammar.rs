//! A grammar as plain data, in the order in which analyses want it.

/// A symbol of a rule's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// An input symbol.
    Terminal(u32),
    /// A use of a rule.
    Rule(u32),
    /// A boundary that nothing bridges; produces nothing.
    Break,
}

/// Rules numbered in reverse post-order: whoever uses a rule has a smaller number than it. The first
/// [`Grammar::roots`] are not used by anybody: they are the sequences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grammar {
    roots: usize,
    starts: Vec<usize>,
    symbols: Vec<Symbol>,
    lengths: Vec<u64>,
}

impl Grammar {
    /// A grammar from rules that refer to each other by index; the first `roots` are the sequences. Rules that no
    /// sequence reaches are left out.
    ///
    /// # Errors
    /// When a rule is used that is not there, or uses itself.
    pub fn new(roots: usize, rules: &[Vec<Symbol>]) -> Result<Grammar, String> {
        let missing = |s: &&Symbol| matches!(s, Symbol::Rule(r) if *r as usize >= rules.len());
        if let Some(symbol) = rules.iter().flatten().find(missing) {
            return Err(format!("{symbol:?} is used, but there are only {} rules", rules.len()));
        }
        let roots: Vec<u32> = (0..roots.min(rules.len()) as u32).collect();
        let grammar = GrammarBuilder::new(rules.len())
            .build(&roots, &mut |rule, body| body.extend_from_slice(&rules[rule as usize]));
        match (0..grammar.rules()).find(|r| grammar.children(*r).any(|c| c as usize <= *r)) {
            Some(rule) => Err(format!("rule {rule} in order uses itself or a sequence")),
            None => Ok(grammar),
        }
    }

    /// Rules, sequences included.
    pub fn rules(&self) -> usize {
        self.lengths.len()
    }

    /// Sequences; they come first.
    pub fn roots(&self) -> usize {
        self.roots
    }

    /// Symbols in all bodies.
    pub fn size(&self) -> usize {
        self.symbols.len()
    }

    /// The body of a rule.
    pub fn body(&self, rule: usize) -> &[Symbol] {
        &self.symbols[self.starts[rule]..self.starts[rule + 1]]
    }

    /// Terminals that a rule produces.
    pub fn length(&self, rule: usize) -> u64 {
        self.lengths[rule]
    }

    /// The rules used in a body, with repetition.
    pub fn children(&self, rule: usize) -> impl Iterator<Item = u32> + '_ {
        self.body(rule).iter().filter_map(|s| match s {
            Symbol::Rule(r) => Some(*r),
            _ => None,
        })
    }

    /// Calls `take` with each terminal that `body` produces, in order; a break gives `None`.
    pub fn expand(&self, body: &[Symbol], take: &mut dyn FnMut(Option<u32>)) {
        let mut open = vec![body.iter()];
        while let Some(top) = open.last_mut() {
            match top.next() {
                Some(Symbol::Terminal(t)) => take(Some(*t)),
                Some(Symbol::Break) => take(None),
                Some(Symbol::Rule(r)) => open.push(self.body(*r as usize).iter()),
                None => {
                    open.pop();
                }
            }
        }
    }

    /// All that a sequence is made of; `None` is a break.
    pub fn expand_root(&self, root: usize) -> Vec<Option<u32>> {
        let mut all = Vec::new();
        self.expand(self.body(root), &mut |s| all.push(s));
        all
    }
}

/// Puts rules in order.
pub(crate) struct GrammarBuilder {
    /// By the caller's number: the new number, or one of the two below.
    numbers: Vec<u32>,
}

const UNSEEN: u32 = u32::MAX;
const OPEN: u32 = u32::MAX - 1;

impl GrammarBuilder {
    pub(crate) fn new(rules: usize) -> GrammarBuilder {
        GrammarBuilder { numbers: vec![UNSEEN; rules] }
    }

    pub(crate) fn build(&mut self, roots: &[u32], body: &mut dyn FnMut(u32, &mut Vec<Symbol>)) -> Grammar {
        let order = self.order(roots, body);
        for (i, rule) in order.iter().enumerate() {
            self.numbers[*rule as usize] = i as u32;
        }
        let mut grammar = Grammar { roots: roots.len(), starts: vec![0], ..Grammar::default() };
        for rule in &order {
            let from = grammar.symbols.len();
            body(*rule, &mut grammar.symbols);
            for symbol in &mut grammar.symbols[from..] {
                if let Symbol::Rule(r) = symbol {
                    *r = self.numbers[*r as usize];
                }
            }
            grammar.starts.push(grammar.symbols.len());
        }
        grammar.lengths = lengths(&grammar, order.len());
        grammar
    }

    /// The roots in their order, then the others in reverse post-order of a depth-first walk.
    fn order(&mut self, roots: &[u32], body: &mut dyn FnMut(u32, &mut Vec<Symbol>)) -> Vec<u32> {
        let mut done = Vec::new();
        // Bodies of the rules on the way down lie one after the other; each frame knows where its own begins.
        let mut bodies: Vec<Symbol> = Vec::new();
        let mut frames: Vec<(u32, usize)> = Vec::new();
        for root in roots {
            self.numbers[*root as usize] = OPEN;
        }
        for root in roots.iter().rev() {
            frames.push((*root, bodies.len()));
            body(*root, &mut bodies);
            while let Some((rule, from)) = frames.last().copied() {
                if bodies.len() == from {
                    frames.pop();
                    if !frames.is_empty() {
                        done.push(rule);
                    }
                    continue;
                }
                // Backwards: the first user then comes first in the reversed order.
                if let Some(Symbol::Rule(r)) = bodies.pop()
                    && self.numbers[r as usize] == UNSEEN
                {
                    self.numbers[r as usize] = OPEN;
                    frames.push((r, bodies.len()));
                    body(r, &mut bodies);
                }
            }
        }
        done.extend(roots.iter().rev());
        done.reverse();
        done
    }
}

fn lengths(grammar: &Grammar, rules: usize) -> Vec<u64> {
    let mut lengths = vec![0u64; rules];
    for rule in (0..rules).rev() {
        let of = |s: &Symbol| match s {
            Symbol::Terminal(_) => 1,
            Symbol::Rule(r) => lengths[*r as usize],
            Symbol::Break => 0,
        };
        lengths[rule] = grammar.body(rule).iter().map(of).fold(0, u64::saturating_add);
    }
    lengths
}
