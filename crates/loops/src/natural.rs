//! Natural loops of a control-flow graph: dominators, back-edges, bodies, nesting, and what is left over where the
//! graph is irreducible. Knows nothing of programs, so that it can be held against a textbook twin.

/// No node, no loop.
pub(crate) const NONE: u32 = u32::MAX;

/// Not looked at yet.
pub(crate) const UNKNOWN: u32 = u32::MAX - 1;

/// A directed graph in rows: the successors of `n` are `to[from[n]..from[n + 1]]`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    from: Vec<u32>,
    to: Vec<u32>,
}

impl Rows {
    /// Of pairs; repeated ones count once.
    pub fn new(nodes: usize, edges: &mut Vec<(u32, u32)>) -> Rows {
        edges.sort_unstable();
        edges.dedup();
        let mut from = vec![0u32; nodes + 1];
        for (a, _) in edges.iter() {
            from[*a as usize + 1] += 1;
        }
        for i in 0..nodes {
            from[i + 1] += from[i];
        }
        Rows { from, to: edges.iter().map(|e| e.1).collect() }
    }

    pub fn nodes(&self) -> usize {
        self.from.len().saturating_sub(1)
    }

    pub fn of(&self, node: u32) -> &[u32] {
        let n = node as usize;
        &self.to[self.from[n] as usize..self.from[n + 1] as usize]
    }

    pub fn has(&self, a: u32, b: u32) -> bool {
        self.of(a).binary_search(&b).is_ok()
    }

    pub fn edges(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        (0..self.nodes() as u32).flat_map(|a| self.of(a).iter().map(move |b| (a, *b)))
    }

    pub fn reversed(&self) -> Rows {
        let mut edges: Vec<(u32, u32)> = self.edges().map(|(a, b)| (b, a)).collect();
        Rows::new(self.nodes(), &mut edges)
    }
}

/// A natural loop. Its nodes are those whose innermost loop has a number in `id..end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loop {
    pub header: u32,
    /// The loop around it, or [`NONE`].
    pub parent: u32,
    /// 1 for an outermost loop.
    pub depth: u32,
    /// One past the last loop inside it; loops are numbered in preorder.
    pub end: u32,
    /// Sources of its back-edges.
    pub latches: Vec<u32>,
}

/// All loops of a graph.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forest {
    pub loops: Vec<Loop>,
    /// Innermost loop by node.
    pub inner: Vec<u32>,
    /// Loop by header.
    pub headed: Vec<u32>,
    /// Targets of retreating edges that do not dominate the source: entries of irreducible regions.
    pub irregular: Vec<u32>,
    /// Nodes that are reached from given roots, not from guessed ones.
    pub certain: Vec<bool>,
}

impl Forest {
    /// Whether `node` lies in loop number `id`.
    #[inline]
    pub fn holds(&self, id: u32, node: u32) -> bool {
        let Some(inner) = self.inner.get(node as usize) else { return false };
        (id..self.loops[id as usize].end).contains(inner)
    }

    /// New blocks were made; one that was cut off another lies where that does.
    pub fn grow(&mut self, nodes: usize, cut_off: impl Iterator<Item = (u32, u32)>) {
        self.inner.resize(nodes.max(self.inner.len()), UNKNOWN);
        for (lower, upper) in cut_off {
            self.inner[upper as usize] = self.inner[lower as usize];
        }
    }

    /// The headers of the loops around `node`, outermost first; none if it is not known.
    pub fn nest(&self, node: u32) -> Option<Vec<u32>> {
        let mut headers = Vec::new();
        let mut id = self.inner.get(node as usize).copied().filter(|id| *id != UNKNOWN)?;
        while id != NONE {
            headers.push(self.loops[id as usize].header);
            id = self.loops[id as usize].parent;
        }
        headers.reverse();
        Some(headers)
    }
}

/// Depth-first order from several roots.
struct Order {
    /// Nodes in reverse postorder.
    nodes: Vec<u32>,
    /// Place of a node in it, or [`NONE`].
    rank: Vec<u32>,
    /// Whether the edge that the search met leads back onto its own path.
    retreating: Vec<(u32, u32)>,
    is_root: Vec<bool>,
    certain: Vec<bool>,
}

/// Walks the graph depth first. Nodes of `guesses` become roots where nothing before them leads.
fn order(graph: &Rows, roots: &[u32], guesses: &[u32]) -> Order {
    let n = graph.nodes();
    let mut o = Order {
        nodes: Vec::with_capacity(n),
        rank: vec![NONE; n],
        retreating: Vec::new(),
        is_root: vec![false; n],
        certain: vec![false; n],
    };
    // 0: not seen, 1: on the path, 2: done.
    let mut state = vec![0u8; n];
    let mut path: Vec<(u32, u32)> = Vec::new();
    for (i, root) in roots.iter().chain(guesses).enumerate() {
        let certain = i < roots.len();
        if certain {
            o.is_root[*root as usize] = true;
        }
        if state[*root as usize] != 0 {
            continue;
        }
        o.is_root[*root as usize] = true;
        state[*root as usize] = 1;
        o.certain[*root as usize] = certain;
        path.push((*root, 0));
        while let Some((node, next)) = path.last_mut() {
            let (at, successors) = (*node, graph.of(*node));
            let Some(to) = successors.get(*next as usize) else {
                state[at as usize] = 2;
                o.nodes.push(at);
                path.pop();
                continue;
            };
            *next += 1;
            match state[*to as usize] {
                0 => {
                    state[*to as usize] = 1;
                    o.certain[*to as usize] = certain;
                    path.push((*to, 0));
                }
                1 => o.retreating.push((at, *to)),
                _ => {}
            }
        }
    }
    o.nodes.reverse();
    for (i, node) in o.nodes.iter().enumerate() {
        o.rank[*node as usize] = i as u32;
    }
    o
}

/// Immediate dominators by rank in reverse postorder, after Cooper, Harvey and Kennedy: short code, and fast on graphs
/// as shallow as those of functions. Rank 0 stands for the virtual root, so a node's rank is one more than in `order`.
fn dominators(order: &Order, predecessors: &Rows) -> Vec<u32> {
    let mut idom = vec![NONE; order.nodes.len() + 1];
    idom[0] = 0;
    let mut changed = true;
    while changed {
        changed = false;
        for (i, node) in order.nodes.iter().enumerate() {
            let mut new = if order.is_root[*node as usize] { 0 } else { NONE };
            for p in predecessors.of(*node) {
                let rank = order.rank[*p as usize];
                if rank == NONE || idom[rank as usize + 1] == NONE {
                    continue;
                }
                new = if new == NONE { rank + 1 } else { meet(&idom, new, rank + 1) };
            }
            if idom[i + 1] != new {
                idom[i + 1] = new;
                changed = true;
            }
        }
    }
    idom
}

fn meet(idom: &[u32], mut a: u32, mut b: u32) -> u32 {
    while a != b {
        while a > b {
            a = idom[a as usize];
        }
        while b > a {
            b = idom[b as usize];
        }
    }
    a
}

/// Entry and exit times in the dominator tree: `a` dominates `b` if its interval holds that of `b`.
fn intervals(idom: &[u32]) -> Vec<(u32, u32)> {
    // Parents have lower ranks than children: sizes from behind, then places from the front.
    let mut size = vec![1u32; idom.len()];
    for i in (1..idom.len()).rev() {
        size[idom[i] as usize] += size[i];
    }
    let mut next = vec![1u32; idom.len()];
    let mut spans = vec![(0, size[0]); idom.len()];
    for i in 1..idom.len() {
        let parent = idom[i] as usize;
        let start = spans[parent].0 + next[parent];
        next[parent] += size[i];
        spans[i] = (start, start + size[i]);
    }
    spans
}

/// The natural loops of a graph that is entered at `roots`, and at `guesses` where no root leads.
pub(crate) fn natural_loops(graph: &Rows, roots: &[u32], guesses: &[u32]) -> Forest {
    let predecessors = graph.reversed();
    let order = order(graph, roots, guesses);
    let spans = intervals(&dominators(&order, &predecessors));
    let span = |node: u32| spans[order.rank[node as usize] as usize + 1];
    let dominates = |a: u32, b: u32| span(a).0 <= span(b).0 && span(b).1 <= span(a).1;
    let mut back: Vec<(u32, u32)> = Vec::new();
    let mut irregular = Vec::new();
    // An edge to a dominator is always met as a retreating one.
    for (a, b) in &order.retreating {
        if dominates(*b, *a) {
            back.push((order.rank[*b as usize], *a));
        } else {
            irregular.push(*b);
        }
    }
    irregular.sort_unstable();
    irregular.dedup();
    back.sort_unstable();
    let found = bodies(&order, &predecessors, &back);
    numbered(found, graph.nodes(), irregular, order.certain)
}

/// Loops innermost first, with innermost loop by node in that numbering.
struct Found {
    loops: Vec<Loop>,
    inner: Vec<u32>,
}

/// Walks back from the latches of each header. Inner loops are found first and then stepped over as one node.
fn bodies(order: &Order, predecessors: &Rows, back: &[(u32, u32)]) -> Found {
    let mut found = Found { loops: Vec::new(), inner: vec![NONE; predecessors.nodes()] };
    let mut work: Vec<u32> = Vec::new();
    for same in back.chunk_by(|a, b| a.0 == b.0).rev() {
        let header = order.nodes[same[0].0 as usize];
        let id = found.loops.len() as u32;
        let latches: Vec<u32> = same.iter().map(|b| b.1).collect();
        work.extend(&latches);
        found.loops.push(Loop { header, parent: NONE, depth: 0, end: 0, latches });
        while let Some(node) = work.pop() {
            if order.rank[node as usize] == NONE {
                continue;
            }
            let outer = outermost(&found.loops, found.inner[node as usize]);
            if outer == id {
                continue;
            }
            let enter = if outer == NONE {
                found.inner[node as usize] = id;
                node
            } else {
                found.loops[outer as usize].parent = id;
                found.loops[outer as usize].header
            };
            if enter != header {
                work.extend(predecessors.of(enter));
            }
        }
        // The header may have been the header of an inner part only if it is the same loop, which it is not.
        if found.inner[header as usize] == NONE {
            found.inner[header as usize] = id;
        }
    }
    found
}

fn outermost(loops: &[Loop], mut id: u32) -> u32 {
    while id != NONE && loops[id as usize].parent != NONE {
        id = loops[id as usize].parent;
    }
    id
}

/// Renumbers the loops in preorder, so that nesting is a comparison.
fn numbered(found: Found, nodes: usize, irregular: Vec<u32>, certain: Vec<bool>) -> Forest {
    let count = found.loops.len();
    let mut size = vec![1u32; count];
    for i in 0..count {
        // Inner loops come first.
        if found.loops[i].parent != NONE {
            size[found.loops[i].parent as usize] += size[i];
        }
    }
    let mut new = vec![0u32; count];
    let mut next = vec![1u32; count];
    let mut top = 0;
    let mut loops = vec![Loop { header: 0, parent: NONE, depth: 0, end: 0, latches: Vec::new() }; count];
    for i in (0..count).rev() {
        let parent = found.loops[i].parent;
        let (place, depth, outer) = if parent == NONE {
            top += size[i];
            (top - size[i], 1, NONE)
        } else {
            let p = parent as usize;
            next[p] += size[i];
            (new[p] + next[p] - size[i], loops[new[p] as usize].depth + 1, new[p])
        };
        new[i] = place;
        loops[place as usize] = Loop { parent: outer, depth, end: place + size[i], ..found.loops[i].clone() };
    }
    let mut headed = vec![NONE; nodes];
    for (i, l) in loops.iter().enumerate() {
        headed[l.header as usize] = i as u32;
    }
    let inner = found.inner.iter().map(|i| if *i == NONE { NONE } else { new[*i as usize] }).collect();
    Forest { loops, inner, headed, irregular, certain }
}

#[cfg(test)]
#[path = "natural_tests.rs"]
mod tests;
