//! The program's child processes that are not recorded: how many there were, and what they cost.
//!
//! Where Sonde is the tracer, the kernel reports each child; in resident modes the probe sees the calls that make
//! them. With the signal triggers nobody sees a fork, so the lists of children in `/proc` are looked at now and then,
//! which gives a lower bound: a child that lives for less than the time between two looks may be missed. Rejected for
//! exactness there: staying the tracer (the signals of the trigger would take the detour that these triggers avoid),
//! becoming the reaper of orphans (programs see another parent), tracepoints and the process connector (rights).
//!
//! CPU time is exact in all modes, for children that the program waited for: the kernel adds it up.

use std::collections::HashSet;
use std::fs;
use std::mem::zeroed;
use std::time::Duration;

/// What is known of the children of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Children {
    /// Processes that it started and that were not recorded.
    pub count: u64,
    /// Whether these are all, or only those that were seen at some moment.
    pub is_lower_bound: bool,
    /// CPU time of the children that it waited for, and of theirs; recorded or not.
    pub cpu: Duration,
}

/// Counts children by looking at the lists in `/proc`.
#[derive(Default)]
pub struct Lookout {
    alive: HashSet<i32>,
    count: u64,
}

impl Lookout {
    /// Looks at the children of these threads of a process.
    pub fn look(&mut self, pid: i32, tids: &[i32]) {
        let mut alive = HashSet::new();
        for tid in tids {
            let list = fs::read_to_string(format!("/proc/{pid}/task/{tid}/children")).unwrap_or_default();
            alive.extend(list.split_ascii_whitespace().filter_map(|n| n.parse::<i32>().ok()));
        }
        self.count += alive.difference(&self.alive).count() as u64;
        self.alive = alive;
    }

    /// The children that these threads have now are known already.
    pub fn know(&mut self, pid: i32, tids: &[i32]) {
        let before = self.count;
        self.look(pid, tids);
        self.count = before;
    }

    /// Children seen so far.
    pub fn count(&self) -> u64 {
        self.count
    }
}

/// How a process ended, and the CPU time that it and its children took.
pub struct Ended {
    /// As wait gives it.
    pub status: i32,
    /// Its own CPU time.
    pub own: Duration,
    /// The part of it in the kernel.
    pub system: Duration,
    /// That of the children that it waited for.
    pub children: Duration,
}

/// The next process that has something to report, which is left to be reported again: one of them, or any if `pid` is
/// -1; and whether it ended.
pub fn next_report(pid: i32, flags: i32) -> Option<(i32, bool)> {
    let (kind, id) = if pid == -1 { (libc::P_ALL, 0) } else { (libc::P_PID, pid as u32) };
    // SAFETY: plain data written by the kernel.
    let mut info: libc::siginfo_t = unsafe { zeroed() };
    // SAFETY: the pointer leads to a local.
    let r =
        unsafe { libc::waitid(kind, id, &mut info, flags | libc::WEXITED | libc::WNOHANG | libc::WNOWAIT) };
    // SAFETY: the kernel filled in the form for children, or left zeroes.
    let pid = unsafe { info.si_pid() };
    let ended = matches!(info.si_code, libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED);
    (r == 0 && pid != 0).then_some((pid, ended))
}

/// Takes the report of a process that ended. What wait tells is the time of the process and its children together; the
/// clock of the process, which can be read until it is waited for, tells them apart.
pub fn take_end(pid: i32) -> Option<Ended> {
    let (own, ticks) = (crate::watch::cpu_time(pid), ticks_of(pid));
    let mut status = 0;
    // SAFETY: plain data written by the kernel.
    let mut usage: libc::rusage = unsafe { zeroed() };
    // SAFETY: both pointers lead to locals.
    if unsafe { libc::wait4(pid, &mut status, libc::WNOHANG | libc::__WALL, &mut usage) } != pid {
        return None;
    }
    let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
    let both = time(usage.ru_utime) + time(usage.ru_stime);
    // Without a clock (no such process any more) all of it is called its own. The total is in whole microseconds for
    // user and system time each, so that a difference below that is rounding.
    let rounding = Duration::from_micros(2);
    let own = if own == Duration::ZERO { both } else { own };
    let children = both.checked_sub(own + rounding).unwrap_or_default();
    // With children only the ticks are its own, which are too coarse for short programs.
    let ticks = ticks.filter(|_| children > Duration::ZERO);
    let kernel = ticks.unwrap_or((time(usage.ru_utime).as_secs_f64(), time(usage.ru_stime).as_secs_f64()));
    Some(Ended { status, own, system: own.mul_f64(part(kernel)), children })
}

/// The second of two as a part of both.
fn part((user, system): (f64, f64)) -> f64 {
    if user + system > 0.0 { system / (user + system) } else { 0.0 }
}

/// User and system time of a process, without its children, in clock ticks.
fn ticks_of(pid: i32) -> Option<(f64, f64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold blanks; user and system time are the 14th and 15th field.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(11).map(|field| field.parse().ok());
    Some((fields.next()??, fields.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    #[expect(clippy::zombie_processes, reason = "waited for by what is tested")]
    fn own_time_is_told_from_that_of_children() {
        let spin = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        for (script, childrens) in [(spin.to_string(), false), (format!("({spin}) & wait"), true)] {
            let child = Command::new("sh").args(["-c", &script]).spawn().unwrap();
            let pid = child.id() as i32;
            while next_report(pid, 0) != Some((pid, true)) {
                std::thread::sleep(Duration::from_millis(1));
            }
            let ended = take_end(pid).unwrap();
            assert_eq!(ended.status, 0);
            assert_eq!(ended.children > ended.own, childrens, "{:?} {:?}", ended.own, ended.children);
            assert_eq!(ended.children > Duration::ZERO, childrens);
            assert!(ended.system <= ended.own, "{:?}", ended.system);
        }
    }

    #[test]
    fn children_are_counted_once() {
        let mut lookout = Lookout::default();
        let tid = std::process::id() as i32;
        let me = std::fs::read_link("/proc/thread-self").unwrap();
        let me: i32 = me.file_name().unwrap().to_str().unwrap().parse().unwrap();
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        lookout.look(tid, &[me]);
        let first = lookout.count();
        lookout.look(tid, &[me]);
        child.kill().unwrap();
        child.wait().unwrap();
        lookout.look(tid, &[me]);
        assert_eq!((first, lookout.count()), (1, 1));
    }
}
