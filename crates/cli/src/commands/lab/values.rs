//! Paper 2, section 5: slots and simple sampling against the exact values of the same run.

use anyhow::Result;
use sonde_event::Detail;
use sonde_values::race::{Entrant, Race, RaceConfig, RaceResult, Row};

use super::live;
use super::source;
use super::table::{Table, percent};

/// What to experiment on.
#[derive(clap::Args, Debug)]
pub struct ValuesArgs {
    /// Instead: the real slow-down of the program while slots learn, with and without masks at the source
    #[arg(long)]
    live: bool,

    /// Runs of each kind with --live, interleaved; the median counts
    #[arg(long, value_name = "N", default_value_t = 3, requires = "live")]
    rounds: usize,

    #[command(flatten)]
    pub source: source::Args,
}

fn name(entrant: &Entrant) -> String {
    match entrant {
        Entrant::Slots(config) => format!("{} slots", config.slots),
        Entrant::Sampling(config, _) => format!("every {} loads", config.every),
    }
}

fn cells(row: &Row, loads: u64) -> Vec<String> {
    vec![
        name(&row.entrant),
        format!("{:.3}", row.score.rms),
        percent(row.overhead),
        row.cost.recorded.to_string(),
        percent(row.cost.recorded as f64 / loads.max(1) as f64),
        format!("{} of {}", row.score.found, row.score.pairs),
    ]
}

fn verdicts(result: &RaceResult) -> Vec<String> {
    let slots = result.rows.iter().filter(|row| row.stats.is_some());
    let verdict = |row: &Row| {
        let sampling = result.sampling_error_at(row.overhead)?;
        let wins = if row.score.rms < sampling { "beat" } else { "do not beat" };
        Some(format!(
            "{} ({:.3} at {} %) {wins} sampling at equal overhead ({sampling:.3}, between two rates)",
            name(&row.entrant),
            row.score.rms,
            percent(row.overhead),
        ))
    };
    slots.filter_map(verdict).collect()
}

/// The table.
pub fn table(args: &ValuesArgs) -> Result<Table> {
    if args.live {
        return live::table(&args.source, args.rounds);
    }
    // No curves, which the table does not show: each point holds all estimates of all methods.
    let mut race = Race::new(RaceConfig { stretch: u64::MAX, ..RaceConfig::default() })?;
    let fed = args.source.feed(Detail::Values, &mut race)?;
    let result = race.finish(fed.catalog());
    let loads = result.exact.totals.profiled;
    let mut notes = verdicts(&result);
    notes.push("overhead is the paper's model (docs/design/values.md), not measured time".into());
    Ok(Table {
        title: format!(
            "load values: {loads} loads of {} instructions: {}",
            result.exact.loads.len(),
            fed.name
        ),
        paper: vec![
            "weighted RMS error of invariance of values seen 200 times or more with 25 % or more".into(),
            "slots better than sampling every 1,024 loads at equal overhead, all below 2 %".into(),
        ],
        columns: vec!["method", "error", "overhead %", "recorded loads", "recorded %", "found"],
        rows: result.rows.iter().map(|row| cells(row, loads)).collect(),
        layout: None,
        notes,
    })
}
