//! What `sonde run` and `sonde trace record` can be told: raw as clap reads it, then as options of a session.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::ValueEnum;
use sonde_analysis::{Config, ValueMethod, Wanted};
use sonde_event::Detail;
use sonde_launch::{DEFAULT_MAX_OVERHEAD, DEFAULT_PERIOD, Loader, Options, Policy, Scheme, Trigger};
use sonde_summary::{BurstTime, Kind, What};
use sonde_values::slots::SlotConfig;

use crate::file_name;
use crate::quantity::{parse_duration, parse_limit, parse_part, parse_rate, parse_share, parse_size};

const EXAMPLES: &str = "\
Examples:
  sonde run -- gzip -9 FILE                     hot code and data of a program, at a few percent of overhead
  sonde run --rate 1% -- python3 script.py      spend 1 % of the CPU time on recording, whatever the program does
  sonde run --max-overhead 1% -- PROG           bursts as rare as it takes to cost 1 % in all, Sonde's own time included
  sonde run --trigger timer -- PROG             where perf events are forbidden (auto finds out by itself)
  sonde run --follow -- make                    child processes too
  sonde run --policy always -- PROG             record everything, from the first instruction to the last
  sonde run --what all --consumers 2 --max-memory 256M -- PROG
                                                every summary that there is, made by two threads
  sonde run --policy always --what values --value-method slots --live-masks -o p.sonde -- PROG
                                                values of loads, recording ever fewer of them as they get known
  sonde run --json=run.json --quiet -- PROG     for programs; the keys are described in docs/run-json.md

Exit status: the program's own, and its death by a signal is Sonde's too. 127 and 126 if it cannot be found or run,
2 for wrong usage, 1 if it ended well but the profile or the JSON could not be written.";

/// Run a program and record bursts of everything it does: blocks, addresses, values.
///
/// The program runs natively between bursts, unmodified; its input, output, signals and exit status are its own. At
/// the end a report on standard error tells what was recorded, and which code and data are hot.
#[derive(clap::Args, Debug, Clone)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pub recording: Recording,

    #[command(flatten)]
    pub summing: Summing,

    /// Write a profile of the run to FILE, for `sonde report`, `merge` and `diff` (traces: `sonde trace record`)
    #[arg(
        short = 'o', long = "output", value_name = "FILE", value_parser = file_name::to_write(), help_heading = "Report"
    )]
    pub output: Option<PathBuf>,

    /// Write the report as JSON to FILE; without a FILE instead of the text on standard error, behind what the program
    /// wrote there
    #[arg(
        long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-",
        help_heading = "Report"
    )]
    pub json: Option<PathBuf>,

    /// Share from which a range of code or data is hot
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = parse_share, help_heading = "Report")]
    pub hot: f64,

    /// Count only: no hot ranges, which makes reading the recorded stream cheaper
    #[arg(long, help_heading = "Report")]
    pub no_ranges: bool,

    /// Throw away what was recorded, unread: the report only says what recording cost
    #[arg(
        long, conflicts_with_all = ["output", "what", "no_ranges", "follow", "live_masks"], help_heading = "Report"
    )]
    pub discard: bool,

    /// What profiling may cost in all, Sonde's own CPU time included, as a share of the program's; bursts get rarer where
    /// they cost more. Starting and the report take some 50 ms beyond it, and the first 25 bursts come whatever they cost. 0
    /// or off for no limit [default: 2.5%; off with --period or --rate]
    #[arg(long, value_name = "PERCENT", value_parser = parse_limit, help_heading = "Recording")]
    pub max_overhead: Option<f64>,

    /// Record child processes too, and theirs; the report is of all together
    #[arg(long, help_heading = "Recording")]
    pub follow: bool,

    /// Record nothing but values of loads, and stop recording each load once the slots know it (--value-method slots)
    #[arg(long, conflicts_with_all = ["follow", "no_ranges"], help_heading = "Recording")]
    pub live_masks: bool,

    /// Loads recorded, at least, before --live-masks changes again what is recorded; each time costs translations
    #[arg(long, value_name = "LOADS", default_value_t = 1 << 18, requires = "live_masks", help_heading = "Recording")]
    pub mask_step: u64,

    /// Most child processes that are recorded at a time; each has a probe with its own --max-memory
    #[arg(long, value_name = "N", default_value_t = 256, requires = "follow", help_heading = "Recording")]
    pub most_processes: usize,

    /// No report and no progress on standard error
    #[arg(long, short = 'q', help_heading = "Report")]
    pub quiet: bool,

    #[command(flatten)]
    pub command: CommandLine,
}

/// What to keep of what was recorded.
#[derive(clap::Args, Debug, Clone)]
pub struct Summing {
    /// What to find out, with commas between: code, loads, stores, load-values, dl1-miss-values, dl2-miss-values,
    /// narrow, zero-loads, edges, code-data, calls, loops, values, streams, all, or default, which leaves out what costs
    /// most (misses, narrow, code-data, values, streams). Without -o, only what the report shows [default: default]
    #[arg(long, value_name = "LIST", help_heading = "Summaries")]
    pub what: Option<String>,

    /// How --what values finds the values of loads
    #[arg(long, value_enum, default_value_t = ValueMethodName::Exact, help_heading = "Summaries")]
    pub value_method: ValueMethodName,

    /// Loads executed before --value-method slots looks at everything again, 0 for never; twice as many each time
    #[arg(long, value_name = "LOADS", default_value_t = 20_000_000, help_heading = "Summaries")]
    pub value_resample: u64,

    /// Largest error of a summary, as a share of all it counts
    #[arg(long, value_name = "SHARE", default_value = "0.5%", value_parser = parse_share, help_heading = "Summaries")]
    pub eps: f64,

    /// Limit on the memory of all summaries together
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = parse_size, help_heading = "Summaries")]
    pub max_memory: usize,

    /// The cache model of dl1-miss-values and dl2-miss-values, as SIZE, SIZE:WAYS or SIZE:WAYS:LINE of both levels
    #[arg(long, value_name = "L1,L2", default_value = "64K:8:64,1M:16:64", help_heading = "Summaries")]
    pub cache: String,

    /// Threads that summarize; the first one also reads the log
    #[arg(
        long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=16),
        help_heading = "Summaries"
    )]
    pub consumers: u8,
}

impl Summing {
    /// The parameters of the analyses of a recording with this detail, each burst of which stands for `burst_time`. Where
    /// nothing was asked for, a run whose findings are not kept needs only what its report shows.
    pub fn config(&self, detail: Detail, burst_time: Option<BurstTime>, is_kept: bool) -> Result<Config> {
        let wanted = match self.what.as_deref() {
            Some(names) => Wanted::parse(names)?,
            None if is_kept => Wanted::default().possible(detail).0,
            None => shown().possible(detail).0,
        };
        let (wanted, lacking) = wanted.possible(detail);
        if let Some(name) = lacking.first().filter(|_| self.what.as_deref().is_some_and(|w| w != "all")) {
            bail!("--what {name} needs more than this recording has: use --record values");
        }
        let summary = sonde_summary::Config {
            eps: self.eps,
            max_memory: self.max_memory,
            cache: sonde_cache::Config::parse(&self.cache)?,
            burst_time,
            consumers: self.consumers.into(),
            ..sonde_summary::Config::default()
        };
        let values = match self.value_method {
            ValueMethodName::Exact => ValueMethod::Exact,
            ValueMethodName::Slots => ValueMethod::Slots(SlotConfig {
                resample: self.value_resample,
                // A run can be long, and a recorder that masks pays for each time that everything is unmasked.
                ever_later: true,
                ..SlotConfig::default()
            }),
        };
        Ok(Config { wanted, summary, values, ..Config::default() })
    }

    /// Whether only loads need be recorded, and of those only what the slots ask for.
    fn check_live_masks(&self) -> Result<()> {
        let what = self.what.as_deref().unwrap_or("default");
        let wanted = Wanted::parse(what)?;
        if let Some(name) = wanted.beyond_load_values().first() {
            bail!(
                "--live-masks leaves out what --what {name} needs; use --what values (code, edges and calls can go with it)"
            );
        }
        if !wanted.values || self.value_method != ValueMethodName::Slots {
            bail!(
                "--live-masks is for --what values --value-method slots, which tell what need not be recorded"
            );
        }
        Ok(())
    }
}

/// How values of loads are found.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueMethodName {
    /// Every recorded load is looked at
    Exact,
    /// Slots look at the most frequent loads first and stop when they know them (Zilles and Sohi 2001, section 5)
    Slots,
}

/// What the report of a run shows.
fn shown() -> Wanted {
    let kinds = What::of(&[Kind::Code, Kind::LoadAddresses, Kind::StoreAddresses]);
    Wanted { kinds, calls: false, loops: false, values: false, streams: false }
}

/// The program and its arguments.
#[derive(clap::Args, Debug, Clone)]
pub struct CommandLine {
    /// The program and its arguments
    // Without values that begin with a hyphen: a mistyped option is not the name of a program.
    #[arg(value_name = "PROG", required = true, trailing_var_arg = true)]
    pub words: Vec<OsString>,
}

/// What to record, and when.
#[derive(clap::Args, Debug, Clone)]
pub struct Recording {
    /// When to record
    #[arg(long, value_enum, default_value_t = PolicyName::Bursts, help_heading = "Recording")]
    pub policy: PolicyName,

    /// What begins a burst; auto takes stops
    #[arg(long, value_enum, default_value_t = TriggerName::Auto, help_heading = "Recording")]
    pub trigger: TriggerName,

    /// How the probe gets into the program; auto takes ptrace where it is allowed
    #[arg(long, value_enum, default_value_t = LoaderName::Auto, help_heading = "Recording")]
    pub loader: LoaderName,

    /// CPU time of a thread between bursts, such as 10ms or 500us [default: 20ms]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Recording")]
    pub period: Option<Duration>,

    /// Length of a burst in checks (function entries, back-edges, indirect branches), 0 for the trigger only; with
    /// --policy counter, checks between bursts and in them [default: 1000; with --policy counter 100000:1000, in
    /// place 1000000:1000]
    #[arg(long, value_name = "N|GAP:N", value_parser = parse_burst, help_heading = "Recording")]
    pub burst: Option<Burst>,

    /// Which checks --policy counter keeps, by the names of paper 4's figure 6: orig (all), EL, EC, EN, L4, L10, LN, EC+L4
    #[arg(long, value_name = "SCHEME", help_heading = "Recording")]
    pub checks: Option<Scheme>,

    /// With --policy counter: count the checks in the program's own code, which is changed in memory for that, instead of in
    /// a copy of it. Mostly costs a fraction of the copy; bursts end at system calls
    #[arg(long)]
    pub in_place: bool,

    /// Share of the CPU time to spend in bursts, such as 1%; period and length are then adapted
    #[arg(
        long, value_name = "SHARE", value_parser = parse_rate, conflicts_with_all = ["period", "burst"],
        help_heading = "Recording"
    )]
    pub rate: Option<f64>,

    /// By how much the period varies at random, so that bursts do not keep step with the program
    #[arg(long, value_name = "SHARE", default_value = "50%", value_parser = parse_part, help_heading = "Recording")]
    pub random_gap: f64,

    /// What to record of each burst; less is cheaper
    #[arg(long, value_enum, default_value_t = Record::Values, help_heading = "Recording")]
    pub record: Record,

    /// Limit on the memory of the probe inside the program: copied code, descriptions and log
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = parse_size, help_heading = "Recording")]
    pub probe_memory: usize,

    /// Seed of the random gaps
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Recording")]
    pub seed: u64,
}

/// When to record.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyName {
    /// Bursts that a trigger begins; native between them
    Bursts,
    /// Everything; the program waits when Sonde lags behind
    Always,
    /// Bursts counted in the code itself: the same input gives the same trace
    Counter,
}

/// What begins a burst.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriggerName {
    /// The best that this machine allows
    Auto,
    /// Threads stopped for a moment through ptrace; the program sees no signal
    Stops,
    /// Perf events on the CPU clock, which send a signal
    Perf,
    /// A timer on each thread's CPU time, which sends a signal
    Timer,
}

/// How the probe gets into the program.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoaderName {
    /// The best that this machine allows
    Auto,
    /// Placed through ptrace before the first instruction; any program
    Ptrace,
    /// Mapped by the dynamic loader (LD_PRELOAD); bursts of dynamic programs, without ptrace
    Preload,
}

/// What to record.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// Executed blocks
    Blocks,
    /// And the addresses of loads and stores
    Addresses,
    /// And their values
    Values,
}

/// Length of a burst, and the gap before it in counter mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Burst {
    gap: Option<u64>,
    checks: u64,
}

fn parse_burst(text: &str) -> Result<Burst, String> {
    let number = |text: &str| {
        text.parse::<u64>().map_err(|_| format!("{text:?} is no number of checks; give N or GAP:N"))
    };
    match text.split_once(':') {
        Some((gap, checks)) => Ok(Burst { gap: Some(number(gap)?), checks: number(checks)? }),
        None => Ok(Burst { gap: None, checks: number(text)? }),
    }
}

/// The name of a choice as on the command line.
fn name(choice: impl ValueEnum) -> String {
    choice.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Less than this leaves no room for a code cache and two log buffers.
const LEAST_MEMORY: usize = 8 << 20;
const DEFAULT_CHECKS: u64 = 1000;
const DEFAULT_GAP: u64 = 100_000;
/// The same where a burst begins outside, which takes 90 us of CPU time (docs/design/in-place.md).
const DEFAULT_GAP_IN_PLACE: u64 = 1_000_000;

impl Args {
    /// Whether somebody will see a report.
    pub fn has_report(&self) -> bool {
        !self.quiet || self.json.is_some()
    }

    /// The options of a session, if they make sense together.
    pub fn options(&self) -> Result<Options> {
        let mut options = self.recording.options()?;
        if self.live_masks {
            if options.detail != Detail::Values {
                bail!("--live-masks records values of loads: leave --record out, or use --record values");
            }
            self.summing.check_live_masks()?;
            options.live_masks = true;
        }
        options.max_overhead = self.limit()?;
        if !self.follow {
            return Ok(options);
        }
        let by_stops = matches!(self.recording.trigger, TriggerName::Auto | TriggerName::Stops);
        if self.recording.policy != PolicyName::Bursts || !by_stops {
            bail!(
                "--follow works with --policy bursts and --trigger stops only, where Sonde sees processes begin"
            );
        }
        Ok(Options { follow: true, most_processes: self.most_processes, trigger: Trigger::Stops, ..options })
    }
}

impl Args {
    /// What profiling may cost. Who asks for a period or a rate knows what for: only a limit that is asked for, too, is
    /// stronger.
    fn limit(&self) -> Result<Option<f64>> {
        let Recording { policy, period, rate, .. } = &self.recording;
        if *policy != PolicyName::Bursts {
            if self.max_overhead.is_some() {
                bail!("--max-overhead is for --policy bursts, which can be made rarer");
            }
            return Ok(None);
        }
        let usual = (period.is_none() && rate.is_none()).then_some(DEFAULT_MAX_OVERHEAD);
        Ok(self.max_overhead.or(usual).filter(|limit| *limit > 0.0))
    }
}

impl Recording {
    /// The options of a session, if they make sense together.
    pub fn options(&self) -> Result<Options> {
        if self.probe_memory < LEAST_MEMORY {
            bail!("--probe-memory must be at least 8M: the probe needs a code cache and log buffers");
        }
        if self.checks.is_some() && self.policy != PolicyName::Counter {
            bail!("--checks is for --policy counter, whose gaps are counted in checks");
        }
        if self.in_place && self.policy != PolicyName::Counter {
            bail!("--in-place is for --policy counter, which counts checks");
        }
        if self.in_place && self.loader == LoaderName::Preload {
            bail!(
                "--in-place needs ptrace, to change the program's code before it runs: leave --loader preload out"
            );
        }
        Ok(Options {
            policy: self.policy()?,
            in_place: self.in_place,
            scheme: self.checks.unwrap_or_default(),
            detail: match self.record {
                Record::Blocks => Detail::Blocks,
                Record::Addresses => Detail::Addresses,
                Record::Values => Detail::Values,
            },
            trigger: match self.trigger {
                TriggerName::Auto => Trigger::Auto,
                TriggerName::Stops => Trigger::Stops,
                TriggerName::Perf => Trigger::Perf,
                TriggerName::Timer => Trigger::Timer,
            },
            loader: match self.loader {
                LoaderName::Auto => Loader::Auto,
                LoaderName::Ptrace => Loader::Ptrace,
                LoaderName::Preload => Loader::Preload,
            },
            random_gap: (self.random_gap * 1000.0).round() as u32,
            max_memory: self.probe_memory as u64,
            seed: self.seed,
            ..Options::default()
        })
    }

    /// When to record, as on the command line.
    pub fn policy_name(&self) -> String {
        name(self.policy)
    }

    /// Which checks are kept, as on the command line; none where checks are no matter.
    pub fn checks_name(&self) -> Option<&'static str> {
        let counter = self.policy == PolicyName::Counter;
        self.checks.unwrap_or_default().name().filter(|_| counter)
    }

    /// What to record, as on the command line.
    pub fn record_name(&self) -> String {
        name(self.record)
    }

    fn policy(&self) -> Result<Policy> {
        let bursts = self.policy == PolicyName::Bursts;
        if !bursts && (self.period.is_some() || self.rate.is_some()) {
            bail!("--period and --rate are for --policy bursts only");
        }
        match (self.policy, self.burst) {
            (PolicyName::Bursts, Some(Burst { gap: Some(_), .. })) => {
                bail!(
                    "--burst GAP:N is for --policy counter; bursts of a trigger take --burst N and --period"
                )
            }
            (PolicyName::Bursts, burst) => Ok(Policy::Bursts {
                period: self.period.unwrap_or(DEFAULT_PERIOD),
                checks: burst.map_or(DEFAULT_CHECKS, |b| b.checks),
            }),
            (PolicyName::Always, Some(_)) => bail!("--policy always has no bursts: leave --burst out"),
            (PolicyName::Always, None) => Ok(Policy::Always),
            (PolicyName::Counter, burst) => {
                let burst = burst.unwrap_or(Burst { gap: None, checks: DEFAULT_CHECKS });
                if burst.checks == 0 {
                    bail!("--policy counter needs bursts of at least one check");
                }
                let usual = if self.in_place { DEFAULT_GAP_IN_PLACE } else { DEFAULT_GAP };
                Ok(Policy::Counter { gap: burst.gap.unwrap_or(usual), checks: burst.checks })
            }
        }
    }
}
