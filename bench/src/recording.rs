//! A program recorded in full and kept in memory as the probe would leave it, to be played to readers.

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::time::{ClockId, clock_gettime};
use sonde_event::maps::Mapping;
use sonde_event::trace::{Chunk, Item, TraceReader};
use sonde_event::{Catalog, Decoder, Reader};

/// Log and mappings in their order.
enum Part {
    Log(i32, Vec<u64>),
    Mappings(Vec<Mapping>),
}

/// A recording in memory.
pub struct Recording {
    decoder: Decoder,
    parts: Vec<Part>,
    command: Vec<String>,
}

impl Recording {
    /// Records a program, or `gzip` of some generated text if none is given; keeps the first `limit` bytes of its log.
    pub fn make(sonde: &Path, program: &[OsString], limit: usize) -> Result<Recording> {
        let folder = tempfile::tempdir()?;
        let (trace, input) = (folder.path().join("trace"), folder.path().join("input"));
        let mut program = program.to_vec();
        if program.is_empty() {
            let lines: String =
                (0..400_000u32).map(|i| format!("{}\n", i.wrapping_mul(2_654_435_761))).collect();
            std::fs::write(&input, lines)?;
            program = vec!["gzip".into(), "-c".into(), input.into()];
        }
        let command: Vec<String> = program.iter().map(|w| w.to_string_lossy().into_owned()).collect();
        let status = Command::new(sonde)
            .args(["trace", "record", "--policy", "always", "-o"])
            .arg(&trace)
            .arg("--")
            .args(&program)
            .stdout(Stdio::null())
            .status()
            .with_context(|| format!("cannot run {}", sonde.display()))?;
        if !status.success() {
            bail!("recording {} ended with {status}", command.join(" "));
        }
        Recording::load(File::open(&trace)?, limit, command)
    }

    /// A trace that was recorded before.
    pub fn open(trace: &Path, limit: usize) -> Result<Recording> {
        let file = File::open(trace).with_context(|| format!("cannot open {}", trace.display()))?;
        Recording::load(file, limit, vec![trace.to_string_lossy().into_owned()])
    }

    fn load(file: File, limit: usize, command: Vec<String>) -> Result<Recording> {
        let mut trace = TraceReader::new(file)?;
        let mut decoder = None;
        let mut parts: Vec<Part> = Vec::new();
        let mut bytes = 0;
        while let Some(item) = trace.next()? {
            let Item::Chunk { chunk, .. } = item else { bail!("the trace is damaged") };
            match chunk {
                Chunk::Meta(meta) => decoder = meta.detail().map(Decoder::new),
                Chunk::Descriptions(mut words) => {
                    let decoder = decoder.as_mut().context("no meta chunk")?;
                    while !words.is_empty() {
                        let len = words[0] as u32 as usize / 8;
                        let rest = words.split_off(len);
                        decoder.describe(&words)?;
                        words = rest;
                    }
                }
                Chunk::Log { .. } if bytes >= limit => break,
                Chunk::Log { tid, words } => {
                    bytes += words.len() * 8;
                    parts.push(Part::Log(tid, words));
                }
                Chunk::Mappings(all) => parts.push(Part::Mappings(all)),
                _ => {}
            }
        }
        Ok(Recording { decoder: decoder.context("no meta chunk")?, parts, command })
    }

    /// Plays everything through the interface that a live session uses; returns seconds of CPU time.
    pub fn play(&mut self, reader: &mut dyn Reader) -> Result<f64> {
        let before = thread_time()?;
        for part in &self.parts {
            match part {
                Part::Log(tid, words) => self.decoder.log(*tid, words, reader)?,
                Part::Mappings(all) => all.iter().for_each(|mapping| reader.mapping(mapping)),
            }
        }
        Ok((thread_time()? - before).as_secs_f64())
    }

    /// The code that it describes.
    pub fn catalog(&self) -> &Catalog {
        self.decoder.catalog()
    }

    /// Bytes of log.
    pub fn bytes(&self) -> usize {
        let bytes = |part: &Part| if let Part::Log(_, words) = part { words.len() * 8 } else { 0 };
        self.parts.iter().map(bytes).sum()
    }

    /// The command that was recorded, without folders.
    pub fn command(&self) -> String {
        let words = self.command.iter().map(|w| w.rsplit('/').next().unwrap_or(w));
        words.collect::<Vec<_>>().join(" ")
    }
}

/// CPU time of this thread.
fn thread_time() -> Result<Duration> {
    Ok(Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).context("clock_gettime")?))
}
