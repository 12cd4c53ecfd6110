//! The invariant checker: a reader that knows what a true stream can and cannot contain.
//!
//! - bursts: an end follows each begin, nothing is executed outside them, time does not go backwards;
//! - control flow: each pass starts where the one before it could go: the target of a direct exit, the return address
//!   of the matching call; indirect branches may go anywhere, as may signals and system calls;
//! - calls and returns match on a shadow stack per thread. Programs unwind (longjmp, exceptions) and switch stacks, so
//!   what does not match is counted, not condemned;
//! - references: within the instructions executed, made of words that the record has, at canonical addresses.

use crate::reader::{Begin, End, Reader, Run, Signal, Syscall};
use sonde_x64::memory::{Repeat, Value};
use sonde_x64::plan::ExitKind;
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// Something that cannot be in a true stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A burst begins in a thread that is in one.
    BeginInBurst,
    /// A burst ends in a thread that is in none.
    EndOutsideBurst,
    /// A pass outside any burst.
    RunOutsideBurst,
    /// Time went backwards in a thread.
    Time,
    /// A pass or an end is not where the pass before it goes.
    Successor,
    /// A burst does not start where it says.
    FirstPc,
    /// A reference of an instruction that was not executed.
    ReferenceBeyondPath,
    /// A reference made of words that the record does not have.
    ReferenceBeyondRecord,
    /// An address that no access can have.
    Address,
    /// A reference that is not recorded, and has an address or a value from the log all the same.
    Unrecorded,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rule::BeginInBurst => "a burst begins inside another",
            Rule::EndOutsideBurst => "an end without a begin",
            Rule::RunOutsideBurst => "code is executed outside any burst",
            Rule::Time => "time goes backwards",
            Rule::Successor => "code is executed that cannot follow",
            Rule::FirstPc => "a burst does not start where it says",
            Rule::ReferenceBeyondPath => "a reference of an instruction that was not executed",
            Rule::ReferenceBeyondRecord => "a reference made of words that were not logged",
            Rule::Address => "an address that is not canonical",
            Rule::Unrecorded => "a reference that was not recorded has an address or a value",
        })
    }
}

/// One case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which rule.
    pub rule: Rule,
    /// Thread.
    pub tid: i32,
    /// Passes before it in the whole stream.
    pub after: u64,
    /// Where: the pc at hand.
    pub pc: u64,
    /// Where it should have been, if that is known.
    pub expected: Option<u64>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pass {}, thread {}, {:#x}: {}", self.after, self.tid, self.pc, self.rule)?;
        match self.expected {
            Some(expected) => write!(f, " (expected {expected:#x})"),
            None => Ok(()),
        }
    }
}

/// Where a thread may go next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Anywhere,
    At(u64),
    /// Where the burst said it starts.
    First(u64),
    Returned,
}

/// Most return addresses kept per thread; deeper recursion forgets the oldest.
const DEEPEST: usize = 1 << 16;

/// Whether a thread is in a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Burst {
    Inside,
    Outside,
    /// A part of the stream is missing.
    Unknown,
}

struct Thread {
    burst: Burst,
    next: Next,
    time: u64,
    calls: Vec<u64>,
}

/// Violations that are kept.
const KEPT: usize = 32;

/// Checks a stream.
#[derive(Default)]
pub struct Check {
    threads: HashMap<i32, Thread>,
    /// Violations by rule.
    pub by_rule: BTreeMap<Rule, u64>,
    /// The first violations.
    pub violations: Vec<Violation>,
    /// Passes.
    pub runs: u64,
    /// Bursts.
    pub bursts: u64,
    /// References.
    pub references: u64,
    /// Of them, those that are not recorded.
    pub unrecorded: u64,
    /// Calls seen.
    pub calls: u64,
    /// Returns that went to the call on top of the stack.
    pub matched: u64,
    /// Returns to a call further down: frames were left by unwinding or longjmp.
    pub unwound: u64,
    /// Returns beyond what was recorded: the call was before the burst.
    pub beyond: u64,
    /// Returns to a place that no recorded call left.
    pub unmatched: u64,
    /// Holes in the stream.
    pub gaps: u64,
}

impl Check {
    /// Whether nothing impossible was seen.
    pub fn is_clean(&self) -> bool {
        self.by_rule.is_empty()
    }

    /// Violations of all kinds.
    pub fn count(&self) -> u64 {
        self.by_rule.values().sum()
    }

    fn thread(&mut self, tid: i32) -> &mut Thread {
        let burst = if self.gaps > 0 { Burst::Unknown } else { Burst::Outside };
        let none = || Thread { burst, next: Next::Anywhere, time: 0, calls: Vec::new() };
        self.threads.entry(tid).or_insert_with(none)
    }

    fn violation(&mut self, rule: Rule, tid: i32, pc: u64, expected: Option<u64>) {
        *self.by_rule.entry(rule).or_default() += 1;
        if self.violations.len() < KEPT {
            self.violations.push(Violation { rule, tid, after: self.runs, pc, expected });
        }
    }

    /// The thread goes on at `pc`: is that possible?
    fn arrive(&mut self, tid: i32, pc: u64) {
        match std::mem::replace(&mut self.thread(tid).next, Next::Anywhere) {
            Next::At(expected) if expected != pc => {
                self.violation(Rule::Successor, tid, pc, Some(expected));
            }
            Next::First(expected) if expected != pc => {
                self.violation(Rule::FirstPc, tid, pc, Some(expected));
            }
            Next::Returned => self.returned(tid, pc),
            _ => {}
        }
    }

    fn returned(&mut self, tid: i32, pc: u64) {
        let calls = &mut self.thread(tid).calls;
        if calls.is_empty() {
            self.beyond += 1;
            return;
        }
        match calls.iter().rposition(|call| *call == pc) {
            Some(at) => {
                let top = at + 1 == calls.len();
                calls.truncate(at);
                if top { self.matched += 1 } else { self.unwound += 1 }
            }
            None => self.unmatched += 1,
        }
    }

    fn leave(&mut self, run: &Run<'_>) {
        let cut_short = run.exit().is_none();
        let next = match run.path.kind {
            _ if cut_short => Next::Anywhere,
            ExitKind::Taken | ExitKind::Jump | ExitKind::Call | ExitKind::Fall => Next::At(run.path.target),
            ExitKind::Return => Next::Returned,
            ExitKind::IndirectJump | ExitKind::IndirectCall | ExitKind::Syscall | ExitKind::Native => {
                Next::Anywhere
            }
        };
        let call = matches!(run.path.kind, ExitKind::Call | ExitKind::IndirectCall) && !cut_short;
        let back = run.insns().last().map(|insn| insn.pc.wrapping_add(u64::from(insn.len)));
        let thread = self.thread(run.tid);
        thread.next = next;
        if let (true, Some(back)) = (call, back) {
            if thread.calls.len() == DEEPEST {
                thread.calls.drain(..DEEPEST / 2);
            }
            thread.calls.push(back);
            self.calls += 1;
        }
    }

    fn references(&mut self, run: &Run<'_>) {
        let tid = run.tid;
        for (described, made) in run.superblock.refs.iter().zip(run.references()) {
            self.references += 1;
            self.unrecorded += u64::from(!described.recorded);
            if !described.recorded && (made.address.is_some() || last_word(described) > 0) {
                self.violation(Rule::Unrecorded, tid, made.pc, None);
            }
            if described.insn >= run.path.insns {
                self.violation(Rule::ReferenceBeyondPath, tid, made.pc, None);
            }
            if last_word(described) >= run.words.len() {
                self.violation(Rule::ReferenceBeyondRecord, tid, made.pc, None);
            }
            // Masked accesses that do not happen may be anywhere, as may repeated ones that happen 0 times.
            let certain = !made.conditional && made.count > 0;
            if let (true, Some(address)) = (certain, made.address.filter(|a| !is_canonical(*a))) {
                self.violation(Rule::Address, tid, made.pc, Some(address));
            }
        }
    }
}

/// The last word that a reference is computed from.
fn last_word(reference: &sonde_x64::memory::Reference) -> usize {
    let address = reference.address.iter().flat_map(|a| a.terms).flatten().map(|t| t.word).max();
    let value = match reference.value {
        Value::Unknown | Value::Unrecorded | Value::Const(_) | Value::NextPc => 0,
        Value::Word { index, .. } => index,
        Value::Words { first, count } => first + u16::from(count).saturating_sub(1),
    };
    let repeat = match reference.repeat {
        Repeat::Once => 0,
        Repeat::Counted { before, after } => before.max(after),
    };
    address.unwrap_or(0).max(value).max(repeat) as usize
}

fn is_canonical(address: u64) -> bool {
    let high = address.cast_signed() >> 47;
    // Five-level paging has 57 bits; either is fine.
    high == 0 || high == -1 || matches!(address.cast_signed() >> 56, 0 | -1)
}

impl Reader for Check {
    fn begin(&mut self, begin: &Begin) {
        self.bursts += 1;
        let thread = self.thread(begin.tid);
        let (burst, before) = (thread.burst, thread.time);
        *thread = Thread {
            burst: Burst::Inside,
            next: Next::First(begin.pc),
            time: begin.time,
            calls: std::mem::take(&mut thread.calls),
        };
        thread.calls.clear();
        if burst == Burst::Inside {
            self.violation(Rule::BeginInBurst, begin.tid, begin.pc, None);
        }
        if begin.time < before {
            self.violation(Rule::Time, begin.tid, begin.pc, None);
        }
    }

    fn run(&mut self, run: &Run<'_>) {
        if self.thread(run.tid).burst == Burst::Outside {
            self.violation(Rule::RunOutsideBurst, run.tid, run.superblock.pc, None);
        }
        self.arrive(run.tid, run.superblock.pc);
        self.references(run);
        self.leave(run);
        self.runs += 1;
    }

    fn end(&mut self, end: &End) {
        let thread = self.thread(end.tid);
        let (burst, before) = (thread.burst, thread.time);
        thread.burst = Burst::Outside;
        thread.time = end.time;
        if burst == Burst::Outside {
            self.violation(Rule::EndOutsideBurst, end.tid, end.pc, None);
        }
        if end.time < before {
            self.violation(Rule::Time, end.tid, end.pc, None);
        }
        self.arrive(end.tid, end.pc);
    }

    fn syscall(&mut self, syscall: &Syscall) {
        self.thread(syscall.tid).next = Next::Anywhere;
    }

    fn signal(&mut self, signal: &Signal) {
        self.thread(signal.tid).next = Next::Anywhere;
    }

    fn gap(&mut self) {
        self.gaps += 1;
        // Whatever was missing can have begun and ended bursts in any thread: start anew.
        for thread in self.threads.values_mut() {
            *thread = Thread { burst: Burst::Unknown, next: Next::Anywhere, time: 0, calls: Vec::new() };
        }
    }
}
