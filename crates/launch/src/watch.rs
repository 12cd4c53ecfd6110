//! Looks at the program from outside: what is mapped in it, how much CPU time it used, how fast the time stamp runs.

use crate::image;
use crate::stacks::Stacks;
use sonde_event::maps::{Mapping, Mappings};
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Name of the memory that Sonde shares with the probe: nothing of the program lies there.
const OURS: &str = "/memfd:sonde (deleted)";

/// The first look: short programs have loaded their libraries by then.
const FIRST: Duration = Duration::from_millis(4);
/// The least time between looks for addresses that are not known.
const LEAST: Duration = Duration::from_micros(500);
const SOONEST: Duration = Duration::from_millis(100);
const LATEST: Duration = Duration::from_secs(2);

/// Keeps the union over time of the program's mappings.
///
/// Looking takes the program's mapping lock for a moment, so it is done more and more seldom while nothing changes; new
/// code (a description that lies in no known mapping) is looked up at once.
pub struct Watch {
    pid: i32,
    /// Memory of the probe, which is no mapping of the program: first address and end of each part.
    ours: Vec<(u64, u64)>,
    mappings: Mappings,
    build_ids: HashMap<String, Vec<u8>>,
    stacks: Stacks,
    next: Instant,
    interval: Duration,
    looked: Instant,
    /// What the last look cost.
    cost: Duration,
    /// The file that the process ran at the start, and the last other one it was seen to run.
    image: Option<(u64, u64)>,
    became: Option<PathBuf>,
}

/// Identity of the file that a process runs.
fn image_of(pid: i32) -> Option<(u64, u64)> {
    fs::metadata(format!("/proc/{pid}/exe")).ok().map(|m| (m.dev(), m.ino()))
}

impl Watch {
    /// Nothing seen yet.
    pub fn new(pid: i32) -> Watch {
        Watch {
            pid,
            ours: Vec::new(),
            mappings: Mappings::default(),
            build_ids: HashMap::new(),
            stacks: Stacks::default(),
            next: Instant::now() + FIRST,
            interval: FIRST,
            looked: Instant::now(),
            cost: Duration::ZERO,
            image: image_of(pid),
            became: None,
        }
    }

    /// Tells where the probe's memory is now.
    pub fn leave_out(&mut self, ours: impl IntoIterator<Item = (u64, u64)>) {
        self.ours.clear();
        self.ours.extend(ours.into_iter().filter(|(start, end)| start < end));
    }

    /// The program was replaced by another one, which is recorded too.
    pub fn follow_exec(&mut self) {
        self.image = image_of(self.pid);
        self.became = None;
        self.stacks = Stacks::default();
        self.next = Instant::now();
        self.interval = SOONEST;
    }

    fn look_for_exec(&mut self) {
        if image_of(self.pid).is_some_and(|now| Some(now) != self.image) {
            self.became = fs::read_link(format!("/proc/{}/exe", self.pid)).ok();
        }
    }

    /// The program that the process was replaced by, if that was seen.
    pub fn became(&self) -> Option<&Path> {
        self.became.as_deref()
    }

    /// Whether it is time to look again.
    pub fn is_due(&self, now: Instant) -> bool {
        now >= self.next
    }

    /// How long until then.
    pub fn until_due(&self, now: Instant) -> Duration {
        self.next.saturating_duration_since(now)
    }

    /// Whether code at this address is in a known mapping.
    pub fn knows_code(&self, pc: u64) -> bool {
        self.mappings.find(pc).is_some_and(Mapping::is_executable)
    }

    /// Looks, and returns what is new or has grown.
    pub fn look(&mut self, now: Instant) -> Vec<Mapping> {
        let text = fs::read(format!("/proc/{}/maps", self.pid)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let its_own = |line: &&str| !line.contains(OURS);
        let mut news = Vec::new();
        let all = text.lines().filter(its_own).filter_map(Mapping::parse);
        for mapping in all.flat_map(|mapping| without(mapping, &self.ours)).collect::<Vec<_>>() {
            let Some(mapping) = self.mappings.add(mapping) else { continue };
            if mapping.is_file() && mapping.build_id.is_empty() {
                let read = || image::build_id(self.pid, &mapping.name);
                mapping.build_id = self.build_ids.entry(mapping.name.clone()).or_insert_with(read).clone();
            }
            news.push(mapping.clone());
        }
        let news = self.name_stacks(news);
        self.look_for_exec();
        let next = (self.interval * 2).min(LATEST);
        self.interval = if news.is_empty() { next } else { next.min(SOONEST) };
        self.next = now + self.interval;
        self.looked = Instant::now();
        self.cost = self.looked.saturating_duration_since(now);
        news
    }

    /// Tells of stacks instead of the memory that they are a part of: who waits for an address takes the first place that
    /// it is given.
    fn name_stacks(&mut self, news: Vec<Mapping>) -> Vec<Mapping> {
        let mut told = Vec::with_capacity(news.len());
        for mapping in news {
            let mut stacks = self.stacks.within(&mapping);
            stacks.sort_by_key(|stack| stack.start);
            let mut from = mapping.start;
            for stack in stacks {
                told.push(Mapping { start: from, end: stack.start, ..mapping.clone() });
                from = stack.end;
                self.mappings.add(stack.clone());
                told.push(stack);
            }
            told.push(Mapping { start: from, ..mapping });
        }
        told.retain(|mapping| mapping.start < mapping.end);
        told
    }

    /// A thread logged something, which is about to be read. Returns its stack if that is news, and everything that is new
    /// while mappings come and go: addresses in what is not known yet can only wait in small numbers. Where nothing has
    /// changed for a while, whoever meets an address that is not known asks: a look for each burst cost a percent.
    pub fn before_reading(&mut self, tid: i32, words: &[u64]) -> Vec<Mapping> {
        let now = Instant::now();
        let base = self.stacks.note(self.pid, tid, words);
        let unknown = base.is_some_and(|base| self.mappings.find(base).is_none());
        let changing = self.interval <= SOONEST && self.is_worth_a_look(now);
        let mut news = if unknown || changing { self.look(now) } else { Vec::new() };
        if base.is_some() {
            let known: Vec<Mapping> = self.mappings.all().to_vec();
            let stacks: Vec<Mapping> = known.iter().flat_map(|mapping| self.stacks.within(mapping)).collect();
            news.extend(stacks.into_iter().filter_map(|stack| self.mappings.add(stack).cloned()));
        }
        news
    }

    /// Somebody met an address that is not known: whether a look at once is due. An address may lie nowhere (a stray
    /// prefetch, memory that is gone already), so that looks must not take more than a small part of the time.
    pub fn is_worth_a_look(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.looked) >= (self.cost * 20).clamp(LEAST, FIRST)
    }

    /// Everything seen.
    pub fn into_mappings(self) -> Mappings {
        self.mappings
    }
}

/// What is left of a mapping without these parts: the kernel makes one mapping of neighbours of the same kind.
fn without(mapping: Mapping, parts: &[(u64, u64)]) -> Vec<Mapping> {
    let mut left = vec![mapping];
    for (start, end) in parts {
        left = left
            .into_iter()
            .flat_map(|mapping| {
                let below = Mapping { end: mapping.end.min(*start), ..mapping.clone() };
                // Only nameless memory is cut, where offsets mean nothing.
                let above = Mapping { start: mapping.start.max(*end), ..mapping };
                [below, above]
            })
            .filter(|mapping| mapping.start < mapping.end)
            .collect();
    }
    left
}

/// Wall time and time stamp since the start of the program.
#[derive(Clone, Copy)]
pub struct Clock {
    started: Instant,
    stamp: u64,
}

fn stamp() -> u64 {
    // SAFETY: reads a counter that every x86-64 processor has.
    unsafe { std::arch::x86_64::_rdtsc() }
}

impl Clock {
    /// Starts now.
    pub fn start() -> Clock {
        Clock { started: Instant::now(), stamp: stamp() }
    }

    /// Wall time since the start.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Time-stamp ticks in a second.
    pub fn ticks_per_second(&self) -> f64 {
        let ticks = stamp().wrapping_sub(self.stamp) as f64;
        ticks / self.elapsed().as_secs_f64().max(1e-9)
    }
}

/// CPU time of a process so far; 0 if it is gone.
pub fn cpu_time(pid: i32) -> Duration {
    // The clock of another process: its id inverted, above the kind of the clock (2: time scheduled).
    let clock = (!pid << 3) | 2;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is written to a local.
    if unsafe { libc::clock_gettime(clock, &mut time) } != 0 {
        return Duration::ZERO;
    }
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// CPU time that Sonde itself has used so far.
pub fn own_cpu_time() -> Duration {
    cpu_time(std::process::id() as i32)
}

/// CPU time that this thread has used so far.
pub fn thread_cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is written to a local.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_mappings_and_time() {
        let pid = std::process::id() as i32;
        let mut watch = Watch::new(pid);
        assert!(!watch.look(Instant::now()).is_empty());
        assert!(watch.knows_code(stamp as *const () as u64));
        assert!(!watch.knows_code(&raw const watch as u64));
        assert!(cpu_time(pid) > Duration::ZERO);
        assert_eq!(cpu_time(i32::MAX - 7), Duration::ZERO);
    }

    #[test]
    fn memory_of_the_probe_is_left_out() {
        let mapping = Mapping::parse("1000-9000 rw-p 00000000 00:00 0").unwrap();
        let left = |parts: &[(u64, u64)]| -> Vec<(u64, u64)> {
            without(mapping.clone(), parts).iter().map(|m| (m.start, m.end)).collect()
        };
        assert_eq!(left(&[]), [(0x1000, 0x9000)]);
        assert_eq!(left(&[(0x2000, 0x3000), (0x8000, 0xa000)]), [(0x1000, 0x2000), (0x3000, 0x8000)]);
        assert_eq!(left(&[(0xa000, 0xb000), (0, 0x1000)]), [(0x1000, 0x9000)]);
        assert_eq!(left(&[(0, 0x10000)]), []);
    }
}
