//! Keeps the price of profiling: makes bursts rarer where what was spent exceeds a share of what the program uses itself.
//!
//! A fixed period costs what the program makes of it: 2 % where bursts find the same loops again, 20 % where each finds new
//! code and its summaries are large. The kernel's `perf` lowers its rate in that case, too (`perf_cpu_time_max_percent`).
//!
//! What a trigger costs is measured, over the last ones; the period follows from that and from what is left of the budget.
//! It moves smoothly, because bursts that come and go together with phases of the program are what a profiler must not
//! have. Rejected: to leave out bursts while there is debt, which records the cheap phases and none of the dear ones.
//!
//! Nothing here looks at a clock: readings are arguments, so that a run can be replayed.

use std::time::Duration;

/// CPU time in seconds that stopping a thread, or sending it a signal, costs it, roughly: 22 to 30 us were measured in virtual
/// machines, a few us elsewhere. What Sonde does for it is in its own time.
pub const TRIGGER_SECONDS: f64 = 20e-6;
/// CPU time that may be spent beyond the share, in seconds: about what starting and the report take, which rarer bursts would
/// not make less. A second of a program would hardly be seen if its bursts had to pay for that.
const ALLOWANCE: f64 = 0.05;
/// Triggers that come at the period asked for, whatever they cost: less than this is no picture of a short program.
const FIRST: u64 = 25;
/// The period is never longer than this many times the one asked for, so that no phase goes unseen for want of budget.
pub const MOST_TIMES: f64 = 16.0;
/// Triggers after which one counts half in what triggers cost now.
const HALF_LIFE: f64 = 8.0;
/// Of the budget, the part that is always left for bursts. With less, debts of the start would be paid sooner, by seeing
/// next to nothing of what follows: bursts that stand for very different times tell less. And a program that starts a
/// thousand processes costs more than the limit without a single burst: to have none would be no remedy.
const LEAST_PART: f64 = 0.5;
/// A program is expected to run as long again as it has run, but at least this many seconds: that is the time in which
/// debts are paid and savings are spent.
const LEAST_HORIZON: f64 = 1.0;

/// What the clocks and counters say so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// CPU time of the program, bursts included.
    pub program: Duration,
    /// Of that, in bursts.
    pub in_bursts: Duration,
    /// CPU time of Sonde itself, all threads.
    pub sonde: Duration,
    /// Of that, for what the program does, bursts or not: its signals, threads and processes.
    pub others: Duration,
    /// Times that a thread was interrupted to begin a burst.
    pub triggers: u64,
    /// CPU time that Sonde will need when the program has ended, as far as that can be told: names, the report.
    pub reserve: Duration,
}

/// What was decided in a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Governed {
    /// The share of the program's own CPU time that was not to be exceeded.
    pub limit: f64,
    /// Mean CPU time of the program from one burst to the next, as decided.
    pub period: Duration,
    /// Bursts that the period asked for would have had beyond those.
    pub left_out: u64,
}

/// Decides about the period.
#[derive(Clone, Debug)]
pub struct Governor {
    limit: f64,
    nominal: f64,
    period: f64,
    last: Reading,
    /// Of the program's own time, without what bursts took.
    own: f64,
    spent: f64,
    recently_spent: f64,
    /// Of that, what would be spent without bursts, too.
    recent_others: f64,
    recently_own: f64,
    recent_triggers: f64,
    /// Bursts that were due as decided, and as asked for.
    due: f64,
    due_nominally: f64,
}

impl Governor {
    /// Spends `limit` of the program's own CPU time at most, and an allowance for what does not depend on it; a burst each `nominal` of it
    /// where that is possible. What `start` says was spent before the program began to run.
    pub fn new(limit: f64, nominal: Duration, start: Reading) -> Governor {
        let nominal = nominal.as_secs_f64().max(1e-6);
        Governor {
            limit: limit.max(1e-6),
            nominal,
            period: nominal,
            last: start,
            own: 0.0,
            spent: start.sonde.as_secs_f64(),
            recently_spent: 0.0,
            recent_others: 0.0,
            recently_own: 0.0,
            recent_triggers: 0.0,
            due: 0.0,
            due_nominally: 0.0,
        }
    }

    /// Takes new readings, and returns the period from now on.
    pub fn step(&mut self, now: Reading) -> Duration {
        self.account(now);
        let wanted = if now.triggers < FIRST { self.nominal } else { self.affordable(now.reserve) };
        self.period = wanted.clamp(self.nominal, self.nominal * MOST_TIMES);
        self.period()
    }

    /// Another period is asked for from now on.
    pub fn ask_for(&mut self, nominal: Duration) {
        let nominal = nominal.as_secs_f64().max(1e-6);
        self.period = self.period.clamp(nominal, nominal * MOST_TIMES);
        self.nominal = nominal;
    }

    /// The period from now on.
    pub fn period(&self) -> Duration {
        Duration::from_secs_f64(self.period)
    }

    /// Whether bursts are rarer now than asked for.
    pub fn holds_back(&self) -> bool {
        self.period > self.nominal
    }

    /// What came of it so far.
    pub fn governed(&self) -> Governed {
        let mean = if self.due > 0.0 { self.own / self.due } else { self.period };
        Governed {
            limit: self.limit,
            period: Duration::from_secs_f64(mean),
            left_out: (self.due_nominally - self.due).max(0.0).round() as u64,
        }
    }

    fn account(&mut self, now: Reading) {
        let last = self.last;
        let since = |now: Duration, last: Duration| now.saturating_sub(last).as_secs_f64();
        let program = since(now.program, last.program);
        let in_bursts = since(now.in_bursts, last.in_bursts);
        let triggers = now.triggers.saturating_sub(last.triggers) as f64;
        let sonde = since(now.sonde, last.sonde);
        // Sums over processes fall when one of them is gone.
        self.last = Reading { program: now.program.max(last.program), ..now };
        if program == 0.0 && triggers == 0.0 {
            // The program sleeps. What watching over it costs then is no part of any time of it, and rarer bursts would
            // not make it less.
            return;
        }
        let own = (program - in_bursts).max(0.0);
        let spent = sonde + in_bursts + triggers * TRIGGER_SECONDS;
        self.own += own;
        self.spent += spent;
        self.due += own / self.period;
        self.due_nominally += own / self.nominal;
        let kept = 0.5_f64.powf(triggers / HALF_LIFE);
        self.recently_spent = self.recently_spent * kept + spent;
        self.recent_others = self.recent_others * kept + since(now.others, last.others).min(sonde);
        self.recently_own = self.recently_own * kept + own;
        self.recent_triggers = self.recent_triggers * kept + triggers;
    }

    /// The period that spends what may be spent from now on, and is not spent anyway.
    fn affordable(&self, reserve: Duration) -> f64 {
        let each = (self.recently_spent - self.recent_others) / self.recent_triggers.max(1.0);
        let anyway = if self.recently_own > 0.0 { self.recent_others / self.recently_own } else { 0.0 };
        let left = ALLOWANCE + self.limit * self.own - self.spent - reserve.as_secs_f64();
        let rate = self.limit - anyway + left / self.own.max(LEAST_HORIZON);
        each / rate.max(self.limit * LEAST_PART)
    }
}

#[cfg(test)]
#[path = "govern_tests.rs"]
mod tests;
