//! Figures 8 and 10 of paper 1: nodes and error of hot ranges at eps 10 % and 1 %, for code and load values.

use anyhow::Result;
use sonde_event::{Access, Detail, Reader, Run};
use sonde_rap::exact::{ExactCounts, SortedCounts};
use sonde_rap::{Config, ConfigError, Snapshot, Tree};

use super::source::Args;
use super::table::{Table, percent};

/// The paper's hot ranges: 10 % and more.
const HOT: f64 = 0.1;
const EPS: [f64; 2] = [0.1, 0.01];
/// Keys in a batch.
const BATCH: usize = 1 << 13;

/// One stream, counted exactly and by a tree for each eps.
struct Counted {
    exact: ExactCounts<u64>,
    trees: Vec<Tree<u64>>,
    batch: Vec<(u64, u64)>,
}

impl Counted {
    fn new() -> Result<Counted, ConfigError> {
        let trees = EPS.iter().map(|eps| Tree::new(Config::new().eps(*eps))).collect::<Result<_, _>>()?;
        Ok(Counted { exact: ExactCounts::new(), trees, batch: Vec::with_capacity(BATCH) })
    }

    fn add(&mut self, key: u64, weight: u64) {
        self.batch.push((key, weight));
        if self.batch.len() == BATCH {
            self.flush();
        }
    }

    fn flush(&mut self) {
        for (key, weight) in self.batch.drain(..) {
            self.exact.add_weighted(key, weight);
            self.trees.iter_mut().for_each(|tree| tree.add_weighted(key, weight));
        }
    }
}

/// Counts block pcs (weighted by instructions) and load values.
struct Both {
    code: Counted,
    values: Counted,
}

impl Reader for Both {
    fn run(&mut self, run: &Run<'_>) {
        for block in run.blocks() {
            self.code.add(block.block.pc, block.insns.into());
        }
        let loads = run.references().filter(|r| r.access == Access::Load && r.count == 1 && !r.conditional);
        for value in loads.filter_map(|r| r.value) {
            self.values.add(value, 1);
        }
    }
}

/// The error of each hot range, as a share of its exact count.
fn errors(tree: &Snapshot<u64>, exact: &SortedCounts<u64>) -> Vec<f64> {
    let error = |lo: u64, hi: u64, estimate: u64| {
        let truth = exact.count(lo, hi).max(1) as f64;
        (truth - estimate as f64).abs() / truth
    };
    tree.hot(HOT).iter().map(|hot| error(hot.range.lo, hot.range.hi, hot.total)).collect()
}

fn row(name: &str, eps: f64, tree: &mut Tree<u64>, exact: &SortedCounts<u64>) -> Vec<String> {
    let snapshot = tree.snapshot();
    let errors = errors(&snapshot, exact);
    let worst = errors.iter().copied().fold(0.0, f64::max);
    let mean = errors.iter().sum::<f64>() / errors.len().max(1) as f64;
    let samples = &tree.stats().samples;
    let average = samples.iter().map(|s| s.nodes as f64).sum::<f64>() / samples.len().max(1) as f64;
    vec![
        name.into(),
        format!("{} %", 100.0 * eps),
        snapshot.events.to_string(),
        snapshot.nodes_max.to_string(),
        format!("{average:.0}"),
        errors.len().to_string(),
        percent(mean),
        percent(worst),
    ]
}

/// The table.
pub fn table(args: &Args) -> Result<Table> {
    let mut both = Both { code: Counted::new()?, values: Counted::new()? };
    let fed = args.feed(Detail::Values, &mut both)?;
    let mut rows = Vec::new();
    for (name, counted) in [("code", &mut both.code), ("load values", &mut both.values)] {
        counted.flush();
        let exact = counted.exact.sorted();
        for (eps, tree) in EPS.iter().zip(&mut counted.trees) {
            rows.push(row(name, *eps, tree, &exact));
        }
    }
    Ok(Table {
        title: format!("range-adaptive trees against exact counts: {}", fed.name),
        paper: vec![
            "figures 8 and 10; accuracy 98 % (code) and 96.6 % (values) at eps 10 %, 99.7 % at 1 %".into(),
            "at most 500 nodes for code at eps 10 %".into(),
        ],
        columns: vec![
            "stream",
            "eps",
            "events",
            "max nodes",
            "avg nodes",
            "hot ranges",
            "avg error %",
            "worst error %",
        ],
        rows,
        layout: None,
        notes: vec![format!(
            "hot: {} % and more of all events; the error is that of a range's own estimate",
            100.0 * HOT
        )],
    })
}
