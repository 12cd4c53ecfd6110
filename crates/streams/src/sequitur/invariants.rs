//! What must hold of every grammar, checked slowly: for tests, and for whoever doubts.

use super::Sequitur;
use super::arena::{BREAK, Sym};
use std::collections::HashMap;

impl Sequitur {
    /// Checks both invariants and the table of digrams against the rules themselves. Takes time and memory in
    /// proportion to the grammar.
    pub fn check(&mut self) -> Result<(), String> {
        self.flush();
        let arena = &self.editor.arena;
        let mut uses: HashMap<u32, u32> = HashMap::new();
        let mut digrams: HashMap<(u32, u32), Vec<(u32, u32)>> = HashMap::new();
        let mut nodes = 0;
        for (id, rule) in arena.rules.iter().enumerate().filter(|(_, r)| r.guard != u32::MAX) {
            let body: Vec<u32> = arena.body(id as u32).collect();
            nodes += 1 + body.len();
            // Two rules that turn out the same: one becomes another name of the other. Uses would have to be searched to
            // unite them, and they count alike. It takes several sequences, whose ends grow in turn.
            let alias = self.roots.len() > 1 && body.len() == 1 && arena.sym(body[0]).as_rule().is_some();
            if !rule.root && body.len() < 2 && !alias {
                return Err(format!("rule {id} has {} symbols", body.len()));
            }
            for n in &body {
                if let Some(used) = arena.sym(*n).as_rule() {
                    *uses.entry(used).or_default() += 1;
                }
            }
            for pair in body.windows(2) {
                let (a, b) = (arena.sym(pair[0]), arena.sym(pair[1]));
                if a != Sym(BREAK) && b != Sym(BREAK) {
                    digrams.entry((a.0, b.0)).or_default().push((pair[0], pair[1]));
                }
            }
        }
        for ((a, b), places) in &digrams {
            // Two places of one digram must overlap: three equal symbols in a row.
            let overlap = places.len() == 2 && (places[0].1 == places[1].0 || places[1].1 == places[0].0);
            if places.len() > 1 && !overlap {
                return Err(format!("digram {a:#x} {b:#x} stands {} times", places.len()));
            }
            let noted = self.editor.digrams.find(arena, Sym(*a), Sym(*b));
            if !places.iter().any(|(n, _)| Some(*n) == noted) {
                return Err(format!("digram {a:#x} {b:#x} is noted at {noted:?}, stands at {places:?}"));
            }
        }
        for (id, rule) in arena.rules.iter().enumerate().filter(|(_, r)| r.guard != u32::MAX && !r.root) {
            let counted = uses.get(&(id as u32)).copied().unwrap_or(0);
            if counted < 2 || counted != rule.refs {
                return Err(format!("rule {id} is used {counted} times, noted {}", rule.refs));
            }
        }
        if nodes != arena.live() {
            return Err(format!("{nodes} nodes stand, {} are noted", arena.live()));
        }
        Ok(())
    }
}
