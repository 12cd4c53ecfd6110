//! Asks Sonde whether an interrupted thread may make system calls.
//!
//! A program may restrict itself (seccomp) at any time, and then any system call of ours can end it. From inside that cannot
//! be seen without a system call, from outside it can, but only for as long as the thread does nothing. So the handler of
//! a trigger signal makes none: it says in the shared memory which thread it is, as the signal tells, and waits for the
//! answer there. Sonde looks at the thread meanwhile (`launch/src/answers.rs`). Without an answer in time nothing begins.

use crate::state::Engine;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use sonde_sys::signal::{Info, SI_QUEUE, SI_TIMER};
use sonde_wire::Counter;
use sonde_wire::asks::{self, Ask, By};

/// How often to look for the answer: for one to three milliseconds, by processor. On a busy machine Sonde does not get the
/// processor at once. Not by the time stamp counter, which a program under strict seccomp may not read.
const LOOKS: u32 = 60_000;
/// After so many questions in a row without an answer, only each 64th is asked: Sonde may be gone.
const PATIENT: u32 = 4;

impl Engine {
    /// Whether the interrupted thread may make system calls.
    pub fn may_make_calls(&self, info: &Info) -> bool {
        let Some(by) = who(info) else { return false };
        let control = self.control();
        let silent = self.unanswered.load(Relaxed);
        if silent >= PATIENT && !silent.is_multiple_of(64) {
            self.unanswered.store(silent.wrapping_add(1).max(PATIENT), Relaxed);
            control.count(Counter::SkippedUnanswered, 1);
            return false;
        }
        let asked = asks::encode(Ask { by, state: asks::ASKED });
        let free = control.asks.iter().find(|ask| ask.compare_exchange(0, asked, AcqRel, Acquire).is_ok());
        let Some(place) = free else {
            control.count(Counter::SkippedUnanswered, 1);
            return false;
        };
        for _ in 0..LOOKS {
            let answer = place.load(Acquire);
            if answer != asked {
                place.store(0, Release);
                self.unanswered.store(0, Relaxed);
                return asks::decode(answer).is_some_and(|ask| ask.state == asks::YES);
            }
            core::hint::spin_loop();
        }
        control.count(Counter::SkippedUnanswered, 1);
        self.unanswered.store(silent.wrapping_add(1), Relaxed);
        // A timer comes again by itself. Without one the thread needs another signal from Sonde, from here on.
        let state = asks::encode(Ask { by, state: asks::LATE });
        let late = if info.code == SI_QUEUE { state } else { 0 };
        if place.compare_exchange(asked, late, AcqRel, Acquire).is_err() {
            place.store(0, Release);
        }
        false
    }
}

/// Whose trigger a signal is; none if it is not ours.
fn who(info: &Info) -> Option<By> {
    match info.code {
        SI_TIMER | SI_QUEUE => Some(By::Thread(info.value() as i32)),
        1..=6 => Some(By::Event(info.value() as i32)),
        _ => None,
    }
}
