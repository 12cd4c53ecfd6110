//! Puts a recorded trace of one process through each reader, tells how fast that was, and compares them.
//!
//! `sonde trace record --policy always --record blocks -o trace -- PROGRAM`, then
//! `cargo run --release -p sonde-loops --example replay trace`.

use sonde_event::trace::{Replayed, TraceReader, replay};
use sonde_event::{Count, Reader};
use sonde_loops::{
    Calls, CompareConfig, Comparison, DaprofConfig, DaprofReader, ExactConfig, ExactReader, FrequentConfig,
    FrequentReader, LoopsProfile, PartitionConfig, compare, daprof_reports, frequent_reports, partition,
};
use std::error::Error;
use std::fs::File;
use std::io::BufReader;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// CPU time of this thread, which a busy machine changes less than it does the time of day.
fn cpu_seconds() -> Outcome<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split(' ').next().ok_or("no times")?.parse::<f64>()? / 1e9)
}

/// A trace, and how long decoding it takes.
struct Trace {
    path: String,
    floor: f64,
    millions: f64,
}

impl Trace {
    fn open(path: String) -> Outcome<Trace> {
        let mut trace = Trace { path, floor: 0.0, millions: 0.0 };
        let mut count = Count::default();
        trace.floor = trace.play(&mut count)?.1;
        trace.millions = count.counts.instructions as f64 / 1e6;
        println!("{:.1} M instructions, decoded at {:.0} M/s", trace.millions, trace.millions / trace.floor);
        Ok(trace)
    }

    fn play<R: Reader>(&self, reader: &mut R) -> Outcome<(Replayed, f64)> {
        let mut trace = TraceReader::new(BufReader::with_capacity(1 << 20, File::open(&self.path)?))?;
        let start = cpu_seconds()?;
        let done = replay(&mut trace, reader)?;
        Ok((done, cpu_seconds()? - start))
    }

    fn timed<R: Reader>(&self, name: &str, reader: &mut R) -> Outcome<Replayed> {
        let (done, seconds) = self.play(reader)?;
        let alone = (seconds - self.floor).max(1e-9);
        let rate = |s: f64| self.millions / s;
        println!("{name}: {:.0} M instructions/s, {:.0} without decoding", rate(seconds), rate(alone));
        Ok(done)
    }
}

fn show(name: &str, c: &Comparison) {
    let percent = |e: Option<f64>| e.map_or("-".into(), |e| format!("{:.1} %", 100.0 * e));
    println!(
        "{name}: errors: average iterations {}, executions {}, share {:.1} %; captured {:.1} of {:.1} %, {} missed",
        percent(c.average_error),
        percent(c.executions_error),
        100.0 * c.share_error,
        100.0 * c.captured,
        100.0 * c.possible,
        c.missed
    );
}

fn exact(trace: &Trace) -> Outcome<LoopsProfile> {
    let mut reader = ExactReader::new(ExactConfig::default())?;
    let done = trace.timed("exact", &mut reader)?;
    let memory = reader.memory_bytes() >> 10;
    let start = cpu_seconds()?;
    let Some(decoder) = done.decoders.values().next() else { return Err("no process in this trace".into()) };
    let profile = reader.finish(decoder.catalog());
    profile.check()?;
    println!("finished in {:.3} s; {memory} KiB", cpu_seconds()? - start);
    println!("{} loops, {:?} {:?}", profile.loops.len(), profile.irregular, profile.doubts);
    for l in profile.hottest().iter().take(10) {
        println!(
            "  {:#x} depth {}: {} x {:.2} ({} to {}), own {:.2} %, inclusive {:.2} %, {:?}",
            l.header,
            l.depth,
            l.whole.executions,
            l.whole.mean(),
            l.whole.least,
            l.whole.most,
            100.0 * profile.share(l.own_weight),
            100.0 * profile.share(l.inclusive_weight),
            l.cut
        );
    }
    Ok(profile)
}

fn main() -> Outcome<()> {
    let trace = Trace::open(std::env::args().nth(1).ok_or("which trace?")?)?;
    let exact = exact(&trace)?;
    let config = CompareConfig::default();
    for ways in [32, 16, 8] {
        for calls in [Calls::Plain, Calls::Followed] {
            let name = format!("daprof {ways}-way {calls:?}");
            let mut reader = DaprofReader::new(DaprofConfig { calls, ..DaprofConfig::with_ways(ways) })?;
            trace.timed(&name, &mut reader)?;
            let profile = reader.finish();
            profile.check()?;
            println!(
                "  {} branches, {} dropped, {} replaced",
                profile.branches, profile.dropped, profile.replaced
            );
            show(&name, &compare(&daprof_reports(&profile, &config), &exact, &config));
            let within = CompareConfig { most_iterations: Some(1023.0), ..config };
            show("  within 10 bits", &compare(&daprof_reports(&profile, &within), &exact, &within));
        }
    }
    let mut reader = FrequentReader::new(FrequentConfig { distance: 1024, ..FrequentConfig::default() })?;
    trace.timed("frequent", &mut reader)?;
    let profile = reader.finish();
    profile.check()?;
    show("frequent", &compare(&frequent_reports(&profile, &config), &exact, &config));
    let parts = partition(&exact, &PartitionConfig::default())?;
    println!("in hardware: {} loops, speed-up {:.2}", parts.chosen.len(), parts.speedup);
    Ok(())
}
