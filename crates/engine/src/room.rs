//! Room for new copies where threads never leave the copy by themselves: the full cache is emptied while all wait.
//!
//! All links are undone, so that every thread asks the engine at the end of the superblock that it is in; it then misses,
//! finds the cache full and waits here too. Once nobody is inside any more, everything is thrown away. Nobody waits with
//! a lock held: a signal may find a thread in the copy, and its handler needs the translator to lead it out.
//!
//! Rejected: two halves that are filled in turn. They need the same waiting for threads that were suspended inside, and
//! halve what fits.

use crate::cache::Superblock;
use crate::state::Engine;
use crate::thread::Thread;
use crate::translate::Translator;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::time::Duration;
use sonde_sys::process;
use sonde_wire::marker::Cause;

/// How long a thread waits for the others before it goes native instead, in microseconds. One that was suspended inside
/// keeps all others waiting until it runs again.
const PATIENCE: u32 = 2_000_000;
/// Between two looks.
const NAP: Duration = Duration::from_micros(100);

impl Engine {
    /// The copy of `pc` for a thread that is about to go on there, made if there is none; in resident policies room is
    /// made for it. `found` is called with the copy before anybody else can throw it away, and told whether the cache is
    /// still the one that the caller knew.
    pub fn enter_copy(
        &self,
        thread: &mut Thread,
        pc: u64,
        found: &mut dyn FnMut(&mut Translator, &Superblock, bool),
    ) -> Result<u64, Cause> {
        // In this order: while a thread counts as inside, the cache is not emptied.
        let known = self.emptied.load(Acquire);
        thread.inside.store(0, Release);
        let mut waited = 0;
        loop {
            let mut translator = self.translator.lock();
            if !self.is_resident() && thread.may_translate == 0 {
                return Err(Cause::Cold);
            }
            let before = translator.exits();
            match translator.copy_of(self, pc, thread.version) {
                Ok(sb) => {
                    thread.inside.store(1, Relaxed);
                    let is_new = translator.exits() != before;
                    thread.may_translate = thread.may_translate.saturating_sub(u32::from(is_new));
                    found(&mut translator, &sb, self.emptied.load(Relaxed) == known);
                    return Ok(sb.at + u64::from(sb.body));
                }
                Err(Cause::CacheFull) if self.is_resident() && waited < PATIENCE => {
                    if self.empty(&mut translator) {
                        continue;
                    }
                }
                // The reader is behind with the descriptions: everything is to be recorded, so the program waits.
                Err(Cause::Buffers) if self.is_resident() && self.reader_lives() => {}
                Err(cause) => return Err(if cause == Cause::Buffers { Cause::CacheFull } else { cause }),
            }
            drop(translator);
            process::futex_wait(&self.nap, 0, NAP);
            waited += NAP.as_micros() as u32;
        }
    }

    /// Throws all copies away if no thread is in them. If one is, lets it come out.
    fn empty(&self, translator: &mut Translator) -> bool {
        let mut inside = false;
        self.pool.for_each(|thread| {
            // SAFETY: contexts are never unmapped; only atomic fields are touched.
            let thread = unsafe { &*thread };
            inside |= thread.active.load(Acquire) != 0 && thread.inside.load(Acquire) != 0;
        });
        if inside {
            translator.cache.lead_out();
            return false;
        }
        translator.flush(self);
        self.emptied.fetch_add(1, AcqRel);
        true
    }

    fn reader_lives(&self) -> bool {
        self.control().stop.load(Relaxed) == 0 && process::process_exists(self.control().config.sonde)
    }
}
