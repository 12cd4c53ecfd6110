//! One program under study, from its start to its end.

use crate::error::{LaunchError, own};
use crate::options::{Options, Policy, Trigger};
use crate::perf;
use crate::place;
use crate::program::Program;
use crate::ptrace::Tracee;
use crate::shared::SharedMemory;
use crate::signals::{self, Signals};
use crate::stops::Stops;
use crate::threads::{Kind, Threads};
use crate::watch::{self, Clock, Watch};
use sonde_event::Decoder;
use sonde_wire::Control;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
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
}

/// A running program with the probe inside.
pub struct Session {
    pub(crate) shared: SharedMemory,
    pub(crate) decoder: Decoder,
    pub(crate) pid: i32,
    pub(crate) threads: Option<Threads>,
    pub(crate) stops: Option<Stops>,
    pub(crate) clock: Clock,
    pub(crate) cpu: Duration,
    pub(crate) children_cpu: Duration,
    pub(crate) watch: Watch,
    setup: Setup,
    _signals: Signals,
}

impl Session {
    /// Starts a program with the probe inside.
    pub fn start(program: &Program, options: &Options) -> Result<Session, LaunchError> {
        let (kind, note) = choose_trigger(options)?;
        let inside = match kind {
            Some(Kind::Timer) => sonde_wire::control::trigger::TIMER,
            Some(Kind::Stops) => sonde_wire::control::trigger::STOPS,
            _ => sonde_wire::control::trigger::OUTSIDE,
        };
        let shared = SharedMemory::new(options, inside, SIGNAL)?;
        let clock = Clock::start();
        let signals = Signals::take_over();
        let (pid, fd) = spawn(program, &shared)?;
        let tracee = Tracee::new(pid).inspect_err(|_| kill(pid))?;
        let placed = place::place(&tracee, &shared, Some(fd), SIGNAL);
        if let Err(error) = placed {
            kill(pid);
            return Err(error);
        }
        let signalled = kind.filter(|kind| *kind != Kind::Stops);
        let mut threads = signalled.map(|kind| Threads::new(pid, kind, SIGNAL, &shared));
        if let Some(threads) = &mut threads {
            threads.cover_first();
        }
        // Before it runs: what it is replaced by is told from what it was.
        let watch = Watch::new(pid);
        tracee.detach()?;
        let stops = match kind {
            Some(Kind::Stops) => take_charge(pid, &shared).inspect_err(|_| kill(pid))?,
            _ => None,
        };
        let setup = Setup { trigger: kind, trigger_note: note, loader: "placed at exec through ptrace" };
        let decoder = Decoder::new(options.detail);
        signals.program(pid);
        let (cpu, children_cpu) = (Duration::ZERO, Duration::ZERO);
        let session = Session {
            shared,
            decoder,
            pid,
            threads,
            stops,
            clock,
            cpu,
            children_cpu,
            watch,
            setup,
            _signals: signals,
        };
        Ok(session)
    }

    /// The program replaced itself by another one (exec) and is stopped at its first instruction: the probe goes into
    /// the new image, with the same shared memory. If it cannot, the new program runs natively, and the report says so.
    pub(crate) fn place_again(&mut self) {
        let control = self.shared.control();
        for buffer in &control.buffers {
            buffer.state.store(sonde_wire::control::state::FREE, Relaxed);
        }
        let placed = Tracee::new(self.pid).and_then(|t| place::place(&t, &self.shared, None, SIGNAL));
        if let Some(stops) = &mut self.stops {
            match placed {
                Ok(()) => {
                    stops.go_on_after_exec();
                    self.watch.follow_exec();
                }
                Err(_) => stops.give_up(),
            }
        }
    }

    /// How it was set up.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// The program's process id.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Changes the mean CPU time between bursts, and the checks of the next ones.
    pub fn set_pace(&mut self, period: Duration, checks: u64) {
        let period_ns = period.as_nanos() as u64;
        self.shared.control().period_now.store(period_ns, Relaxed);
        self.shared.control().burst_checks_now.store(checks, Relaxed);
        if let Some(threads) = &mut self.threads {
            threads.set_period(period_ns);
        }
        if let Some(stops) = &mut self.stops {
            stops.set_period(period_ns);
        }
    }

    /// CPU time that the program has used so far.
    pub fn cpu_time(&self) -> Duration {
        watch::cpu_time(self.pid)
    }

    /// Time-stamp ticks in a second, as measured so far.
    pub fn ticks_per_second(&self) -> f64 {
        self.clock.ticks_per_second()
    }

    /// The control page, for progress.
    pub fn control(&self) -> &Control {
        self.shared.control()
    }

    /// The decoder, for its catalog.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }
}

/// Takes charge of all threads; of none if the program has ended already.
fn take_charge(pid: i32, shared: &SharedMemory) -> Result<Option<Stops>, LaunchError> {
    let failed = match Stops::seize(pid, shared) {
        Ok(stops) => return Ok(Some(stops)),
        Err(error) => error,
    };
    // A process that is about to end refuses; give it the time to.
    for _ in 0..100 {
        if has_ended(pid) {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(LaunchError::Place { what: "taking charge of its threads", error: failed })
}

fn has_ended(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
}

fn choose_trigger(options: &Options) -> Result<(Option<Kind>, Option<String>), LaunchError> {
    if !matches!(options.policy, Policy::Bursts { .. }) {
        return Ok((None, None));
    }
    match options.trigger {
        Trigger::Auto | Trigger::Stops => Ok((Some(Kind::Stops), None)),
        Trigger::Timer => Ok((Some(Kind::Timer), None)),
        Trigger::Perf => perf::allowed().map(|()| (Some(Kind::Perf), None)).map_err(|error| {
            LaunchError::Own { what: "perf events are not allowed here; use --trigger timer", error }
        }),
    }
}

fn kill(pid: i32) {
    // SAFETY: our own child, which has not run an instruction of its own.
    unsafe {
        libc::kill(pid, libc::SIGKILL);
        libc::waitpid(pid, std::ptr::null_mut(), libc::__WALL);
    }
}

/// Starts the program stopped at its first instruction; returns its id and the number of the shared memory in it.
fn spawn(program: &Program, shared: &SharedMemory) -> Result<(i32, i32), LaunchError> {
    let exec_error = |error| LaunchError::Exec { path: program.path.clone(), error };
    let nul = |_| exec_error(io::Error::from(io::ErrorKind::InvalidInput));
    let path = CString::new(program.path.as_os_str().as_bytes()).map_err(nul)?;
    let args: Result<Vec<CString>, _> = program.args.iter().map(|a| CString::new(a.as_bytes())).collect();
    let args = args.map_err(nul)?;
    let mut argv: Vec<*const libc::c_char> = args.iter().map(|a| a.as_ptr()).collect();
    argv.push(std::ptr::null());
    let mut pipe = [0; 2];
    // SAFETY: two descriptors are written to the array.
    if unsafe { libc::pipe2(pipe.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(own("pipe"));
    }
    let number = high_descriptor();
    // SAFETY: between fork and exec the child only makes system calls on data prepared before.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(own("fork"));
    }
    if pid == 0 {
        // SAFETY: as above; `environ` is unchanged since before the fork.
        unsafe {
            signals::as_inherited();
            libc::dup2(shared.fd(), number);
            if libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) == 0 {
                libc::execv(path.as_ptr(), argv.as_ptr());
            }
            let error = *libc::__errno_location();
            libc::write(pipe[1], (&raw const error).cast(), 4);
            libc::_exit(127);
        }
    }
    // SAFETY: our own descriptors.
    let failed = unsafe {
        libc::close(pipe[1]);
        let mut error = 0i32;
        let n = libc::read(pipe[0], (&raw mut error).cast(), 4);
        libc::close(pipe[0]);
        if n == 4 { Some(error) } else { None }
    };
    if let Some(error) = failed {
        kill(pid);
        return Err(exec_error(io::Error::from_raw_os_error(error)));
    }
    let mut status = 0;
    // SAFETY: the status is written to a local.
    unsafe { libc::waitpid(pid, &mut status, libc::__WALL) };
    if !libc::WIFSTOPPED(status) {
        return Err(LaunchError::Died("it did not stop at exec".into()));
    }
    Ok((pid, number))
}

/// A descriptor number out of the way, allowed by the limit.
fn high_descriptor() -> i32 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is written to a local.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    (limit.rlim_cur.min(1024) as i32 - 1).max(3)
}
