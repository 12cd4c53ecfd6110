//! Looks at the program from outside: what is mapped in it, how much CPU time it used, how fast the time stamp runs.

use crate::image;
use sonde_event::maps::{Mapping, Mappings};
use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

const SOONEST: Duration = Duration::from_millis(100);
const LATEST: Duration = Duration::from_secs(2);

/// Keeps the union over time of the program's mappings.
///
/// Looking takes the program's mapping lock for a moment, so it is done more and more seldom while nothing changes; new
/// code (a description that lies in no known mapping) is looked up at once.
pub struct Watch {
    pid: i32,
    mappings: Mappings,
    build_ids: HashMap<String, Vec<u8>>,
    next: Instant,
    interval: Duration,
}

impl Watch {
    /// Nothing seen yet.
    pub fn new(pid: i32) -> Watch {
        Watch {
            pid,
            mappings: Mappings::default(),
            build_ids: HashMap::new(),
            next: Instant::now() + SOONEST,
            interval: SOONEST,
        }
    }

    /// Whether it is time to look again.
    pub fn is_due(&self, now: Instant) -> bool {
        now >= self.next
    }

    /// Whether code at this address is in a known mapping.
    pub fn knows_code(&self, pc: u64) -> bool {
        self.mappings.find(pc).is_some_and(Mapping::is_executable)
    }

    /// Looks, and returns what is new.
    pub fn look(&mut self, now: Instant) -> &[Mapping] {
        let text = fs::read(format!("/proc/{}/maps", self.pid)).unwrap_or_default();
        let first = self.mappings.observe(&String::from_utf8_lossy(&text));
        for mapping in &mut self.mappings.all_mut()[first..] {
            if mapping.is_file() {
                let read = || image::build_id(self.pid, &mapping.name);
                mapping.build_id = self.build_ids.entry(mapping.name.clone()).or_insert_with(read).clone();
            }
        }
        let news = &self.mappings.all()[first..];
        self.interval = if news.is_empty() { (self.interval * 2).min(LATEST) } else { SOONEST };
        self.next = now + self.interval;
        news
    }

    /// Everything seen.
    pub fn into_mappings(self) -> Mappings {
        self.mappings
    }
}

/// Wall time and time stamp since the start of the program.
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
}
