//! What translating a basic block costs that was never met before.
//!
//! The code of real programs is translated without being run: from every function of a file along its static successors,
//! each superblock once, through the planner and the emitter that the engine uses. The floor is to decode the same bytes
//! once. Beside it stands what the engine itself counted in real runs, page faults and the publishing of descriptions
//! included. CPU time of this thread, rounds interleaved, ratios inside a round.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use iced_x86::{Decoder, DecoderOptions, Instruction};
use rustc_hash::FxHashSet;
use sonde_checks::Module;
use sonde_x64::emit::{Emitter, Layout, Mode};
use sonde_x64::plan::{Detail, ExitKind, Limits, NoSink, Plan, Planner, Sink};

use crate::host;
use crate::measure::{Contender, interleave};
use crate::statistics::{Spread, spread};

/// Nanoseconds that a block may cost.
const GOAL: f64 = 1500.0;

/// Measure what translating a block costs that was never met; status 1 when the goal is missed
#[derive(clap::Args)]
pub struct Translate {
    /// The sonde whose runs are measured
    #[arg(long, value_name = "FILE", default_value = "target/release/sonde")]
    sonde: PathBuf,
    /// Another sonde, run in turn with the first
    #[arg(long, value_name = "FILE")]
    beside: Option<PathBuf>,
    /// Superblocks of each file, at most
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    superblocks: usize,
    /// Rounds
    #[arg(long, value_name = "N", default_value_t = 7)]
    rounds: usize,
    /// Only translate files; no runs
    #[arg(long)]
    files_only: bool,
    /// Where the results go; - prints only
    #[arg(short = 'o', long = "output", value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Programs and libraries to translate; the C library, python3, gzip and perl if none is given
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// The code of one file, and the superblocks to be made of it.
struct Code {
    name: String,
    bytes: Vec<u8>,
    /// Address, offset in the file, length.
    segments: Vec<(u64, u64, u64)>,
    /// Where superblocks start, in the order in which they are met.
    pcs: Vec<u64>,
    /// The bytes that they are made of: address and length.
    stretches: Vec<(u64, u32)>,
    blocks: usize,
    instructions: usize,
}

/// Gives the planner bytes as the engine does.
const FETCH: usize = 1024;

impl Code {
    fn open(path: &Path, most: usize) -> Result<Code> {
        let module = Module::open(path)?;
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut code = Code {
            name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            bytes,
            segments: module.segments,
            pcs: Vec::new(),
            stretches: Vec::new(),
            blocks: 0,
            instructions: 0,
        };
        code.explore(&module.starts, most);
        if code.pcs.is_empty() {
            bail!("{} has no code that can be translated", path.display());
        }
        Ok(code)
    }

    /// Walks from every function along static successors, as a run would that took every branch.
    fn explore(&mut self, starts: &[u64], most: usize) {
        let mut planner = Planner::new(Detail::Values, Limits::default());
        let mut plan = Plan::default();
        let mut seen = FxHashSet::default();
        let mut open = Vec::new();
        for start in starts {
            open.push(*start);
            while let Some(pc) = open.pop() {
                if self.pcs.len() == most {
                    return;
                }
                if !seen.insert(pc) {
                    continue;
                }
                planner.plan(pc, usize::MAX, &mut |at| self.at(at), &mut plan, &mut NoSink);
                if plan.insns.is_empty() {
                    continue;
                }
                self.pcs.push(pc);
                self.stretches.extend(&plan.segments);
                self.blocks += blocks(&plan);
                self.instructions += plan.insns.len();
                open.extend(successors(&plan));
            }
        }
    }

    fn at(&self, address: u64) -> Option<&[u8]> {
        let (start, offset, len) = *self.segments.iter().find(|s| address.wrapping_sub(s.0) < s.2)?;
        let whole = self.bytes.get(offset as usize..(offset + len) as usize)?;
        let rest = &whole[(address - start) as usize..];
        Some(&rest[..rest.len().min(FETCH)])
    }

    /// Decodes all stretches once.
    fn decode(&self) -> u64 {
        let mut insn = Instruction::default();
        let mut sum = 0;
        for (at, len) in &self.stretches {
            let bytes = self.at(*at).and_then(|b| b.get(..*len as usize)).unwrap_or_default();
            let mut decoder = Decoder::with_ip(64, bytes, *at, DecoderOptions::NONE);
            while decoder.can_decode() {
                decoder.decode_out(&mut insn);
                sum += insn.code() as u64;
            }
        }
        sum
    }

    /// Plans all superblocks into a sink that `start` prepares and `end` has a look at.
    fn translate<S: Sink>(
        &self,
        planner: &mut Planner,
        sink: &mut S,
        start: impl Fn(&mut S, u64, u64),
        mut end: impl FnMut(&mut S) -> u64,
    ) -> u64 {
        let mut plan = Plan::default();
        let mut sum = 0;
        for pc in &self.pcs {
            start(sink, *pc, sum);
            planner.plan(*pc, usize::MAX, &mut |at| self.at(at), &mut plan, sink);
            sum += plan.insns.len() as u64 + end(sink);
        }
        sum
    }
}

/// Basic blocks as the engine counts them.
fn blocks(plan: &Plan) -> usize {
    plan.insns.iter().filter(|i| i.branch).count().max(1)
}

/// Where control can go that the bytes alone tell, the return of a call included.
fn successors(plan: &Plan) -> impl Iterator<Item = u64> + '_ {
    let after = plan.insns.last().map(|i| i.pc + u64::from(i.len));
    let returns =
        plan.exits.last().is_some_and(|e| matches!(e.kind, ExitKind::Call | ExitKind::IndirectCall));
    let direct = plan
        .exits
        .iter()
        .filter(|e| matches!(e.kind, ExitKind::Taken | ExitKind::Jump | ExitKind::Call | ExitKind::Fall));
    direct.map(|e| e.target).chain(after.filter(|_| returns))
}

/// The places that the copy refers to; which they are does not matter while it is not run.
fn layout() -> Layout {
    Layout {
        app_r14: 0x10,
        app_r15: 0x18,
        save_rcx: 0x20,
        spill: [0x28, 0x30, 0x38],
        checks: 0x40,
        resolve: 0x48,
        end_direct: 0x50,
        end_indirect: 0x58,
        leave: 0x68,
        table: 0x10_0000,
        whole: None,
    }
}

/// What one file's code costs, in nanoseconds per block.
struct Cost {
    code: Code,
    decode: f64,
    plan: f64,
    emit: f64,
    ratio: f64,
}

fn cost(code: Code, rounds: usize) -> Cost {
    let mut planners = [(); 2].map(|()| Planner::new(Detail::Values, Limits::default()));
    let [plan, emit] = &mut planners;
    let mut emitter = Emitter::new(layout(), Mode { checks: true, returns: true, record: true });
    let mut cache: Vec<u8> = Vec::with_capacity(code.instructions * 40);
    let mut contenders = [
        Contender::new("decode", code.blocks, || code.decode()),
        Contender::new("plan", code.blocks, || code.translate(plan, &mut NoSink, |_, _, _| {}, |_| 0)),
        Contender::new("emit", code.blocks, || {
            cache.clear();
            let start = |e: &mut Emitter, pc: u64, n: u64| e.start(pc, 0x7f00_0000_0000 + 16 * n, n as u32);
            code.translate(emit, &mut emitter, start, |e| {
                cache.extend_from_slice(&e.code.bytes);
                e.links.len() as u64
            })
        }),
    ];
    interleave(&mut contenders, rounds);
    let nanoseconds = |c: &Contender| 1e3 / c.rate();
    let costs = contenders.each_ref().map(nanoseconds);
    let ratio = contenders[0].ratio_to(&contenders[2]);
    drop(contenders);
    Cost { code, decode: costs[0], plan: costs[1], emit: costs[2], ratio }
}

/// What the engine counted in the runs of one program.
struct Ran {
    name: &'static str,
    policy: &'static str,
    which: &'static str,
    blocks: f64,
    superblocks: f64,
    instructions: f64,
    nanoseconds: Vec<f64>,
}

/// Programs that run long enough for bursts, and how they are run.
fn programs(input: &Path) -> [(&'static str, Vec<OsString>); 3] {
    let python = "import json,re\nx=0\nfor i in range(15000):\n x+=len(re.sub('[0-4]','a',json.dumps({'k':i,'v':[i]*5})))\nprint(x)";
    let perl = "my %c; for my $i (1..100000) { my $s = sprintf('%x', $i * 2654435761); $c{$1}++ if $s =~ /([a-f]+)/ } print scalar keys %c";
    [
        ("gzip", vec!["gzip".into(), "-c".into(), input.into()]),
        ("python3", vec!["/usr/bin/python3".into(), "-c".into(), python.into()]),
        ("perl", vec!["perl".into(), "-e".into(), perl.into()]),
    ]
}

impl Translate {
    /// Measures; false when the goal is missed.
    pub fn run(&self) -> Result<bool> {
        let files = if self.files.is_empty() { usual_files() } else { self.files.clone() };
        let mut costs = Vec::new();
        for file in &files {
            costs.push(cost(Code::open(file, self.superblocks)?, self.rounds.max(1)));
        }
        let ran = if self.files_only { Vec::new() } else { self.runs()? };
        host::keep(&self.output, &page(&costs, &ran))?;
        // The lowest, because the engine's clock runs on while others have the processor.
        let in_runs = ran.iter().filter(|r| r.which == THIS).filter_map(|r| spread(&r.nanoseconds));
        Ok(costs.iter().all(|c| c.emit <= GOAL) && in_runs.map(|s| s.low).all(|ns| ns <= GOAL))
    }

    fn runs(&self) -> Result<Vec<Ran>> {
        let folder = tempfile::tempdir()?;
        let (input, json) = (folder.path().join("input"), folder.path().join("json"));
        let lines: String = (0..200_000u32).map(|i| format!("{}\n", i.wrapping_mul(2_654_435_761))).collect();
        std::fs::write(&input, lines)?;
        let sondes = [Some((THIS, &self.sonde)), self.beside.as_ref().map(|s| ("the other", s))];
        let mut all = Vec::new();
        for (name, program) in programs(&input) {
            for (policy, options) in POLICIES {
                let mut ran: Vec<Ran> = Vec::new();
                for round in 0..=self.rounds.max(1) {
                    for (which, sonde) in sondes.iter().flatten() {
                        let facts = run(sonde, options, &program, &json)?;
                        let new = Ran::new((name, policy, which), &facts)?;
                        match ran.iter_mut().find(|r| r.which == *which) {
                            // The first round is not counted: its files are not in memory yet.
                            Some(old) if round == 1 => *old = new,
                            Some(old) => old.nanoseconds.extend(new.nanoseconds),
                            None => ran.push(new),
                        }
                    }
                }
                all.extend(ran);
            }
        }
        Ok(all)
    }
}

const THIS: &str = "this one";
/// How the programs are run: bursts have page faults and cold caches, `always` has neither for long.
const POLICIES: [(&str, &[&str]); 2] = [("bursts", &[]), ("always", &["--policy", "always"])];

fn usual_files() -> Vec<PathBuf> {
    let libc = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/usr/lib/libc.so.6"];
    let programs = ["/usr/bin/python3", "/usr/bin/gzip", "/usr/bin/perl"];
    let libc = libc.into_iter().map(PathBuf::from).find(|p| p.exists());
    libc.into_iter().chain(programs.into_iter().map(PathBuf::from).filter(|p| p.exists())).collect()
}

/// Runs a program under sonde; gives what is in its JSON.
fn run(sonde: &Path, options: &[&str], program: &[OsString], json: &Path) -> Result<serde_json::Value> {
    let status = Command::new(sonde)
        .args(["run", "--quiet"])
        .args(options)
        .arg(format!("--json={}", json.display()))
        .arg("--")
        .args(program)
        .stdout(Stdio::null())
        .status()
        .with_context(|| format!("cannot run {}", sonde.display()))?;
    if !status.success() {
        bail!("{} ended with {status}", program[0].display());
    }
    Ok(serde_json::from_slice(&std::fs::read(json)?)?)
}

impl Ran {
    fn new(what: (&'static str, &'static str, &'static str), facts: &serde_json::Value) -> Result<Ran> {
        let fact = |key: &str| {
            let value = facts["translation"][key].as_f64();
            value.with_context(|| format!("no translation.{key} in the JSON"))
        };
        let blocks = fact("blocks")?;
        if blocks == 0.0 {
            bail!("{} was too short for a burst: nothing was translated", what.0);
        }
        Ok(Ran {
            name: what.0,
            policy: what.1,
            which: what.2,
            blocks,
            superblocks: fact("superblocks")?,
            instructions: fact("instructions")?,
            nanoseconds: vec![fact("seconds")? * 1e9 / blocks],
        })
    }
}

fn page(costs: &[Cost], ran: &[Ran]) -> String {
    let mut page = host::heading("Translation of code that was never met");
    page += &format!(
        "\nNanoseconds of CPU time; medians of interleaved rounds, the first not counted. Goal: {GOAL:.0} ns a block.\n\n\
         ## Without running it\n\n\
         Every superblock that can be reached from the functions of a file without knowing data, made once a round with \
         addresses and values. *Decoding* is iced-x86 over the same bytes once, the floor.\n\n\
         | file | superblocks | blocks | instructions | decoding, per block | planning | planning and emitting | per superblock | per instruction | times the floor |\n\
         |---|---|---|---|---|---|---|---|---|---|\n"
    );
    for cost in costs {
        let (superblocks, blocks) = (cost.code.pcs.len() as f64, cost.code.blocks as f64);
        page += &format!(
            "| {} | {superblocks} | {blocks} | {} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {:.2} |\n",
            cost.code.name,
            cost.code.instructions,
            cost.decode,
            cost.plan,
            cost.emit,
            cost.emit * blocks / superblocks,
            cost.emit * blocks / cost.code.instructions as f64,
            cost.ratio,
        );
    }
    if ran.is_empty() {
        return page;
    }
    page += "\n## In real runs\n\nWhat the engine counted (`translation` in the JSON): from missing a copy to its being \
             in the cache, its description published; first touches of pages and the reading of code included. Ticks of the \
             clock: what others take of the processor meanwhile is in it, so that the lowest is judged.\n\n\
             | program | policy | sonde | superblocks | blocks | per block | lowest | highest | per superblock | per instruction |\n\
             |---|---|---|---|---|---|---|---|---|---|\n";
    for r in ran {
        let Some(Spread { low, median, high }) = spread(&r.nanoseconds) else { continue };
        page += &format!(
            "| {} | {} | {} | {} | {} | {median:.0} | {low:.0} | {high:.0} | {:.0} | {:.0} |\n",
            r.name,
            r.policy,
            r.which,
            r.superblocks,
            r.blocks,
            median * r.blocks / r.superblocks,
            median * r.blocks / r.instructions,
        );
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `test edi, edi; je +6; call +0; ret; ret`: two blocks up to the call, then what is behind it and the branch.
    #[test]
    fn every_static_successor_becomes_a_superblock_once() {
        let bytes = vec![0x85, 0xff, 0x74, 0x06, 0xe8, 0, 0, 0, 0, 0xc3, 0xc3];
        let mut code = Code {
            name: "test".into(),
            segments: vec![(0x1000, 0, bytes.len() as u64)],
            bytes,
            pcs: Vec::new(),
            stretches: Vec::new(),
            blocks: 0,
            instructions: 0,
        };
        code.explore(&[0x1000, 0x1009], 100);
        code.pcs.sort_unstable();
        assert_eq!(code.pcs, [0x1000, 0x1009, 0x100a]);
        assert_eq!((code.blocks, code.instructions), (4, 5));
        assert_eq!(code.stretches.iter().map(|s| s.1).sum::<u32>(), 11);
    }

    #[test]
    fn a_run_that_translated_nothing_is_an_error() {
        let facts = serde_json::json!({"translation": {"blocks": 0, "superblocks": 0, "instructions": 0, "seconds": 0.0}});
        assert!(Ran::new(("gzip", "bursts", THIS), &facts).is_err());
    }
}
