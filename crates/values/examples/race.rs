//! Races the methods on a recorded program: `cargo run --release -p sonde-values --example race -- TRACE`.

use sonde_event::trace::{TraceReader, replay};
use sonde_values::race::{Entrant, Race, RaceConfig, Row};
use std::error::Error;
use std::fs::File;

fn name(entrant: &Entrant) -> String {
    match entrant {
        Entrant::Slots(config) => format!("{} slots", config.slots),
        Entrant::Sampling(config, _) => format!("every {}", config.every),
    }
}

fn print(row: &Row) {
    let (s, c) = (row.score, row.cost);
    println!(
        "{:12} error {:6.3}  beyond 5 % {:5.1} %  found {:5} of {:5}  overhead {:6.3} %  recorded {:10}  {:?}",
        name(&row.entrant),
        s.rms,
        100.0 * s.beyond_5,
        s.found,
        s.pairs,
        100.0 * row.overhead,
        c.recorded,
        row.stats
    );
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("give a trace, recorded with --record values")?;
    let mut race = Race::new(RaceConfig::default())?;
    let replayed = replay(&mut TraceReader::new(File::open(path)?)?, &mut race)?;
    let decoder = replayed.decoders.values().next().ok_or("the trace is empty")?;
    let result = race.finish(decoder.catalog());
    let t = result.exact.totals;
    println!(
        "{} instructions, {} loads, {} profiled, {} static loads",
        result.instructions,
        t.loads,
        t.profiled,
        result.exact.loads.len()
    );
    result.rows.iter().for_each(print);
    for row in result.rows.iter().filter(|r| r.stats.is_some()) {
        let Some(other) = result.sampler_of_equal_overhead(row) else { continue };
        println!(
            "\n{} against {}:\n      loads    error  overhead  recorded |  error  overhead",
            name(&row.entrant),
            name(&other.entrant)
        );
        for (a, b) in row.curve.iter().zip(&other.curve) {
            println!(
                "{:11} {:8.3} {:7.3} % {:9} | {:6.3} {:7.3} %",
                a.loads,
                a.score.rms,
                100.0 * a.overhead,
                a.cost.recorded,
                b.score.rms,
                100.0 * b.overhead
            );
        }
    }
    Ok(())
}
