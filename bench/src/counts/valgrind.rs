//! Counts of instructions, loads and stores by valgrind's tools, to compare with.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use sonde_harness::process::{self, Job};
use sonde_harness::trial::Subject;

/// What was executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Instructions.
    pub instructions: u64,
    /// Reads of memory.
    pub loads: u64,
    /// Writes to memory.
    pub stores: u64,
}

/// Instructions that callgrind counts; none if the program does not end under it as it does by itself.
pub fn callgrind(subject: &Subject) -> Result<Option<u64>> {
    let job = under(&subject.job, &["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    let outcome = process::run(&job).context("valgrind cannot be started; run bench/setup-workloads")?;
    if outcome.ending != subject.ending {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&outcome.stderr);
    let line = text
        .lines()
        .find_map(|l| l.split_once("Collected :"))
        .with_context(|| format!("callgrind did not say what it counted:\n{text}"))?;
    line.1.trim().parse().map(Some).context("callgrind's count")
}

/// Everything that lackey traces. The trace is read as it comes and never kept: it has a line per instruction.
pub fn lackey(job: &Job) -> Result<Counts> {
    let scratch = std::env::temp_dir();
    let job = under(job, &["--tool=lackey", "--trace-mem=yes"]);
    let mut input = tempfile_with(&job.stdin)?;
    std::io::Seek::rewind(&mut input)?;
    let mut child = process::command(&job)
        .current_dir(scratch)
        .stdin(input)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("valgrind cannot be started; run bench/setup-workloads")?;
    let trace = child.stderr.take().context("no trace")?;
    let counts = count(BufReader::with_capacity(1 << 20, trace))?;
    ensure!(child.wait()?.success(), "lackey failed on {}", process::shell_line(&job));
    Ok(counts)
}

fn tempfile_with(bytes: &[u8]) -> Result<std::fs::File> {
    let mut file = tempfile::tempfile()?;
    std::io::Write::write_all(&mut file, bytes)?;
    Ok(file)
}

fn under(job: &Job, options: &[&str]) -> Job {
    let words = ["valgrind"].iter().chain(options).map(Into::into);
    Job { command: words.chain(job.command.iter().cloned()).collect(), discard: true, ..job.clone() }
}

/// `I  pc,size` is an instruction, ` L`, ` S` and ` M` a load, a store and a load with a store.
fn count(mut trace: impl BufRead) -> Result<Counts> {
    let (mut counts, mut line) = (Counts::default(), Vec::with_capacity(64));
    loop {
        line.clear();
        // The beginning is enough to tell lines apart, whatever the program itself wrote there.
        if trace.by_ref().take(1 << 16).read_until(b'\n', &mut line)? == 0 {
            return Ok(counts);
        }
        match &line[..line.len().min(3)] {
            b"I  " => counts.instructions += 1,
            b" L " => counts.loads += 1,
            b" S " => counts.stores += 1,
            b" M " => {
                counts.loads += 1;
                counts.stores += 1;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_counted() {
        let trace = b"==1== Lackey\nI  04,2\n L 1f,8\nI  06,4\n M 20,4\n S 30,8\nI  0a,1\n";
        assert_eq!(count(&trace[..]).unwrap(), Counts { instructions: 3, loads: 2, stores: 2 });
    }
}
