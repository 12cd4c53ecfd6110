//! Triggers and watches over the program until it is gone, while another thread reads what the probe logs.

use crate::children::{self, Children, Ended};
use crate::follow::{Followed, Parts};
use crate::govern::Governed;
use crate::in_place::InPlaceFacts;
use crate::job_control;
use crate::reading::{Clerk, Desk};
use crate::session::Session;
use crate::signals::Waiting;
use crate::stops::{News, Stops};
use crate::study::Spent;
use crate::watch;
use sonde_event::maps::{Mapping, Mappings};
use sonde_event::{Decoder, Lost, Reader, StreamError};
use sonde_wire::Counter;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;
use std::thread;
use std::time::{Duration, Instant};

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With a status.
    Status(i32),
    /// By a signal.
    Signal(i32),
}

/// What the program did: a sentence without its subject.
impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Exit::Status(0) => write!(f, "ended"),
            Exit::Status(status) => write!(f, "ended with status {status}"),
            Exit::Signal(signal) => write!(f, "was ended by signal {signal}"),
        }
    }
}

/// What a run came to, besides what the reader saw.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// The probe's counters.
    pub counters: Vec<u64>,
    /// Log words that could not be read.
    pub lost: Lost,
    /// The first error met in the log, if any.
    pub error: Option<StreamError>,
    /// CPU time of the program (user and system), without its children.
    pub cpu: Duration,
    /// The part of it in the kernel, which is not recorded.
    pub system: Duration,
    /// Its child processes.
    pub children: Children,
    /// Wall time.
    pub wall: Duration,
    /// Threads that the trigger could not be put on.
    pub uncovered: u64,
    /// How often a thread was let go by its tracer, because it got more signals than that can pass on in time.
    pub let_go: u64,
    /// Bytes of log read.
    pub log_bytes: u64,
    /// Superblocks described.
    pub descriptions: u64,
    /// What lay where in the program.
    pub mappings: Mappings,
    /// The program that it replaced itself by (exec), if that was seen.
    pub became: Option<PathBuf>,
    /// Time-stamp ticks in a second.
    pub ticks_per_second: f64,
    /// Whether the probe started; where it is preloaded, that is up to the program's loader.
    pub started: bool,
}

impl Totals {
    /// One of the probe's counters.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters.get(counter as usize).copied().unwrap_or(0)
    }

    /// Adds what another process of the same run came to. Mappings, wall time and the clock stay as they are: they are
    /// of one process, or of all.
    pub fn add(&mut self, other: &Totals) {
        self.counters.resize(self.counters.len().max(other.counters.len()), 0);
        self.counters.iter_mut().zip(&other.counters).for_each(|(sum, more)| *sum += more);
        self.lost.buffers += other.lost.buffers;
        self.lost.words += other.lost.words;
        if self.error.is_none() {
            self.error.clone_from(&other.error);
        }
        self.cpu += other.cpu;
        self.system += other.system;
        self.uncovered += other.uncovered;
        self.let_go += other.let_go;
        self.log_bytes += other.log_bytes;
        self.descriptions += other.descriptions;
    }
}

/// A session that is over.
pub struct Served {
    /// How the program ended.
    pub exit: Exit,
    /// What it came to.
    pub totals: Totals,
    /// The decoder, with the catalog of all code seen (empty if nobody read the stream).
    pub decoder: Decoder,
    /// What became of the processes that were followed; their parts went to [`Outlets::parts`].
    pub followed: Followed,
    /// How often bursts came, where a limit on what they cost decided that.
    pub governed: Option<Governed>,
    /// What was changed in the program's code so that it counts checks, or why nothing could be.
    pub in_place: Option<Result<InPlaceFacts, String>>,
    /// CPU time that Sonde had used when the program ended.
    pub sonde_cpu: Duration,
}

/// Sees what the probe wrote before anybody makes sense of it: a trace file is one.
pub trait Tap: Send {
    /// A superblock was described.
    fn description(&mut self, words: &[u64]);
    /// A thread filled (a part of) a buffer; all it refers to was described before.
    fn log(&mut self, tid: i32, words: &[u64]);
    /// Something was mapped in the program.
    fn mapping(&mut self, mapping: &Mapping);
}

/// Where the stream goes. What nobody wants is not decoded.
#[derive(Default)]
pub struct Outlets<'a> {
    /// Gets the decoded stream.
    pub reader: Option<&'a mut dyn Reader>,
    /// Gets the raw one.
    pub tap: Option<&'a mut dyn Tap>,
    /// Gets the streams of followed processes.
    pub parts: Option<&'a mut dyn Parts>,
}

/// Time between two ticks.
const TICK: Duration = Duration::from_millis(100);

impl Session {
    /// Feeds the stream to the outlets until the program ends, from another thread. `tick` is called about every 100 ms
    /// with the session, for progress and adaptation.
    ///
    /// # Panics
    /// If an outlet does.
    pub fn serve(mut self, out: Outlets<'_>, tick: &mut dyn FnMut(&mut Session)) -> Served {
        let study = self.study.take().expect("a session is served once, which takes it");
        let mut desk = Desk::new(study, out);
        desk.look_at_mappings(self.pid);
        let waiting = Waiting::new();
        let (exit, mut desk) = thread::scope(|scope| {
            let (clerk, orders) = Clerk::new(Arc::clone(&self.shared));
            let reader = scope.spawn(move || desk.work(&orders));
            let exit = self.watch_over(&clerk, &waiting, &|| reader.is_finished(), tick);
            drop(clerk);
            let desk = reader.join().unwrap_or_else(|panic| resume_unwind(panic));
            (exit.expect("only a panic ends the reader before the program"), desk)
        });
        drop(waiting);
        let sonde_cpu = watch::own_cpu_time();
        let governed = self.end_governing();
        desk.read_rest();
        self.leave_children(&mut desk);
        let threads = self.threads.as_ref().map_or(0, |t| t.uncovered);
        let uncovered = threads + self.stops.as_ref().map_or(0, |s| s.uncovered);
        let let_go = self.stops.as_ref().map_or(0, |s| s.apart().1);
        let spent =
            Spent { cpu: self.cpu, system: self.system, children: self.children(), uncovered, let_go };
        let (totals, decoder) = desk.study.conclude(&self.clock, spent);
        let mut in_place = self.in_place();
        if let Some(Ok(facts)) = &mut in_place {
            facts.came_later(totals.mappings.all());
        }
        Served { exit, totals, decoder, followed: self.followed, governed, in_place, sonde_cpu }
    }

    /// Triggers, and does what has to be done for the program, until it ends. None if the reader does before.
    fn watch_over(
        &mut self,
        clerk: &Clerk<'_>,
        waiting: &Waiting,
        is_over: &dyn Fn() -> bool,
        tick: &mut dyn FnMut(&mut Session),
    ) -> Option<Exit> {
        let mut next_tick = Instant::now() + TICK;
        let mut next_decision = Instant::now();
        while !is_over() {
            let again = match self.poll(clerk) {
                Poll::Running => false,
                Poll::Again => true,
                Poll::Ended(exit) => return Some(exit),
                Poll::Replaced => {
                    clerk.order_now(Desk::read_rest);
                    if self.place_again() {
                        clerk.order(|desk| desk.study.watch.follow_exec());
                    }
                    false
                }
            };
            let now = Instant::now();
            let ready = self.shared.control().ready.load(Acquire) != 0;
            if let Some(threads) = self.threads.as_mut().filter(|_| ready) {
                threads.scan(now);
            }
            if now >= next_decision {
                self.govern();
                next_decision = now + self.time_between_decisions();
            }
            if now >= next_tick {
                tick(self);
                next_tick = now + TICK;
            }
            if !again {
                let patience = self.stops.as_ref().map_or(Duration::from_millis(2), Stops::patience);
                waiting.wait(patience, self.stops.as_ref().and_then(Stops::fd));
            }
        }
        None
    }

    /// What became of the program meanwhile.
    fn poll(&mut self, clerk: &Clerk<'_>) -> Poll {
        let pid = self.pid;
        if self.stops.is_some() {
            return match self.news() {
                None => Poll::Running,
                Some(News::Ended(ended, how)) if ended == pid => Poll::Ended(self.ended(how)),
                Some(News::Stopped(signal)) => {
                    job_control::stop_like(pid, signal);
                    Poll::Running
                }
                Some(News::Replaced(replaced)) if replaced == pid => Poll::Replaced,
                Some(News::Ended(child, how)) => {
                    self.child_ended(child, &how, clerk);
                    Poll::Again
                }
                Some(News::Replaced(child)) => {
                    self.child_replaced(child, clerk);
                    Poll::Again
                }
                Some(News::AtEntry) => {
                    self.change_code();
                    Poll::Again
                }
                Some(News::Leaving(leaving)) => {
                    self.look_before_the_end(leaving, clerk);
                    Poll::Again
                }
                Some(News::Lost(child, cpu)) => {
                    self.child_lost(child, cpu, clerk);
                    Poll::Again
                }
                Some(News::Due(child, tid)) => {
                    self.place_in_child(child, tid, clerk);
                    Poll::Again
                }
            };
        }
        match children::next_report(pid, libc::WSTOPPED) {
            None => Poll::Running,
            Some((_, true)) => {
                children::take_end(pid).map_or(Poll::Running, |ended| Poll::Ended(self.ended(ended)))
            }
            Some((_, false)) => {
                let mut status = 0;
                // SAFETY: the status is written to a local.
                unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG | libc::WUNTRACED) };
                if libc::WIFSTOPPED(status) {
                    job_control::stop_like(pid, libc::WSTOPSIG(status));
                }
                Poll::Running
            }
        }
    }

    fn news(&mut self) -> Option<News> {
        let (program, shared, children) = (self.pid, &self.shared, &self.children);
        let find = |pid: i32| match pid == program {
            true => Some(&**shared),
            false => children.get(&pid).map(|shared| &**shared),
        };
        self.stops.as_mut()?.serve(&find)
    }

    /// A process stands still at its end, with all its memory: what is mapped now is the last that can be seen of it.
    fn look_before_the_end(&mut self, pid: i32, clerk: &Clerk<'_>) {
        clerk.order_now(move |desk| desk.look_at_mappings(pid));
        if let Some(stops) = &mut self.stops {
            stops.not_now(pid);
        }
    }

    fn ended(&mut self, ended: Ended) -> Exit {
        self.cpu = ended.own;
        self.system = ended.system;
        self.children_cpu = ended.children;
        exit_of(ended.status)
    }

    /// Counted by the tracer, by the probe, or by looking; see the module that looks.
    fn children(&self) -> Children {
        let inside = self.shared.control().counter(Counter::Children);
        let reported = self.stops.as_ref().map_or(0, |s| s.children);
        let seen = self.threads.as_ref().map_or(0, |t| t.children.count());
        // Some there were, if there is time that only children can have taken.
        let some = u64::from(self.children_cpu > Duration::ZERO && self.followed.processes == 0);
        let (apart, let_go) = self.stops.as_ref().map_or((0, 0), Stops::apart);
        let count = (inside + reported + seen + apart).max(some);
        // In resident modes the probe sees the calls whoever traces.
        let looked = self.threads.is_some() || let_go > 0 && inside == 0;
        let is_lower_bound = count > 0 && looked;
        Children { count, is_lower_bound, cpu: self.children_cpu }
    }
}

/// What a look at the program found.
enum Poll {
    Running,
    /// Something was done, and there may be more to do.
    Again,
    Ended(Exit),
    Replaced,
}

pub(crate) fn exit_of(status: i32) -> Exit {
    if libc::WIFSIGNALED(status) {
        Exit::Signal(libc::WTERMSIG(status))
    } else {
        Exit::Status(libc::WEXITSTATUS(status))
    }
}
