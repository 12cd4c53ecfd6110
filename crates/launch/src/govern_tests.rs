//! The governor against programs that exist in numbers only: what a trigger costs is known, and so is what was spent.

use super::*;
use proptest::prelude::*;

const NOMINAL: Duration = Duration::from_millis(20);

/// A program while it is recorded.
struct Program {
    governor: Governor,
    now: Reading,
    /// Program's own time until the next trigger.
    until: f64,
}

fn seconds(time: f64) -> Duration {
    Duration::from_secs_f64(time)
}

impl Program {
    fn new(limit: f64, start: f64) -> Program {
        let now = Reading { sonde: seconds(start), ..Reading::default() };
        Program { governor: Governor::new(limit, NOMINAL, now), now, until: NOMINAL.as_secs_f64() }
    }

    /// Runs for some seconds of its own, in which a trigger costs `each` (a third of it in the program) and Sonde takes
    /// `always` of the time for other things. Says how many triggers there were.
    fn run(&mut self, time: f64, each: f64, always: f64) -> u64 {
        let (before, step) = (self.now.triggers, 0.025);
        for _ in 0..(time / step).round() as u64 {
            self.until -= step;
            let mut triggers = 0u32;
            while self.until <= 0.0 {
                triggers += 1;
                self.until += self.governor.period().as_secs_f64();
            }
            let cost = f64::from(triggers) * each;
            self.now.program += seconds(step + cost / 3.0);
            self.now.in_bursts += seconds(cost / 3.0);
            self.now.sonde += seconds(cost * 2.0 / 3.0 + step * always);
            self.now.others += seconds(step * always);
            self.now.triggers += u64::from(triggers);
            let period = self.governor.step(self.now);
            assert!(period >= NOMINAL && period <= NOMINAL.mul_f64(MOST_TIMES * 1.000_001), "{period:?}");
        }
        self.now.triggers - before
    }

    fn own(&self) -> f64 {
        (self.now.program - self.now.in_bursts).as_secs_f64()
    }

    fn spent(&self) -> f64 {
        (self.now.sonde + self.now.in_bursts).as_secs_f64() + self.now.triggers as f64 * TRIGGER_SECONDS
    }
}

#[test]
fn cheap_bursts_come_as_often_as_asked_for() {
    let mut program = Program::new(0.04, 0.005);
    let triggers = program.run(20.0, 0.000_3, 0.001);
    assert_eq!(triggers, 1000);
    let governed = program.governor.governed();
    assert_eq!((governed.left_out, governed.period), (0, NOMINAL));
    assert!(!program.governor.holds_back());
}

#[test]
fn dear_bursts_come_as_often_as_the_limit_allows() {
    // Each takes a fifth of the period asked for: 20 %. At 4 % there is one in five periods.
    let mut program = Program::new(0.04, 0.005);
    program.run(10.0, 0.004, 0.0);
    let share = program.spent() / program.own();
    assert!((0.035..0.047).contains(&share), "{share}");
    let late = program.run(40.0, 0.004, 0.0) as f64;
    assert!((late / 400.0 - 1.0).abs() < 0.05, "{late}");
    let governed = program.governor.governed();
    let (had, left_out) = (program.now.triggers as f64, governed.left_out as f64);
    assert!(((had + left_out) / 2500.0 - 1.0).abs() < 0.01, "{had} {left_out}");
    assert!((governed.period.as_secs_f64() / (50.0 / had) - 1.0).abs() < 0.05, "{governed:?} {had}");
}

#[test]
fn a_short_run_is_seen_at_the_period_asked_for() {
    for time in [0.1, 0.25, 0.5] {
        let mut program = Program::new(0.04, 0.02);
        assert_eq!(program.run(time, 0.005, 0.0), (time / 0.02).floor() as u64, "{time}");
    }
}

#[test]
fn what_is_needed_at_the_end_is_kept_for_it() {
    let with = |reserve: f64| {
        let mut program = Program::new(0.04, 0.0);
        program.now.reserve = seconds(reserve);
        program.run(20.0, 0.004, 0.0);
        program.spent() + reserve
    };
    assert!(with(0.05) < 1.02 * with(0.0), "{} {}", with(0.05), with(0.0));
}

/// Where other things cost more than the limit, bursts have half of it all the same.
#[test]
fn bursts_do_not_pay_for_what_they_do_not_cause() {
    let mut program = Program::new(0.04, 0.0);
    program.run(5.0, 0.001, 0.2);
    let triggers = program.run(20.0, 0.001, 0.2) as f64;
    assert!((triggers * 0.001 / (20.0 * 0.02) - 1.0).abs() < 0.1, "{triggers}");
}

#[test]
fn sleep_is_not_held_against_the_program() {
    let mut program = Program::new(0.04, 0.005);
    program.run(2.0, 0.000_3, 0.0);
    for _ in 0..100_000 {
        program.now.sonde += Duration::from_micros(30);
        program.governor.step(program.now);
    }
    assert!(!program.governor.holds_back());
}

#[test]
fn processes_that_are_gone_take_no_time_back() {
    let mut program = Program::new(0.04, 0.0);
    program.run(2.0, 0.004, 0.0);
    let before = program.governor.own;
    program.governor.step(Reading { program: Duration::from_secs(1), ..program.now });
    program.governor.step(program.now);
    assert_eq!(program.governor.own, before);
}

proptest! {
    /// However the cost of bursts changes: no more is spent than the limit allows, and what the first ones and those took
    /// whose price was not known yet. Unless not even the longest period is long enough.
    #[test]
    fn no_more_is_spent_than_allowed(
        limit in 0.01..0.2_f64,
        start in 0.0..0.05_f64,
        phases in prop::collection::vec((0.5..20.0_f64, 0.01..1.0_f64), 1..8),
    ) {
        let dearest = limit * NOMINAL.as_secs_f64() * MOST_TIMES * LEAST_PART;
        let mut program = Program::new(limit, start);
        for (time, part) in phases {
            program.run(time, dearest * part, 0.0);
            let allowed = limit * program.own() + ALLOWANCE + (FIRST as f64 + 3.0 * HALF_LIFE) * dearest;
            prop_assert!(program.spent() <= allowed, "{} of {allowed}", program.spent());
        }
    }

    /// In the long run the budget is used, not just kept.
    #[test]
    fn what_is_allowed_is_used(limit in 0.01..0.2_f64, part in 0.2..1.0_f64, always in 0.0..0.45_f64) {
        let dearest = limit * NOMINAL.as_secs_f64() * MOST_TIMES * LEAST_PART;
        let mut program = Program::new(limit, 0.01);
        program.run(200.0, dearest * part, limit * always);
        let share = program.spent() / program.own() / limit;
        prop_assert!((0.9..1.1).contains(&share), "{share}");
    }

    /// No phase starves, whatever bursts cost, and bursts are as frequent as asked for soon after they are cheap again.
    #[test]
    fn bursts_come_back(limit in 0.01..0.1_f64, dear in 0.001..0.5_f64, time in 1.0..60.0_f64) {
        let mut program = Program::new(limit, 0.01);
        program.run(time, dear, 0.0);
        let longest = NOMINAL.as_secs_f64() * MOST_TIMES;
        let starving = program.run(10.0, dear, 0.0);
        prop_assert!(starving as f64 >= (10.0 / longest).floor(), "{starving}");
        // Half of the limit is always left, at which bursts of this price come as asked for.
        let cheap = limit * NOMINAL.as_secs_f64() * LEAST_PART * 0.5;
        program.run(HALF_LIFE * 12.0 * longest, cheap, 0.0);
        prop_assert!(!program.governor.holds_back(), "{:?}", program.governor);
    }
}
