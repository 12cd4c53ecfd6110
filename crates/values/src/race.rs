//! Several methods on the same stream, with their errors and costs over time: the data of the paper's figures 6 to 9.

use crate::compare::{Estimates, Score, Truth, Worth};
use crate::error::ValuesError;
use crate::exact::{ExactConfig, ExactReader};
use crate::exact_table::TableConfig;
use crate::lfsr::Lfsr;
use crate::overhead::{Cost, OverheadModel};
use crate::profile::ValueProfile;
use crate::sampling::{SamplingConfig, SamplingReader};
use crate::slots::{SlotConfig, SlotReader, SlotStats};
use sonde_event::{Catalog, Reader, Run};

/// A method that takes part.
#[derive(Clone, Debug, PartialEq)]
pub enum Entrant {
    /// Slots.
    Slots(SlotConfig),
    /// Simple sampling, at a constant distance or a varying one.
    Sampling(SamplingConfig, bool),
}

/// What a race is about.
#[derive(Clone, Debug, PartialEq)]
pub struct RaceConfig {
    /// The reference.
    pub exact: ExactConfig,
    /// Who takes part.
    pub entrants: Vec<Entrant>,
    /// Which values count.
    pub worth: Worth,
    /// What things cost.
    pub model: OverheadModel,
    /// Loads to leave out at the beginning: the paper looks at a dominant phase, not at how programs start.
    pub skip: u64,
    /// Loads per point of the curves, at first.
    pub stretch: u64,
    /// Seed of all random numbers.
    pub seed: u32,
}

impl Default for RaceConfig {
    /// Slots of half, one and two times the paper's size, and simple sampling every 32 to 32768 loads: whatever slots
    /// cost, there are samplers that cost a little more and a little less.
    fn default() -> Self {
        // Compilers have more loads than a profile need keep; what is forgotten here would be no reference any more, and an
        // error that one method is spared and the other is not.
        let table = TableConfig { loads: 1 << 18, ..TableConfig::default() };
        let slots = [128, 256, 512].map(|n| Entrant::Slots(SlotConfig::with_slots(n)));
        let sampling = |log2: u32| {
            Entrant::Sampling(SamplingConfig { every: 1 << log2, table, ..SamplingConfig::default() }, true)
        };
        RaceConfig {
            exact: ExactConfig { table, ..ExactConfig::default() },
            entrants: slots.into_iter().chain((5..=15).map(sampling)).collect(),
            worth: Worth::default(),
            model: OverheadModel::default(),
            skip: 0,
            stretch: 1 << 16,
            seed: 1,
        }
    }
}

enum Runner {
    Slots(Box<SlotReader>),
    Sampling(Box<SamplingReader>, u64),
}

impl Runner {
    fn new(entrant: &Entrant, config: &RaceConfig) -> Result<Runner, ValuesError> {
        let random = Lfsr::new(config.seed);
        Ok(match entrant {
            Entrant::Slots(slots) => Runner::Slots(Box::new(SlotReader::new(*slots, random)?)),
            Entrant::Sampling(sampling, vary) => {
                let reader = SamplingReader::new(*sampling, vary.then_some(random))?;
                Runner::Sampling(Box::new(reader), config.model.buffer)
            }
        })
    }

    fn cost(&self) -> Cost {
        match self {
            Runner::Slots(slots) => {
                let stats = slots.profiler().stats();
                Cost { interrupts: stats.interrupts, updates: stats.copied, recorded: stats.samples }
            }
            Runner::Sampling(sampling, buffer) => {
                let samples = sampling.samples();
                Cost { interrupts: samples.div_ceil((*buffer).max(1)), updates: samples, recorded: samples }
            }
        }
    }

    fn cycles(&self, model: &OverheadModel) -> f64 {
        match self {
            Runner::Slots(_) => model.slots(&self.cost()),
            Runner::Sampling(..) => model.sampling(&self.cost()),
        }
    }

    fn estimates(&self, narrow: bool) -> Estimates {
        let mut all = Estimates::new(narrow);
        match self {
            Runner::Slots(slots) => slots.profiler().table().estimates(&mut |pc, v, s| all.add(pc, v, s)),
            Runner::Sampling(sampling, _) => sampling.table().estimates(&mut |pc, v, s| all.add(pc, v, s)),
        }
        all
    }
}

/// Most points kept of a curve.
const POINTS: usize = 32;

struct Snapshot {
    loads: u64,
    instructions: u64,
    cost: Cost,
    cycles: f64,
    estimates: Estimates,
}

/// Reads the stream of one process.
pub struct Race {
    config: RaceConfig,
    exact: ExactReader,
    runners: Vec<(Entrant, Runner, Vec<Snapshot>)>,
    skipped: u64,
    loads: u64,
    instructions: u64,
    stretch: u64,
    next: u64,
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CurvePoint {
    /// Loads executed until then.
    pub loads: u64,
    /// How good the profile was by then, compared with the exact one of the whole run.
    pub score: Score,
    /// What it had cost.
    pub cost: Cost,
    /// The same in cycles of the model, as a share of the program's so far.
    pub overhead: f64,
}

/// How one method did.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The method.
    pub entrant: Entrant,
    /// The result.
    pub profile: ValueProfile,
    /// How good it is.
    pub score: Score,
    /// What it cost.
    pub cost: Cost,
    /// The same as a share of the program's cycles.
    pub overhead: f64,
    /// What the slots did, if it was slots.
    pub stats: Option<SlotStats>,
    /// Over time.
    pub curve: Vec<CurvePoint>,
}

/// How all did.
#[derive(Clone, Debug, PartialEq)]
pub struct RaceResult {
    /// The reference.
    pub exact: ValueProfile,
    /// Instructions executed.
    pub instructions: u64,
    /// The methods, in the order of the settings.
    pub rows: Vec<Row>,
}

impl Race {
    /// At the start.
    pub fn new(config: RaceConfig) -> Result<Race, ValuesError> {
        let runner = |e: &Entrant| Ok((e.clone(), Runner::new(e, &config)?, Vec::new()));
        let runners = config.entrants.iter().map(runner).collect::<Result<_, ValuesError>>()?;
        let (exact, stretch) = (ExactReader::new(config.exact)?, config.stretch.max(1));
        Ok(Race { config, exact, runners, skipped: 0, loads: 0, instructions: 0, stretch, next: stretch })
    }

    #[cold]
    fn snapshot(&mut self) {
        let thin = self.runners.first().is_some_and(|(_, _, snapshots)| snapshots.len() + 1 >= POINTS);
        for (entrant, runner, snapshots) in &mut self.runners {
            let narrow = matches!(entrant, Entrant::Slots(SlotConfig { narrow: true, .. }));
            snapshots.push(Snapshot {
                loads: self.loads,
                instructions: self.instructions,
                cost: runner.cost(),
                cycles: runner.cycles(&self.config.model),
                estimates: runner.estimates(narrow),
            });
            if thin {
                let mut number = 0;
                snapshots.retain(|_| {
                    number += 1;
                    number % 2 == 0
                });
            }
        }
        self.stretch *= if thin { 2 } else { 1 };
        self.next = self.loads + self.stretch;
    }

    /// The result; `catalog` is that of the decoder which fed the stream.
    pub fn finish(self, catalog: &Catalog) -> RaceResult {
        let exact = self.exact.finish(catalog);
        let truth = Truth::of(&exact, self.config.worth);
        let model = self.config.model;
        let row = |(entrant, runner, snapshots): (Entrant, Runner, Vec<Snapshot>)| {
            let (cost, cycles) = (runner.cost(), runner.cycles(&model));
            let curve = snapshots.iter().map(|s| s.judged(&truth, &model)).collect();
            let (profile, stats) = match runner {
                Runner::Slots(slots) => {
                    let stats = slots.profiler().stats();
                    (slots.finish(catalog), Some(stats))
                }
                Runner::Sampling(sampling, _) => (sampling.finish(catalog), None),
            };
            let score = truth.score(&Estimates::of(&profile));
            let overhead = model.share(cycles, self.instructions);
            Row { entrant, profile, score, cost, overhead, stats, curve }
        };
        let rows = self.runners.into_iter().map(row).collect();
        RaceResult { exact, instructions: self.instructions, rows }
    }
}

impl Snapshot {
    fn judged(&self, truth: &Truth, model: &OverheadModel) -> CurvePoint {
        CurvePoint {
            loads: self.loads,
            score: truth.score(&self.estimates),
            cost: self.cost,
            overhead: model.share(self.cycles, self.instructions),
        }
    }
}

impl RaceResult {
    /// Simple sampling at equal overhead: the cheapest sampler that costs at least as much as this row.
    pub fn sampler_of_equal_overhead(&self, row: &Row) -> Option<&Row> {
        let samplers = self.rows.iter().filter(|r| matches!(r.entrant, Entrant::Sampling(..)));
        samplers.filter(|r| r.overhead >= row.overhead).min_by(|a, b| a.overhead.total_cmp(&b.overhead))
    }

    /// The error of simple sampling at exactly this overhead: between two samplers on a straight line over the logarithm
    /// of overhead, since rates are powers of two; none outside of what the samplers cost.
    pub fn sampling_error_at(&self, overhead: f64) -> Option<f64> {
        let samplers = self.rows.iter().filter(|r| matches!(r.entrant, Entrant::Sampling(..)));
        let mut points: Vec<(f64, f64)> = samplers.map(|r| (r.overhead, r.score.rms)).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        between(&points, overhead)
    }
}

fn between(points: &[(f64, f64)], overhead: f64) -> Option<f64> {
    let pair = points.windows(2).find(|w| w[0].0 <= overhead && overhead <= w[1].0)?;
    let [(low, first), (high, second)] = [pair[0], pair[1]];
    let part = if low > 0.0 && high > low { (overhead / low).ln() / (high / low).ln() } else { 1.0 };
    Some(first + part * (second - first))
}

impl Reader for Race {
    fn run(&mut self, run: &Run<'_>) {
        if self.skipped < self.config.skip {
            self.skipped += u64::from(run.path.loads);
            return;
        }
        self.exact.run(run);
        for (_, runner, _) in &mut self.runners {
            match runner {
                Runner::Slots(slots) => slots.run(run),
                Runner::Sampling(sampling, _) => sampling.run(run),
            }
        }
        self.loads += u64::from(run.path.loads);
        self.instructions += run.instructions();
        if self.loads >= self.next {
            self.snapshot();
        }
    }

    fn gap(&mut self) {
        self.exact.gap();
        for (_, runner, _) in &mut self.runners {
            match runner {
                Runner::Slots(slots) => slots.gap(),
                Runner::Sampling(sampling, _) => sampling.gap(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::between;

    #[test]
    fn errors_lie_between_those_of_neighbours() {
        let points = [(0.01, 0.2), (0.04, 0.1), (0.08, 0.05)];
        assert_eq!(between(&points, 0.04), Some(0.1));
        assert!((between(&points, 0.02).unwrap() - 0.15).abs() < 1e-12);
        assert_eq!((between(&points, 0.005), between(&points, 0.1)), (None, None));
    }
}
