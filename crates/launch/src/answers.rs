//! Answers interrupted threads that ask whether they may make system calls (`engine/src/ask.rs`).
//!
//! While a thread waits for the answer it does nothing else, so that what `/proc` tells of it holds: a thread that is under
//! seccomp otherwise than Sonde, from which the program inherits, gets no for an answer. A thread of its own, because it
//! has to be quick: whoever asks waits, and gives up after a millisecond or two. The kernel tells nobody that a timer
//! expired, so it looks every third of a millisecond, but not while no trigger can be due.

use crate::shared::SharedMemory;
use crate::thread_files::status_of;
use sonde_wire::Counter;
use sonde_wire::asks::{self, Ask, By};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Between two looks while somebody may ask.
const APART: Duration = Duration::from_micros(300);
/// No gap between two triggers of a thread is shorter than this part of the period, whatever chance says.
const SHORTEST_GAP: u32 = 4;

/// What those that cover threads and the one that answers tell each other.
#[derive(Default)]
pub struct Known {
    /// Threads by the descriptor of their perf event.
    pub events: HashMap<i32, i32>,
    /// How many threads have a trigger.
    pub threads: usize,
    /// Threads that got no for an answer.
    pub confined: HashSet<i32>,
    /// Threads that gave up waiting: their trigger may have to be set anew.
    pub late: Vec<i32>,
}

/// The one who answers, until this is dropped.
pub struct Answers {
    known: Arc<Mutex<Known>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Answers {
    /// Begins to answer for a process.
    pub fn new(pid: i32, shared: &Arc<SharedMemory>) -> Answers {
        let known = Arc::new(Mutex::new(Known::default()));
        let over = Arc::new(AtomicBool::new(false));
        let desk = Desk { pid, shared: Arc::clone(shared), known: Arc::clone(&known), ours: own_seccomp() };
        let end = Arc::clone(&over);
        // Without it all questions stay unanswered, which is counted, and nothing is recorded.
        let thread = thread::Builder::new().name("answers".into()).spawn(move || desk.serve(&end)).ok();
        Answers { known, over, thread }
    }

    /// What is known, to look at and to change.
    pub fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            // One that panicked has answered nothing, which was counted.
            let _ = thread.join();
        }
    }
}

fn own_seccomp() -> u32 {
    let pid = std::process::id() as i32;
    status_of(pid, pid).seccomp
}

struct Desk {
    pid: i32,
    shared: Arc<SharedMemory>,
    known: Arc<Mutex<Known>>,
    ours: u32,
}

impl Desk {
    fn serve(&self, over: &AtomicBool) {
        let mut last: Option<Instant> = None;
        while !over.load(Relaxed) {
            if self.answer_all() {
                last = Some(Instant::now());
            }
            let threads = self.known.lock().unwrap_or_else(PoisonError::into_inner).threads.max(1);
            // A thread's next trigger does not come before that; with many threads one is always due.
            let quiet = if threads == 1 { self.period() / SHORTEST_GAP } else { Duration::ZERO };
            let left = last.map_or(Duration::ZERO, |last| quiet.saturating_sub(last.elapsed()));
            thread::sleep(left.clamp(APART, Duration::from_millis(50)));
        }
    }

    fn period(&self) -> Duration {
        let control = self.shared.control();
        let now = control.period_now.load(Relaxed);
        Duration::from_nanos(if now == 0 { control.config.period_ns } else { now })
    }

    /// Says whether anybody asked.
    fn answer_all(&self) -> bool {
        let mut any = false;
        for place in &self.shared.control().asks {
            let word = place.load(Acquire);
            let Some(ask) = asks::decode(word) else { continue };
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            let tid = match ask.by {
                By::Thread(tid) => Some(tid),
                By::Event(fd) => known.events.get(&fd).copied(),
            };
            match ask.state {
                asks::ASKED => {
                    any = true;
                    let free = tid.is_some_and(|tid| status_of(self.pid, tid).seccomp == self.ours);
                    if let Some(tid) = tid.filter(|_| !free) {
                        known.confined.insert(tid);
                        self.shared.control().count(Counter::SkippedSeccomp, 1);
                    }
                    let answer =
                        asks::encode(Ask { by: ask.by, state: if free { asks::YES } else { asks::NO } });
                    // One that gave up meanwhile is seen in the next round.
                    let _ = place.compare_exchange(word, answer, AcqRel, Acquire);
                }
                asks::LATE => {
                    known.late.extend(tid);
                    let _ = place.compare_exchange(word, 0, AcqRel, Acquire);
                }
                // An answer that is not read yet.
                _ => {}
            }
        }
        any
    }
}
