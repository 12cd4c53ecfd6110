//! One program under study, from its start to its end.

use crate::error::LaunchError;
use crate::fewer_checks::{self, FewerChecks, Modules};
use crate::follow::Followed;
use crate::govern::Governor;
use crate::governing::{self, Gone};
use crate::habits::Habits;
use crate::in_place::{self, Bell, Changes, InPlaceFacts};
use crate::options::{Loader, Options, Policy, Trigger};
use crate::perf;
use crate::place;
use crate::program::Program;
use crate::ptrace::Tracee;
use crate::shared::SharedMemory;
use crate::signals::Signals;
use crate::spawn::{Spawned, Way, kill, spawn};
use crate::stops::{Care, Stops};
use crate::study::Study;
use crate::threads::{Kind, Threads};
use crate::watch::{self, Clock};
use sonde_wire::Counter;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The trigger signal. Its default action is to be ignored, so that a stray one (after an exec, or in a program that
/// takes the signal over) does no harm; programs must expect it at any time anyway.
pub const SIGNAL: i32 = libc::SIGURG;

/// How a session was set up, for the report.
#[derive(Clone, Debug)]
pub struct Setup {
    /// What starts bursts.
    pub trigger: Option<Kind>,
    /// Why not something better.
    pub trigger_note: Option<String>,
    /// How the probe got in.
    pub loader: &'static str,
    /// Why not in a better way.
    pub loader_note: Option<String>,
    /// Which checks counter mode leaves out, if it leaves any out.
    pub fewer_checks: Option<FewerChecks>,
    /// Why the program's code could not be changed, where that was wanted.
    pub not_in_place: Option<String>,
}

/// A running program with the probe inside.
pub struct Session {
    pub(crate) pid: i32,
    pub(crate) shared: Arc<SharedMemory>,
    /// Until somebody reads it.
    pub(crate) study: Option<Study>,
    pub(crate) threads: Option<Threads>,
    pub(crate) stops: Option<Stops>,
    pub(crate) clock: Clock,
    pub(crate) cpu: Duration,
    pub(crate) system: Duration,
    pub(crate) children_cpu: Duration,
    pub(crate) options: Options,
    /// Followed processes that have a probe, and what is shared with it.
    pub(crate) children: BTreeMap<i32, Arc<SharedMemory>>,
    /// Those that had one, in this image or one before.
    pub(crate) recorded: HashSet<i32>,
    /// CPU time that they had used when they last replaced themselves.
    pub(crate) cpu_before_exec: HashMap<i32, Duration>,
    pub(crate) followed: Followed,
    pub(crate) governor: Option<Governor>,
    /// What the probes of processes that are gone had counted.
    pub(crate) gone: Gone,
    /// What is known of the program's files.
    modules: Modules,
    setup: Setup,
    _signals: Signals,
}

impl Session {
    /// Starts a program with the probe inside.
    pub fn start(program: &Program, options: &Options) -> Result<Session, LaunchError> {
        if options.loader == Loader::Preload {
            return Session::start_preloaded(program, options, None);
        }
        match Session::start_traced(program, options) {
            Err(LaunchError::NoTracing(error)) if options.loader == Loader::Auto => {
                Session::start_preloaded(program, options, Some(error))
            }
            other => other,
        }
    }

    /// Without ptrace: the dynamic loader maps the probe.
    fn start_preloaded(
        program: &Program,
        options: &Options,
        no_tracing: Option<io::Error>,
    ) -> Result<Session, LaunchError> {
        let (kind, note) = choose_signal(program, options)?;
        let inside = match kind {
            Kind::Timer => sonde_wire::control::trigger::TIMER,
            _ => sonde_wire::control::trigger::OUTSIDE,
        };
        let shared = Arc::new(SharedMemory::new(options, inside, SIGNAL)?);
        let (clock, signals) = (Clock::start(), Signals::take_over());
        let Spawned { pid, .. } = spawn(program, &shared, Way::Preloaded)?;
        let mut threads = Threads::new(pid, kind, SIGNAL, &shared);
        threads.first_arms_itself();
        let study = Study::new(pid, shared, options.detail);
        let setup = Setup {
            trigger: Some(kind),
            trigger_note: note,
            loader: "mapped by the dynamic loader (LD_PRELOAD); recording begins after loading",
            loader_note: no_tracing.map(|error| format!("ptrace is not allowed: {error}")),
            fewer_checks: None,
            not_in_place: None,
        };
        signals.program(pid);
        Ok(Session::new(study, Some(threads), None, clock, *options, setup, signals))
    }

    fn start_traced(program: &Program, options: &Options) -> Result<Session, LaunchError> {
        let habits = Habits::of(&program.image);
        let (kind, note) = choose_trigger(options, habits)?;
        if options.in_place {
            Bell::is_allowed()?;
        }
        let inside = match kind {
            Some(Kind::Timer) => sonde_wire::control::trigger::TIMER,
            Some(Kind::Stops) => sonde_wire::control::trigger::STOPS,
            None if options.in_place => sonde_wire::control::trigger::STOPS,
            _ => sonde_wire::control::trigger::OUTSIDE,
        };
        let shared = Arc::new(SharedMemory::new(options, inside, SIGNAL)?);
        let mut modules = Modules::default();
        let fewer_checks = fewer_checks::prepare(program, options, &shared, &mut modules);
        let clock = Clock::start();
        let signals = Signals::take_over();
        let care = match kind {
            Some(Kind::Stops) => Care::Bursts,
            Some(_) => Care::Start,
            None if options.in_place => Care::Checks,
            None if habits.checks_leaks => Care::Start,
            None => Care::Exec,
        };
        let Spawned { pid, number } = spawn(program, &shared, Way::Seized(care))?;
        let tracee = Tracee::new(pid).inspect_err(|_| kill(pid))?;
        let holdings = place::place(&tracee, &shared, Some(number), SIGNAL).inspect_err(|_| kill(pid))?;
        let signalled = kind.filter(|kind| *kind != Kind::Stops);
        let mut threads = signalled.map(|kind| Threads::new(pid, kind, SIGNAL, &shared));
        if let Some(threads) = &mut threads {
            threads.cover_first();
        }
        // Before it runs: what it is replaced by is told from what it was.
        let study = Study::new(pid, shared, options.detail);
        let stops = if care != Care::Start {
            drop(tracee);
            let most = if options.follow { options.most_processes.max(1) } else { 0 };
            let mut stops = Stops::new(pid, care, &study.shared, most);
            stops.hold(holdings);
            expect_entry(&mut stops, pid, options, &study.shared, &mut modules).inspect_err(|_| kill(pid))?;
            stops.go_on();
            Some(stops)
        } else {
            tracee.detach()?;
            None
        };
        let loader = "placed at exec through ptrace";
        let setup = Setup {
            trigger: kind,
            trigger_note: note,
            loader,
            loader_note: None,
            fewer_checks,
            not_in_place: None,
        };
        signals.program(pid);
        let mut session = Session::new(study, threads, stops, clock, *options, setup, signals);
        session.modules = modules;
        Ok(session)
    }

    fn new(
        study: Study,
        threads: Option<Threads>,
        stops: Option<Stops>,
        clock: Clock,
        options: Options,
        setup: Setup,
        signals: Signals,
    ) -> Session {
        Session {
            pid: study.pid,
            shared: Arc::clone(&study.shared),
            study: Some(study),
            threads,
            stops,
            clock,
            cpu: Duration::ZERO,
            system: Duration::ZERO,
            children_cpu: Duration::ZERO,
            options,
            children: BTreeMap::new(),
            recorded: HashSet::new(),
            cpu_before_exec: HashMap::new(),
            followed: Followed::default(),
            governor: governing::governor(&options),
            gone: Gone::default(),
            modules: Modules::default(),
            setup,
            _signals: signals,
        }
    }

    /// The program replaced itself by another one (exec) and is stopped at its first instruction: the probe goes into
    /// the new image, with the same shared memory. If it cannot, the new program runs natively, and the report says so.
    /// Returns whether it could.
    pub(crate) fn place_again(&mut self) -> bool {
        let habits = Habits::of(Path::new(&format!("/proc/{}/exe", self.pid)));
        if habits.checks_leaks
            && let Some(stops) = self.stops.as_mut().filter(|stops| stops.stays())
        {
            stops.give_up();
            return false;
        }
        self.shared.free_buffers();
        if let Some(stops) = &self.stops {
            stops.is_ours(self.pid);
        }
        let placed = Tracee::new(self.pid).and_then(|t| place::place(&t, &self.shared, None, SIGNAL));
        let Some(stops) = &mut self.stops else { return false };
        match placed {
            Ok(holdings) => {
                stops.hold(holdings);
                if let Err(error) =
                    expect_entry(stops, self.pid, &self.options, &self.shared, &mut self.modules)
                {
                    self.setup.not_in_place = Some(error.to_string());
                }
                if habits.checks_leaks {
                    stops.give_up();
                } else {
                    stops.go_on();
                }
                true
            }
            Err(_) => {
                stops.give_up();
                false
            }
        }
    }

    /// The program stands at its entry: changes its code. If that cannot be, it runs natively, and the report says so.
    pub(crate) fn change_code(&mut self) {
        let changes = Changes::make(self.pid, self.options.scheme, &self.shared, &mut self.modules);
        let Some(stops) = &mut self.stops else { return };
        match changes {
            Ok(changes) => stops.changed(changes, &self.shared),
            Err(error) => self.setup.not_in_place = Some(error.to_string()),
        }
        stops.go_on();
    }

    /// What was changed in the program's code, or why it could not be.
    pub fn in_place(&self) -> Option<Result<InPlaceFacts, String>> {
        if let Some(why) = &self.setup.not_in_place {
            return Some(Err(why.clone()));
        }
        let changes = self.stops.as_ref().and_then(Stops::changes)?;
        Some(Ok(changes.facts().clone()))
    }

    /// How it was set up.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// The program's process id.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// All processes that have a probe: the program, and those that are followed.
    pub(crate) fn probes(&self) -> impl Iterator<Item = (i32, &SharedMemory)> {
        let children = self.children.iter().map(|(pid, shared)| (*pid, &**shared));
        std::iter::once((self.pid, &*self.shared)).chain(children)
    }

    /// Changes the mean CPU time between bursts, and the checks of the next ones.
    pub fn set_pace(&mut self, period: Duration, checks: u64) {
        for (_, shared) in self.probes() {
            shared.control().burst_checks_now.store(checks, Relaxed);
        }
        let period = self.governor.as_mut().map_or(period, |governor| {
            governor.ask_for(period);
            governor.period()
        });
        self.set_period(period);
    }

    /// Changes the mean CPU time between bursts.
    pub(crate) fn set_period(&mut self, period: Duration) {
        let period_ns = period.as_nanos() as u64;
        for (_, shared) in self.probes() {
            shared.control().period_now.store(period_ns, Relaxed);
        }
        if let Some(threads) = &mut self.threads {
            threads.set_period(period_ns);
        }
        if let Some(stops) = &mut self.stops {
            stops.set_period(period_ns);
        }
    }

    /// CPU time that the program, and the processes that are followed and have a probe, have used so far.
    pub fn cpu_time(&self) -> Duration {
        self.probes().map(|(pid, _)| watch::cpu_time(pid)).sum()
    }

    /// One of the probes' counters, of the same processes.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.probes().map(|(_, shared)| shared.control().counter(counter)).sum()
    }

    /// Time-stamp ticks in a second, as measured so far.
    pub fn ticks_per_second(&self) -> f64 {
        self.clock.ticks_per_second()
    }
}

/// The program stands still before its first instruction. If its code is to be changed: at once, if that is its entry, else
/// when it comes there.
fn expect_entry(
    stops: &mut Stops,
    pid: i32,
    options: &Options,
    shared: &SharedMemory,
    modules: &mut Modules,
) -> Result<(), LaunchError> {
    if !options.in_place {
        return Ok(());
    }
    match in_place::expect(&Tracee::new(pid)?)? {
        Some(entry) => stops.change_at_entry(entry),
        None => stops.changed(Changes::make(pid, options.scheme, shared, modules)?, shared),
    }
    Ok(())
}

/// The trigger where the probe is preloaded: perf events, else timers; and why not the former.
fn choose_signal(program: &Program, options: &Options) -> Result<(Kind, Option<String>), LaunchError> {
    let no = |why: &str| Err(LaunchError::NoWay(why.into()));
    if !program.dynamic {
        return no("the program is static, and has no dynamic loader that could map it");
    }
    if !matches!(options.policy, Policy::Bursts { .. }) {
        return no("only --policy bursts works that way, because recording begins after loading");
    }
    if options.follow || options.trigger == Trigger::Stops {
        return no("--trigger stops and --follow are ptrace; use --trigger perf or timer");
    }
    match (options.trigger, perf::allowed()) {
        (Trigger::Timer, _) => Ok((Kind::Timer, None)),
        (_, Ok(())) => Ok((Kind::Perf, None)),
        (Trigger::Perf, Err(error)) => Err(LaunchError::Own { what: NO_PERF, error }),
        (_, Err(error)) => Ok((Kind::Timer, Some(format!("perf events are not allowed: {error}")))),
    }
}

/// What will go wrong, if something is known before the program is started.
pub fn warning(program: &Program, options: &Options) -> Option<&'static str> {
    let traced = options.in_place || options.follow || options.trigger == Trigger::Stops;
    let stays = traced && options.loader != Loader::Preload && (options.in_place || is_bursts(options));
    (stays && Habits::of(&program.image).checks_leaks).then_some(FAILS)
}

fn is_bursts(options: &Options) -> bool {
    matches!(options.policy, Policy::Bursts { .. })
}

const FAILS: &str = "the program looks for leaks at its end, which fails under a tracer; leave --trigger stops, --follow and \
     --in-place out, or run it with ASAN_OPTIONS=detect_leaks=0";

const LEAKS: &str = "the program looks for leaks at its end, and nobody may trace it then";

const NO_PERF: &str = "perf events are not allowed here; use --trigger timer";

fn choose_trigger(options: &Options, habits: Habits) -> Result<(Option<Kind>, Option<String>), LaunchError> {
    if !matches!(options.policy, Policy::Bursts { .. }) {
        return Ok((None, None));
    }
    match options.trigger {
        Trigger::Auto if habits.checks_leaks && !options.follow => {
            let kind = if perf::allowed().is_ok() { Kind::Perf } else { Kind::Timer };
            Ok((Some(kind), Some(LEAKS.into())))
        }
        Trigger::Auto | Trigger::Stops => Ok((Some(Kind::Stops), None)),
        Trigger::Timer => Ok((Some(Kind::Timer), None)),
        Trigger::Perf => perf::allowed()
            .map(|()| (Some(Kind::Perf), None))
            .map_err(|error| LaunchError::Own { what: NO_PERF, error }),
    }
}
