//! `sonde trace info`: what a trace holds, chunk by chunk, without decoding the log.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use sonde_event::maps::Mappings;
use sonde_event::trace::{Chunk, End, Item, Meta};

use super::open::{damage, damaged, ends_early, open};
use crate::outcome::CannotWrite;
use crate::quantity::{grouped, size};

/// Chunks of a kind.
#[derive(Default)]
struct Sum {
    chunks: u64,
    stored: u64,
    plain: u64,
}

#[derive(Default)]
struct Info {
    meta: Option<Meta>,
    end: Option<End>,
    mappings: Mappings,
    sums: BTreeMap<&'static str, Sum>,
    streams: BTreeMap<u32, u64>,
    threads: BTreeMap<i32, u64>,
    troubles: Vec<String>,
    damages: u64,
    cut_at: Option<u64>,
}

/// Shows it.
pub fn run(file: &Path, mappings: bool) -> Result<()> {
    let mut trace = open(file)?;
    let mut info = Info::default();
    while let Some(item) = trace.next().with_context(|| file.display().to_string())? {
        info.take(item);
    }
    let chunks = info.sums.values().map(|sum| sum.chunks).sum();
    let whole = ends_early(file, chunks, info.cut_at, info.end.is_some());
    if let Err(early) = &whole {
        info.troubles.push(early.what());
    }
    let mut out = BufWriter::new(io::stdout().lock());
    info.write(&mut out, mappings).and_then(|()| out.flush()).map_err(CannotWrite)?;
    whole?;
    Ok(damaged(file, info.damages, 0)?)
}

impl Info {
    fn take(&mut self, item: Item) {
        match item {
            Item::Chunk { stream, stored, plain, chunk } => {
                *self.streams.entry(stream).or_default() += 1;
                let sum = self.sums.entry(kind(&chunk)).or_default();
                sum.chunks += 1;
                sum.stored += stored;
                sum.plain += plain;
                self.note(chunk, plain);
            }
            Item::Damaged { at, what } => {
                self.damages += 1;
                self.troubles.push(damage(at, what));
            }
            Item::Truncated { at } => self.cut_at = Some(at),
        }
    }

    fn note(&mut self, chunk: Chunk, plain: u64) {
        match chunk {
            Chunk::Meta(meta) => self.meta = Some(*meta),
            Chunk::Mappings(all) => {
                for m in all {
                    self.mappings.add(m);
                }
            }
            Chunk::Log { tid, .. } => *self.threads.entry(tid).or_default() += plain,
            Chunk::End(end) => self.end = Some(*end),
            Chunk::Descriptions(_) => {}
        }
    }

    fn write(&self, out: &mut impl Write, mappings: bool) -> io::Result<()> {
        if let Some(meta) = &self.meta {
            write_meta(out, meta)?;
        }
        if let Some(end) = &self.end {
            write_end(out, end)?;
        }
        for (kind, sum) in &self.sums {
            let (chunks, stored, plain) = (grouped(sum.chunks), size(sum.stored), size(sum.plain));
            writeln!(out, "{kind:12} {chunks} chunks, {stored} for {plain}")?;
        }
        writeln!(out, "processes    {}", self.streams.len())?;
        writeln!(out, "threads      {}", self.threads.len())?;
        writeln!(out, "mapped       {} mappings", self.mappings.all().len())?;
        if mappings {
            for mapping in self.mappings.all() {
                let id: String = mapping.build_id.iter().map(|b| format!("{b:02x}")).collect();
                writeln!(out, "  {mapping} {id}")?;
            }
        }
        self.troubles.iter().try_for_each(|trouble| writeln!(out, "trouble      {trouble}"))
    }
}

fn kind(chunk: &Chunk) -> &'static str {
    match chunk {
        Chunk::Meta(_) => "meta",
        Chunk::Mappings(_) => "mappings",
        Chunk::Descriptions(_) => "descriptions",
        Chunk::Log { .. } => "log",
        Chunk::End(_) => "end",
    }
}

fn write_meta(out: &mut impl Write, meta: &Meta) -> io::Result<()> {
    writeln!(out, "command      {}", meta.command.join(" "))?;
    writeln!(out, "program      {}", meta.path)?;
    writeln!(out, "recorded     {}, {}", meta.policy, meta.detail)?;
    writeln!(out, "trigger      {}", meta.trigger)?;
    writeln!(out, "probe        {}", meta.loader)?;
    let machine = &meta.machine;
    writeln!(out, "machine      {} x {}, Linux {}", machine.processors, machine.processor, machine.kernel)?;
    writeln!(out, "by           sonde {}", meta.sonde)
}

fn write_end(out: &mut impl Write, end: &End) -> io::Result<()> {
    match (end.status, end.signal) {
        (Some(status), _) => writeln!(out, "ended        with status {status}")?,
        (None, Some(signal)) => writeln!(out, "ended        by signal {signal}")?,
        (None, None) => {}
    }
    writeln!(out, "time         {:.3} s of CPU, {:.3} s in all", end.cpu_seconds, end.wall_seconds)?;
    end.counters.iter().try_for_each(|(name, count)| writeln!(out, "  {name:24} {}", grouped(*count)))
}
