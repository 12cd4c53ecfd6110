//! The thread that reads what probes logged.
//!
//! Whoever starts bursts has to answer threads that stand still, at once, and to start the next burst in time; whoever
//! reads takes as long as the analyses take. In one thread, a long burst was followed by a long gap: programs waited at
//! each signal, and bursts kept step with the phases of programs (shares were off by 15 points at `--rate 5%`).
//!
//! The tracer must be one thread (ptrace), and buffers are read in the shared memory where they are, so the reading moves
//! out and nothing is copied. The tracer gives orders: what to do between two buffers, in their order.

use crate::follow::{Child, Part};
use crate::serve::{Exit, Outlets};
use crate::shared::SharedMemory;
use crate::study::{Spent, Study, tell};
use crate::watch::Clock;
use sonde_event::maps::Mapping;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel, sync_channel};
use std::time::{Duration, Instant};

/// Shortest and longest wait for a full buffer, which wakes the reader; what has no such signal (descriptions, buffers of
/// followed processes) is looked at more and more seldom while there is none.
const SHORTEST: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_millis(100);
const LONGEST_WITH_CHILDREN: Duration = Duration::from_millis(10);

/// All that is read, and where it goes.
pub(crate) struct Desk<'a> {
    pub study: Study,
    children: BTreeMap<i32, Child>,
    out: Outlets<'a>,
}

/// Something to be done by the reading thread.
type Order<'a> = Box<dyn FnOnce(&mut Desk<'a>) + Send + 'a>;

/// Orders that have not been carried out yet.
pub(crate) struct Orders<'a>(Receiver<Order<'a>>);

/// The tracer's end.
pub(crate) struct Clerk<'a> {
    orders: Sender<Order<'a>>,
    shared: Arc<SharedMemory>,
}

fn outlets_of<'b>(out: &'b mut Outlets<'_>, pid: i32) -> Outlets<'b> {
    let parts = out.parts.as_deref_mut();
    Outlets { reader: parts.and_then(|parts| parts.reader(pid)), ..Outlets::default() }
}

impl<'a> Desk<'a> {
    /// Reads one process, for now.
    pub fn new(study: Study, out: Outlets<'a>) -> Desk<'a> {
        Desk { study, children: BTreeMap::new(), out }
    }

    /// Reads until nobody can give orders any more.
    pub fn work(mut self, orders: &Orders<'a>) -> Desk<'a> {
        let mut patience = SHORTEST;
        loop {
            let seen = self.study.shared.control().full_signal.load(Acquire);
            let before = self.described();
            let busy = self.read();
            loop {
                match orders.0.try_recv() {
                    Ok(order) => order(&mut self),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return self,
                }
            }
            patience = if busy || self.described() != before { SHORTEST } else { patience * 2 };
            if !busy {
                patience = self.wait(seen, patience);
            }
        }
    }

    /// At most one buffer of each process. Returns whether there was one.
    fn read(&mut self) -> bool {
        let now = Instant::now();
        let mut busy = self.study.read(&mut self.out);
        if self.study.watch.is_due(now) {
            self.study.look_at_mappings(&mut self.out);
        }
        for (pid, child) in &mut self.children {
            let mut out = outlets_of(&mut self.out, *pid);
            busy |= child.study.read(&mut out);
            if child.study.watch.is_due(now) {
                child.study.look_at_mappings(&mut out);
            }
        }
        busy
    }

    /// Superblocks described so far.
    fn described(&self) -> u64 {
        let children = self.children.values().map(|child| child.study.descriptions());
        self.study.descriptions() + children.sum::<u64>()
    }

    /// Waits for a full buffer, an order, or a little while; returns how long that is at most.
    fn wait(&self, seen: u32, patience: Duration) -> Duration {
        let patience = patience.min(if self.children.is_empty() { LONGEST } else { LONGEST_WITH_CHILDREN });
        let limit = self.study.watch.until_due(Instant::now()).min(patience);
        let limit = libc::timespec { tv_sec: 0, tv_nsec: i64::from(limit.subsec_nanos()) };
        let word = self.study.shared.control().full_signal.as_ptr();
        // SAFETY: the word and the time are valid; FUTEX_WAIT = 0 on shared memory.
        unsafe { libc::syscall(libc::SYS_futex, word, 0, seen, &raw const limit, 0, 0) };
        patience
    }

    /// Looks at what is mapped in a process.
    pub fn look_at_mappings(&mut self, pid: i32) {
        if pid == self.study.pid {
            self.study.look_at_mappings(&mut self.out);
        } else if let Some(child) = self.children.get_mut(&pid) {
            child.study.look_at_mappings(&mut outlets_of(&mut self.out, pid));
        }
    }

    /// The program's image is gone, or about to be: reads what is left of it.
    pub fn read_rest(&mut self) {
        self.study.read_rest(&mut self.out);
    }

    /// A followed process got a probe, with this mapped in it.
    pub fn begin_part(&mut self, child: Child, mappings: &[Mapping]) {
        let pid = child.study.pid;
        if let Some(parts) = &mut self.out.parts {
            parts.begin(pid, &child.exe);
        }
        tell(mappings, &mut outlets_of(&mut self.out, pid));
        self.children.insert(pid, child);
    }

    /// The image of a followed process is gone, or goes on without us.
    pub fn end_part(&mut self, pid: i32, exit: Option<Exit>, cpu: Duration, clock: &Clock) {
        let Some(mut child) = self.children.remove(&pid) else { return };
        child.study.read_rest(&mut outlets_of(&mut self.out, pid));
        let (totals, decoder) = child.study.conclude(clock, Spent { cpu, ..Spent::default() });
        if let Some(parts) = &mut self.out.parts {
            parts.end(Part { pid, exe: child.exe, exit, totals, decoder });
        }
    }
}

impl<'a> Clerk<'a> {
    /// For the reader of a program that shares this memory.
    pub fn new(shared: Arc<SharedMemory>) -> (Clerk<'a>, Orders<'a>) {
        let (orders, taken) = channel();
        (Clerk { orders, shared }, Orders(taken))
    }

    /// Has something done, some time, in the order of orders.
    pub fn order(&self, what: impl FnOnce(&mut Desk<'a>) + Send + 'a) {
        // A reader that is gone has panicked, which its owner finds out when it joins it.
        let _ = self.orders.send(Box::new(what));
        self.wake();
    }

    /// Has something done now, and waits until it is.
    pub fn order_now(&self, what: impl FnOnce(&mut Desk<'a>) + Send + 'a) {
        let (done, is_done) = sync_channel(1);
        self.order(move |desk| {
            what(desk);
            let _ = done.send(());
        });
        let _ = is_done.recv();
    }

    fn wake(&self) {
        let signal = &self.shared.control().full_signal;
        signal.fetch_add(1, AcqRel);
        // SAFETY: FUTEX_WAKE = 1 only uses the address as a name.
        unsafe { libc::syscall(libc::SYS_futex, signal.as_ptr(), 1, i32::MAX, 0, 0, 0) };
    }
}

impl Drop for Clerk<'_> {
    /// Without a clerk the reader ends; it may be asleep.
    fn drop(&mut self) {
        let (nobody, _) = channel();
        self.orders = nobody;
        self.wake();
    }
}
