//! The call graph and which functions keep their entry check (section 4.1).

use crate::components::components;
use std::collections::VecDeque;

/// A function as the graph sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// Functions that it calls directly, or jumps back to (tail calls), by number: edges that can have a check.
    pub calls: Vec<usize>,
    /// It calls something that is not known: indirectly, or in another module.
    pub calls_unknown: bool,
    /// It may be called from anywhere: its address is taken, or it is exported.
    pub address_taken: bool,
}

/// A call graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// The functions.
    pub functions: Vec<Function>,
}

/// What the analysis knows of each function.
struct Known {
    /// Strongly connected component.
    component: Vec<usize>,
    /// Distance from the roots; the largest number for what no root reaches.
    distance: Vec<usize>,
    /// Called by nobody in the graph.
    root: Vec<bool>,
}

impl Graph {
    /// Whether a function calls nothing.
    pub fn is_leaf(&self, function: usize) -> bool {
        let f = &self.functions[function];
        f.calls.is_empty() && !f.calls_unknown
    }

    /// Whether each function keeps its entry check (the set C of formula 3).
    pub fn checked(&self) -> Vec<bool> {
        let known = self.analyse();
        let below = self.recursion_from_below(&known);
        let keeps = |f: usize| {
            let needed = known.root[f] || self.functions[f].address_taken || below[f];
            !self.is_leaf(f) && needed
        };
        (0..self.functions.len()).map(keeps).collect()
    }

    /// Those of the set C that no other check of it makes up for. A cycle that is not of direct calls alone, which meet
    /// one by recursion from below, comes in where an address is taken and goes out by a call of something unknown. A
    /// function that reaches such calls only through others with a check needs none.
    pub fn fewest(&self) -> Vec<bool> {
        let known = self.analyse();
        let (below, checked) = (self.recursion_from_below(&known), self.checked());
        let gets_out = self.gets_out(&checked);
        let keeps = |f: usize| {
            let between = self.functions[f].address_taken && gets_out[f];
            checked[f] && (below[f] || between)
        };
        (0..self.functions.len()).map(keeps).collect()
    }

    /// Whether each function is called from its own component by one at least as far from the roots.
    fn recursion_from_below(&self, known: &Known) -> Vec<bool> {
        let mut below = vec![false; self.functions.len()];
        for (g, caller) in self.functions.iter().enumerate() {
            for &f in &caller.calls {
                let same = known.component[f] == known.component[g];
                below[f] |= same && known.distance[g] >= known.distance[f];
            }
        }
        below
    }

    /// Whether each function gets to a call of something unknown without a check behind its own entry.
    fn gets_out(&self, checked: &[bool]) -> Vec<bool> {
        let mut callers: Vec<Vec<usize>> = vec![Vec::new(); self.functions.len()];
        for (g, caller) in self.functions.iter().enumerate() {
            caller.calls.iter().for_each(|f| callers[*f].push(g));
        }
        let mut out: Vec<bool> = self.functions.iter().map(|f| f.calls_unknown).collect();
        let mut open: Vec<usize> = (0..out.len()).filter(|f| out[*f]).collect();
        while let Some(f) = open.pop() {
            if checked[f] {
                continue;
            }
            for &g in &callers[f] {
                if !out[g] {
                    out[g] = true;
                    open.push(g);
                }
            }
        }
        out
    }

    /// Takes in edges that never have a check: a forward jump into another function, or falling into the next one. What
    /// is gone on into counts as a part of the function, with all it calls. Each edge leads to a higher number.
    ///
    /// Rejected: treating them as calls, as the paper could, whose checks lie at the entry itself. A check here lies at the
    /// branch, and a forward jump has none (it is not even an exit of a superblock), so that a cycle closed by one would
    /// run without any.
    pub fn go_on_into(&mut self, edges: &[(usize, usize)]) {
        let known = |(from, to): &(usize, usize)| from < to && *to < self.functions.len();
        let mut edges: Vec<(usize, usize)> = edges.iter().copied().filter(known).collect();
        // The last function first: what a function goes on into is complete by then.
        edges.sort_unstable_by(|a, b| b.cmp(a));
        edges.dedup();
        for (from, to) in edges {
            let (before, rest) = self.functions.split_at_mut(to);
            let (function, part) = (&mut before[from], &rest[0]);
            function.calls.extend_from_slice(&part.calls);
            function.calls.sort_unstable();
            function.calls.dedup();
            function.calls_unknown |= part.calls_unknown;
        }
    }

    fn analyse(&self) -> Known {
        let mut called = vec![false; self.functions.len()];
        for (g, caller) in self.functions.iter().enumerate() {
            // A function that only itself calls is called from the outside world only.
            caller.calls.iter().filter(|f| **f != g).for_each(|f| called[*f] = true);
        }
        let root: Vec<bool> = called.iter().map(|called| !called).collect();
        Known { component: self.components(), distance: self.distances(&root), root }
    }

    /// Breadth-first from the roots, and from what can be called from anywhere.
    fn distances(&self, root: &[bool]) -> Vec<usize> {
        let mut distance = vec![usize::MAX; self.functions.len()];
        let starts = |f: &usize| root[*f] || self.functions[*f].address_taken;
        let mut queue: VecDeque<usize> = (0..self.functions.len()).filter(starts).collect();
        queue.iter().for_each(|f| distance[*f] = 0);
        while let Some(f) = queue.pop_front() {
            for &g in &self.functions[f].calls {
                if distance[g] == usize::MAX {
                    distance[g] = distance[f] + 1;
                    queue.push_back(g);
                }
            }
        }
        distance
    }

    fn components(&self) -> Vec<usize> {
        components(self.functions.len(), |f, next| self.functions[f].calls.get(next).copied())
    }

    /// A cycle of calls that meets no check, if there is one. A call to something unknown may lead to every function
    /// whose address is taken, and to no other.
    pub fn unchecked_cycle(&self, checked: &[bool]) -> Option<Vec<usize>> {
        // Node n stands for everything unknown: it is reached by unknown calls and calls all that can be reached so.
        let n = self.functions.len();
        let outside: Vec<usize> = (0..n).filter(|f| self.functions[*f].address_taken).collect();
        let calls = |f: usize| -> Vec<usize> {
            let mut all = if f == n { outside.clone() } else { self.functions[f].calls.clone() };
            if f < n && self.functions[f].calls_unknown {
                all.push(n);
            }
            all.retain(|g| *g == n || !checked[*g]);
            all
        };
        let mut state = vec![0u8; n + 1];
        for start in (0..=n).filter(|f| *f == n || !checked[*f]).collect::<Vec<_>>() {
            let mut path: Vec<(usize, Vec<usize>)> = Vec::new();
            if state[start] == 0 {
                state[start] = 1;
                path.push((start, calls(start)));
            }
            while let Some((f, left)) = path.last_mut() {
                let f = *f;
                match left.pop() {
                    Some(g) if state[g] == 1 => {
                        let from = path.iter().position(|(p, _)| *p == g).unwrap_or(0);
                        return Some(path[from..].iter().map(|(p, _)| *p).collect());
                    }
                    Some(g) if state[g] == 0 => {
                        state[g] = 1;
                        path.push((g, calls(g)));
                    }
                    Some(_) => {}
                    None => {
                        state[f] = 2;
                        path.pop();
                    }
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn graph(calls: &[&[usize]]) -> Graph {
        let function = |calls: &&[usize]| Function { calls: calls.to_vec(), ..Function::default() };
        Graph { functions: calls.iter().map(function).collect() }
    }

    /// Figures 4 and 5: main calls append and check...; check -> match -> substitute -> check; delete_digram is a leaf.
    #[test]
    fn the_papers_example() {
        // 0 main, 1 check, 2 match, 3 substitute, 4 delete_digram
        let g = graph(&[&[1], &[2], &[3, 4], &[1, 4], &[]]);
        assert_eq!(g.checked(), [true, true, false, false, false]);
        assert_eq!(g.unchecked_cycle(&g.checked()), None);
        assert!(g.unchecked_cycle(&[true, false, false, false, false]).is_some());
    }

    #[test]
    fn self_recursion_and_mutual_recursion_keep_a_check() {
        let g = graph(&[&[1], &[1], &[3], &[2]]);
        assert!(g.checked()[1]);
        assert_eq!(g.unchecked_cycle(&g.checked()), None);
    }

    #[test]
    fn recursion_through_a_pointer_meets_the_function_whose_address_is_taken() {
        let mut g = graph(&[&[1], &[]]);
        g.functions[1].calls_unknown = true;
        g.functions[0].address_taken = true;
        assert!(g.unchecked_cycle(&[false, false]).is_some());
        assert_eq!(g.unchecked_cycle(&g.checked()), None);
    }

    /// g is tail-called forward by f and calls it: the only edge with a check is the call.
    #[test]
    fn a_cycle_that_a_forward_jump_closes_keeps_a_check_at_its_call() {
        let mut g = graph(&[&[1], &[], &[1]]);
        g.go_on_into(&[(1, 2)]);
        assert_eq!(g.functions[1].calls, [1]);
        assert!(g.checked()[1]);
        let mut chain = graph(&[&[], &[], &[], &[]]);
        chain.functions[3].calls_unknown = true;
        chain.go_on_into(&[(0, 1), (1, 3), (3, 3), (2, 9)]);
        assert_eq!((0..4).map(|f| chain.is_leaf(f)).collect::<Vec<_>>(), [false, false, true, false]);
    }

    /// 0 is called from anywhere and gets out only through 1, which has a check.
    #[test]
    fn a_function_that_gets_out_through_another_check_needs_none() {
        let mut g = graph(&[&[1, 2], &[], &[]]);
        g.functions[0].address_taken = true;
        (g.functions[1].address_taken, g.functions[1].calls_unknown) = (true, true);
        assert_eq!((g.checked(), g.fewest()), (vec![true, true, false], vec![false, true, false]));
        g.functions[2].calls_unknown = true;
        assert_eq!(g.fewest(), [true, true, false], "another way out");
    }

    #[test]
    fn leaves_never_keep_one() {
        let mut g = graph(&[&[]]);
        g.functions[0].address_taken = true;
        assert_eq!(g.checked(), [false]);
        assert_eq!(g.unchecked_cycle(&[false]), None);
    }

    proptest! {
        #[test]
        fn no_cycle_is_without_a_check(
            edges in proptest::collection::vec((0usize..24, 0usize..24), 0..80),
            odd in proptest::collection::vec((0usize..24, any::<bool>(), any::<bool>()), 0..8),
        ) {
            let mut g = graph(&[&[][..]; 24]);
            for (from, to) in edges {
                g.functions[from].calls.push(to);
            }
            for (f, unknown, taken) in odd {
                g.functions[f].calls_unknown |= unknown;
                g.functions[f].address_taken |= taken;
            }
            let checked = g.checked();
            prop_assert_eq!(g.unchecked_cycle(&checked), None);
            let kept = checked.iter().filter(|c| **c).count();
            prop_assert!(kept <= (0..24).filter(|f| !g.is_leaf(*f)).count());
            let fewest = g.fewest();
            prop_assert_eq!(g.unchecked_cycle(&fewest), None);
            prop_assert!((0..24).all(|f| checked[f] || !fewest[f]));
        }
    }
}
