//! What perf says of a program's user time: samples of the CPU clock in user code, named as Sonde names functions.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result};
use sonde_harness::process::Job;
use sonde_symbol::Symbols;

use crate::shares::good;

/// Samples by module and function.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// How many there are of each.
    pub functions: BTreeMap<(String, String), u64>,
    /// How many there are.
    pub all: u64,
}

impl Samples {
    /// The share of a function.
    pub fn share(&self, function: &(String, String)) -> f64 {
        self.functions.get(function).map_or(0.0, |n| *n as f64 / self.all.max(1) as f64)
    }

    /// The share of all functions of a name.
    pub fn share_of_name(&self, name: &str) -> f64 {
        let its = self.functions.iter().filter(|((_, called), _)| called == name);
        its.map(|(_, n)| *n as f64).sum::<f64>() / self.all.max(1) as f64
    }

    /// Adds those of another run.
    pub fn add(&mut self, other: Samples) {
        for (function, n) in other.functions {
            *self.functions.entry(function).or_default() += n;
        }
        self.all += other.all;
    }
}

/// Runs a job under `perf record` with the CPU clock of user code at so many samples a second.
pub fn sample(job: &Job, frequency: u32, folder: &Path) -> Result<Samples> {
    let data = folder.join("perf.data");
    let frequency = frequency.to_string();
    let words = ["perf", "record", "-q", "-e", "cpu-clock:u", "-F", &frequency, "-o"];
    let mut command: Vec<OsString> = words.iter().map(OsString::from).collect();
    command.extend([data.clone().into(), "--".into()]);
    command.extend(job.command.iter().cloned());
    good(&Job { command, ..job.clone() }).context("perf is needed for this: apt-get install linux-perf")?;
    let words = ["perf", "script", "--show-mmap-events", "-F", "ip,dso", "-i"];
    let mut command: Vec<OsString> = words.iter().map(OsString::from).collect();
    command.push(data.into());
    let told = good(&Job { command, stdin: Vec::new(), discard: false, result: None, ..job.clone() })?;
    Ok(named(&String::from_utf8_lossy(&told.stdout)))
}

/// A piece of a file in memory.
struct Mapped {
    from: u64,
    to: u64,
    offset: u64,
    file: String,
}

fn named(script: &str) -> Samples {
    let (mut samples, mut maps, mut symbols) = (Samples::default(), Vec::<Mapped>::new(), Symbols::new());
    for line in script.lines() {
        if let Some(mapped) = mapped(line) {
            maps.push(mapped);
        } else if let Some(ip) = line.split_whitespace().next().and_then(|w| u64::from_str_radix(w, 16).ok())
        {
            let its = maps.iter().rev().find(|mapped| (mapped.from..mapped.to).contains(&ip));
            let function = its.map_or_else(|| ("".into(), "elsewhere".into()), |m| name(m, ip, &mut symbols));
            *samples.functions.entry(function).or_default() += 1;
            samples.all += 1;
        }
    }
    samples
}

/// `PERF_RECORD_MMAP2 pid/tid: [0xFROM(0xBYTES) @ OFFSET ...]: r-xp FILE`.
fn mapped(line: &str) -> Option<Mapped> {
    let (_, rest) = line.split_once("PERF_RECORD_MMAP")?;
    let (_, rest) = rest.split_once('[')?;
    let (range, rest) = rest.split_once('@')?;
    let (place, file) = rest.split_once("]: ")?;
    let hex = |text: &str| u64::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok();
    let (from, bytes) = range.trim().trim_end_matches(')').split_once('(')?;
    let from = hex(from)?;
    let offset = hex(place.split_whitespace().next()?)?;
    let file = file.split_once(' ').map_or(file, |(_, file)| file).trim().to_owned();
    Some(Mapped { from, to: from.checked_add(hex(bytes)?)?, offset, file })
}

/// As Sonde calls it: by its symbol, or by where it begins.
fn name(mapped: &Mapped, ip: u64, symbols: &mut Symbols) -> (String, String) {
    let module = mapped.file.rsplit('/').next().unwrap_or_default().to_owned();
    let address = symbols.address(&mapped.file, &[], ip - mapped.from + mapped.offset);
    let named = address.and_then(|at| symbols.function(&mapped.file, &[], at)).map(|span| span.name);
    let mut begins = || address.and_then(|at| symbols.extent(&mapped.file, &[], at)).map(|(start, _)| start);
    let name = match named {
        Some(name) if name == sonde_symbol::PLT => format!("{module} {name}"),
        Some(name) => name,
        None => begins().map_or_else(|| module.clone(), |start| format!("{module}+{start:#x}")),
    };
    (module, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_placed_by_what_was_mapped() {
        let script = "PERF_RECORD_MMAP2 7/7: [0x1000(0x1000) @ 0x3000 fe:00 24 0]: r-xp /no/such/gzip\n\
                      1010 (/no/such/gzip)\n    1020 (/no/such/gzip)\n 9999 (nowhere)\n";
        let samples = named(script);
        assert_eq!(samples.all, 3);
        assert_eq!(samples.functions[&("gzip".to_owned(), "gzip".to_owned())], 2);
        assert!((samples.share_of_name("elsewhere") - 1.0 / 3.0).abs() < 1e-9);
        let map = mapped(script.lines().next().unwrap()).unwrap();
        assert_eq!((map.from, map.to, map.offset), (0x1000, 0x2000, 0x3000));
    }
}
