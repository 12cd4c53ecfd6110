//! Puts a recorded trace through each reader and tells how fast that was, and which loops are hot.
//!
//! `sonde trace record --policy always --record blocks -o trace -- PROGRAM`, then
//! `cargo run --release -p sonde-loops --example replay trace`.

use sonde_event::trace::{TraceReader, replay};
use sonde_event::{Count, Reader};
use sonde_loops::{ExactConfig, ExactReader};
use std::error::Error;
use std::fs::File;
use std::io::BufReader;
use std::time::Instant;

/// Plays the trace; gives what the replay met, and seconds.
fn play<R: Reader>(
    path: &str,
    reader: &mut R,
) -> Result<(sonde_event::trace::Replayed, f64), Box<dyn Error>> {
    let mut trace = TraceReader::new(BufReader::with_capacity(1 << 20, File::open(path)?))?;
    let start = Instant::now();
    let done = replay(&mut trace, reader)?;
    Ok((done, start.elapsed().as_secs_f64()))
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("which trace?")?;
    let mut count = Count::default();
    let (_, floor) = play(&path, &mut count)?;
    let millions = count.counts.instructions as f64 / 1e6;
    println!("decoding alone: {:.0} M instructions/s", millions / floor);
    let mut reader = ExactReader::new(ExactConfig::default())?;
    let (done, seconds) = play(&path, &mut reader)?;
    let memory = reader.memory_bytes() >> 10;
    let start = Instant::now();
    let Some(decoder) = done.decoders.values().next() else { return Err("no process".into()) };
    let profile = reader.finish(decoder.catalog());
    println!(
        "exact: {:.0} M instructions/s ({:.0} without decoding), {memory} KiB, finish {:.3} s",
        millions / seconds,
        millions / (seconds - floor).max(1e-9),
        start.elapsed().as_secs_f64()
    );
    profile.check()?;
    println!("{} loops, {:?} {:?}", profile.loops.len(), profile.irregular, profile.doubts);
    for l in profile.hottest().iter().take(15) {
        println!(
            "{:#x} in {:#x} depth {} executions {} iterations {:.2} ({}..{}) own {:.2} % inclusive {:.2} % cut {:?}",
            l.header,
            l.function,
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
    Ok(())
}
