//! From counts of blocks to loops: which blocks are headers, what lies in each body, which last passes were only tests.

use super::burst::Samples;
use super::claims::Judged;
use super::profile::{LATCHES, LoopStats, Rounds, Spread};
use super::reader::Counted;
use super::rounds::{Passes, Tallies};
use super::seen::Seen;
use crate::graph::Graph;
use crate::natural::{Forest, NONE, Rows};
use sonde_event::{Catalog, Class};

/// What was measured.
pub(super) struct Measured<'a> {
    /// Per block, in instructions.
    pub tallies: &'a Tallies,
    /// Where bursts began, if shares are those of their time.
    pub samples: Option<&'a Samples>,
}

/// How often each block was run.
struct Visits {
    visits: Vec<u64>,
    insns: Vec<u64>,
}

impl Visits {
    fn new(graph: &Graph, counted: &Counted, catalog: &Catalog) -> Visits {
        let n = graph.nodes.len();
        let mut all = Visits { visits: vec![0; n], insns: vec![0; n] };
        for (exit, count) in &counted.exits {
            if let Some(path) = catalog.path(*exit) {
                all.add(graph, path.superblock, path.insns, *count);
            }
        }
        for (superblock, insns, count) in &counted.partials {
            all.add(graph, *superblock, *insns, *count);
        }
        all
    }

    fn add(&mut self, graph: &Graph, superblock: u32, insns: u16, count: u64) {
        for step in graph.steps(superblock).iter().take_while(|s| s.first < insns) {
            let node = step.node as usize;
            let len = graph.nodes[node].insns.len().min(usize::from(insns - step.first)) as u64;
            self.visits[node] += count;
            self.insns[node] += count * len;
        }
    }
}

/// All loops, by header, what is no loop, and how many activations turned out to have begun in loops not known then.
pub(super) fn loops(
    graph: &Graph,
    measured: &Measured<'_>,
    counted: &Counted,
    catalog: &Catalog,
) -> (Vec<LoopStats>, Rounds, u64) {
    let (forest, rows) = graph.analyse();
    let visits = Visits::new(graph, counted, catalog);
    let mut stats: Vec<LoopStats> = (0..forest.loops.len()).map(|id| outline(graph, &forest, id)).collect();
    let tallies = measured.tallies;
    let recursive = bodies(graph, &forest, &visits, measured, &mut stats);
    let mut irregular = Rounds { regions: forest.irregular.len() as u64, ..Rounds::default() };
    for (id, l) in stats.iter_mut().enumerate() {
        l.seen = measured.samples.map_or_else(Seen::default, |samples| samples.seen(forest.loops[id].header));
    }
    let misplaced = executions(graph, &forest, &rows, tallies, &mut stats, &mut irregular);
    for (id, l) in stats.iter_mut().enumerate() {
        let header = forest.loops[id].header;
        let tally = &tallies.of[header as usize];
        l.cut.starts += u64::from(tally.cut_starts);
        l.cut.ends += u64::from(tally.cut_ends);
        l.cut.passes += tally.cut_passes;
        // What is left was run before anything was known to lead back to the header, so without a round.
        let followed = l.passes + l.cut.passes + tally.unplaced;
        let rest = visits.visits[header as usize].saturating_sub(followed);
        add(l, &Passes::of(1, rest), false);
        if recursive[id] {
            // Calls within calls would count twice; what was measured counts once, but lacks executions from before
            // the loop was known.
            l.inclusive = tallies.inclusive[header as usize].max(l.own);
        }
    }
    weigh(graph, &forest, measured.samples, &mut stats);
    stats.sort_unstable_by_key(|l| l.header);
    (stats, irregular, misplaced)
}

/// What loops weigh: the time of bursts that began in them, or their instructions.
fn weigh(graph: &Graph, forest: &Forest, samples: Option<&Samples>, stats: &mut [LoopStats]) {
    let sampled = samples.map(|samples| samples.by_loop(graph, forest));
    for (id, l) in stats.iter_mut().enumerate() {
        let counted = (l.own as f64, l.inclusive as f64);
        (l.own_weight, l.inclusive_weight) = sampled.as_ref().map_or(counted, |sums| sums[id]);
    }
}

/// What the graph alone says of a loop.
fn outline(graph: &Graph, forest: &Forest, id: usize) -> LoopStats {
    let l = &forest.loops[id];
    let pc = graph.nodes[l.header as usize].pc();
    let last = |n: &u32| graph.nodes[*n as usize].insns.last().copied().unwrap_or(0);
    let mut latches: Vec<u64> = l.latches.iter().map(last).collect();
    latches.sort_unstable();
    latches.dedup();
    latches.truncate(LATCHES);
    let parent = forest.loops.get(l.parent as usize).map(|p| graph.nodes[p.header as usize].pc());
    LoopStats {
        header: pc,
        function: graph.entry_of(pc),
        parent,
        depth: l.depth,
        latches,
        low: pc,
        guessed: !forest.certain[l.header as usize],
        ..LoopStats::default()
    }
}

/// Adds up what lies in each loop: its own, then what inner loops have, then what it calls. Tells which loops call
/// themselves.
fn bodies(
    graph: &Graph,
    forest: &Forest,
    visits: &Visits,
    measured: &Measured<'_>,
    stats: &mut [LoopStats],
) -> Vec<bool> {
    let mut high: Vec<u64> = vec![0; stats.len()];
    let mut recursive = vec![false; stats.len()];
    for (i, node) in graph.nodes.iter().enumerate() {
        let id = forest.inner[i] as usize;
        let Some(l) = stats.get_mut(id) else { continue };
        l.own += visits.insns[i];
        l.body += node.insns.len() as u64;
        l.low = l.low.min(node.pc());
        high[id] = high[id].max(node.end);
        l.inclusive += visits.insns[i] + measured.tallies.called[i];
        recursive[id] |= measured.tallies.of[i].recursive;
    }
    // Loops are numbered in preorder: from behind, inner ones come first.
    for id in (0..stats.len()).rev() {
        let outer = forest.loops[id].parent as usize;
        if outer != NONE as usize {
            let inner = stats[id].clone();
            let l = &mut stats[outer];
            l.inclusive += inner.inclusive;
            l.body += inner.body;
            l.low = l.low.min(inner.low);
            high[outer] = high[outer].max(high[id]);
            recursive[outer] |= recursive[id];
        }
        stats[id].extent = high[id].saturating_sub(stats[id].low);
    }
    recursive
}

fn executions(
    graph: &Graph,
    forest: &Forest,
    rows: &Rows,
    tallies: &Tallies,
    stats: &mut [LoopStats],
    irregular: &mut Rounds,
) -> u64 {
    let working = working(graph, forest);
    for (id, l) in stats.iter_mut().enumerate() {
        l.tests_first = tests_first(graph, forest, rows, id, working[id]);
    }
    let mut whole = tallies.executions();
    let misplaced = claims(graph, forest, tallies, stats, &mut whole);
    for (node, after, passes) in whole {
        let id = forest.headed[node as usize];
        if id == NONE {
            if passes.most > 1 {
                irregular.executions += passes.executions;
                irregular.passes += passes.total;
            }
            continue;
        }
        let outside = after == NONE || !forest.holds(id, after);
        let l = &mut stats[id as usize];
        let test = outside && l.tests_first;
        add(l, &passes, test);
    }
    misplaced
}

/// Adds what was whole indeed to `whole`, the rest to what was cut.
fn claims(
    graph: &Graph,
    forest: &Forest,
    tallies: &Tallies,
    stats: &mut [LoopStats],
    whole: &mut Vec<(u32, u32, Passes)>,
) -> u64 {
    let (judged, misplaced) = tallies.claims.judge(graph, forest);
    let mut before = (NONE, NONE);
    for (claim, n, judged) in judged {
        if judged == Judged::Whole {
            whole.push((claim.node, claim.after, Passes::of(claim.passes, n)));
            continue;
        }
        let Some(l) = stats.get_mut(forest.headed[claim.node as usize] as usize) else { continue };
        l.cut.passes += n * claim.passes;
        // What seemed to begin and end was neither, or did not end.
        let ends = if judged == Judged::Open { n } else { 2 * n };
        l.seen.ends = l.seen.ends.saturating_sub(ends);
        match judged {
            // Rounds of one execution may seem to be many: each activation began within one.
            Judged::Began(most) if before != (claim.opening, claim.node) => l.cut.starts += n.min(most),
            Judged::Open => l.cut.ends += n,
            _ => {}
        }
        before = (claim.opening, claim.node);
    }
    misplaced
}

/// Whether a loop is tested where it begins (`while`), not where it goes round (`do while`, and a `while` that the
/// compiler turned into one): nothing that goes round can leave. Without optimization, `while (1)` with a `break` at its end
/// goes round by a jump behind that: what lies before the test is not only a test then, but all that the loop does.
fn tests_first(graph: &Graph, forest: &Forest, rows: &Rows, id: usize, working: usize) -> bool {
    let l = &forest.loops[id];
    if line(graph, rows, l.header).filter(|node| works(graph, *node)).count() == working {
        return false;
    }
    let leaves = |latch: &u32| {
        let ways = rows.of(*latch);
        // A way that was never taken can lead to code that is not known.
        let unknown = graph.nodes[*latch as usize].branch == Some(Class::Conditional) && ways.len() < 2;
        unknown || ways.iter().any(|to| !forest.holds(id as u32, *to))
    };
    !l.latches.iter().any(leaves) && !rows.has(end_of_line(graph, rows, l.header), l.header)
}

/// Whether a block does anything but jump.
fn works(graph: &Graph, node: u32) -> bool {
    let block = &graph.nodes[node as usize];
    block.insns.len() > 1 || block.branch != Some(Class::Jump)
}

/// How many blocks of each loop, inner ones included, do anything but jump.
fn working(graph: &Graph, forest: &Forest) -> Vec<usize> {
    let mut count = vec![0; forest.loops.len()];
    for node in (0..graph.nodes.len() as u32).filter(|node| works(graph, *node)) {
        if let Some(count) = count.get_mut(forest.inner[node as usize] as usize) {
            *count += 1;
        }
    }
    // Inner loops come behind outer ones.
    for id in (0..count.len()).rev() {
        let inner = count[id];
        if let Some(outer) = count.get_mut(forest.loops[id].parent as usize) {
            *outer += inner;
        }
    }
    count
}

/// The last block of the straight line that begins with a block.
fn end_of_line(graph: &Graph, rows: &Rows, start: u32) -> u32 {
    line(graph, rows, start).last().unwrap_or(start)
}

/// The straight line that begins with a block.
fn line<'a>(graph: &'a Graph, rows: &'a Rows, start: u32) -> impl Iterator<Item = u32> + 'a {
    std::iter::successors(Some(start), move |node| match rows.of(*node) {
        [next] if graph.nodes[*node as usize].straight && *next != start => Some(*next),
        _ => None,
    })
    .take(graph.nodes.len())
}

/// Adds executions; `test` says that the last pass of each was only a test.
fn add(l: &mut LoopStats, passes: &Passes, test: bool) {
    let less = u64::from(test);
    let spread = Spread {
        executions: passes.executions,
        iterations: passes.total - less * passes.executions,
        least: passes.least.saturating_sub(less),
        most: passes.most.saturating_sub(less),
        buckets: if test { passes.less } else { passes.buckets },
    };
    if passes.executions == 0 {
        return;
    }
    l.whole.merge(&spread);
    l.passes += passes.total;
    l.single += passes.buckets[1];
}
