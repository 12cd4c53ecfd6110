//! How fast loads go through the exact reader, and how fast through one that only counts:
//! `cargo run --release -p sonde-values --example rate -- TRACE`.

use sonde_event::trace::{Chunk, Item, TraceReader};
use sonde_event::{Count, Decoder, Detail, Reader};
use sonde_values::slots::{SlotConfig, SlotReader};
use sonde_values::{ExactConfig, ExactReader, Lfsr, SamplingConfig, SamplingReader};
use std::error::Error;
use std::fs::File;
use std::time::{Duration, Instant};

/// Most words of log that are taken: what follows is more of the same.
const MOST_WORDS: usize = 1 << 27;

/// Descriptions and log of the program, in order, unpacked.
fn chunks(path: &str) -> Result<Vec<Chunk>, Box<dyn Error>> {
    let mut trace = TraceReader::new(File::open(path)?)?;
    let (mut kept, mut words) = (Vec::new(), 0);
    while let Some(item) = trace.next()? {
        let Item::Chunk { stream: 0, chunk, .. } = item else { continue };
        if let Chunk::Log { words: more, .. } = &chunk {
            words += more.len();
        }
        kept.push(chunk);
        if words > MOST_WORDS {
            break;
        }
    }
    Ok(kept)
}

/// Reads everything; the time is that of the log alone.
fn read<R: Reader>(chunks: &[Chunk], reader: &mut R) -> Result<(Duration, Decoder), Box<dyn Error>> {
    let mut decoder = Decoder::new(Detail::Values);
    let mut spent = Duration::ZERO;
    for chunk in chunks {
        match chunk {
            Chunk::Descriptions(words) => describe(&mut decoder, words)?,
            Chunk::Log { tid, words } => {
                let start = Instant::now();
                decoder.log(*tid, words, reader)?;
                spent += start.elapsed();
            }
            _ => {}
        }
    }
    Ok((spent, decoder))
}

fn describe(decoder: &mut Decoder, mut words: &[u64]) -> Result<(), Box<dyn Error>> {
    while let Some(bytes) = words.first().map(|head| *head as u32 as usize) {
        let (this, rest) = words.split_at_checked(bytes / 8).ok_or("a description is cut off")?;
        decoder.describe(this)?;
        words = rest;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("give a trace, recorded with --record values")?;
    let chunks = chunks(&path)?;
    for _ in 0..3 {
        let mut count = Count::default();
        let (counting, _) = read(&chunks, &mut count)?;
        let mut exact = ExactReader::new(ExactConfig::default())?;
        let (exactly, decoder) = read(&chunks, &mut exact)?;
        let mut slots = SlotReader::new(SlotConfig::default(), Lfsr::new(1))?;
        let (by_slots, _) = read(&chunks, &mut slots)?;
        let mut sampling = SamplingReader::new(SamplingConfig::default(), None)?;
        let (sampled, _) = read(&chunks, &mut sampling)?;
        let rate = |time: Duration| count.counts.loads as f64 / time.as_secs_f64() / 1e6;
        println!(
            "million loads a second: counted {:.0}, exact {:.0}, slots {:.0}, sampled {:.0}; exact uses {} KiB for {} loads",
            rate(counting),
            rate(exactly),
            rate(by_slots),
            rate(sampled),
            exact.memory_bytes() / 1024,
            exact.finish(decoder.catalog()).loads.len()
        );
    }
    Ok(())
}
