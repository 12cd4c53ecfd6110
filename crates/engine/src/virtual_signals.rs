//! The signal state that the program believes it has, while ours is in place: actions, mask, alternate stack.

use crate::deliver::on_signal;
use crate::entry;
use crate::program_memory::{read_program, write_program};
use crate::state::Engine;
use crate::thread::Thread;
use core::sync::atomic::AtomicU8;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use sonde_sys::signal::{self, Action, Context};

/// Signals whose action is always ours.
pub const ALWAYS_OURS: u64 = signal::bit(signal::SIGILL)
    | signal::bit(signal::SIGBUS)
    | signal::bit(signal::SIGFPE)
    | signal::bit(signal::SIGSEGV)
    | signal::bit(signal::SIGTRAP);

const EFAULT: i64 = -14;
const EINVAL: i64 = -22;
const EPERM: i64 = -1;
const ENOMEM: i64 = -12;

/// The program's signal actions, as it believes they are.
///
/// Each has two places, of which one byte says which is valid: a child that was forked while another thread of its parent
/// was changing an action must find it whole, and cannot wait for that thread, which it does not have.
pub struct Actions {
    /// By signal number minus one.
    places: [[Action; 2]; 64],
    valid: [AtomicU8; 64],
}

impl Default for Actions {
    fn default() -> Self {
        let none = Action { handler: 0, flags: 0, restorer: 0, mask: 0 };
        Actions { places: [[none; 2]; 64], valid: [const { AtomicU8::new(0) }; 64] }
    }
}

impl Actions {
    /// The action of a signal.
    pub fn get(&self, sig: i32) -> Action {
        let i = (sig - 1) as usize & 63;
        self.places[i][usize::from(self.valid[i].load(Acquire)) & 1]
    }

    /// Changes the action of a signal.
    pub fn set(&mut self, sig: i32, action: Action) {
        let i = (sig - 1) as usize & 63;
        let other = self.valid[i].load(Relaxed) ^ 1;
        self.places[i][usize::from(other) & 1] = action;
        self.valid[i].store(other, Release);
    }
}

impl Engine {
    /// Learns the program's actions and puts ours in place.
    pub fn take_actions(&self) {
        let mut actions = self.actions.lock();
        for sig in
            (1..=64).filter(|s| ![signal::SIGKILL, signal::SIGSTOP, self.control().config.signal].contains(s))
        {
            // SAFETY: only asks.
            if let Ok(old) = unsafe { signal::sigaction(sig, None) } {
                actions.set(sig, old);
                if ALWAYS_OURS & signal::bit(sig) != 0 {
                    let _ = set_real(sig, &old);
                }
            }
        }
    }

    /// Puts the program's own actions back in a child process; `shares_memory` if it runs in its parent's.
    pub fn restore_actions(&self, shares_memory: bool) {
        let lock = shares_memory.then(|| self.actions.lock());
        // SAFETY: either the lock is held, or this process has no other thread that could change anything.
        let actions = lock.as_deref().unwrap_or_else(|| unsafe { self.actions.without_lock() });
        let ours = ALWAYS_OURS | signal::bit(self.control().config.signal);
        for sig in 1..=64 {
            let action = actions.get(sig);
            if action.handler > signal::SIG_IGN || ours & signal::bit(sig) != 0 {
                // SAFETY: the program's own action.
                let _ = unsafe { signal::sigaction(sig, Some(&action)) };
            }
        }
    }

    /// The program's sigaction(sig, new, old, size).
    pub fn virtual_sigaction(&self, [sig, new_at, old_at]: [u64; 3], size: u64) -> i64 {
        if size != 8 || !(1..=64).contains(&sig) {
            return EINVAL;
        }
        let sig = sig as i32;
        let mut raw = [0u8; size_of::<Action>()];
        if new_at != 0 && !read_program(new_at, &mut raw) {
            return EFAULT;
        }
        let word = |i: usize| u64::from_le_bytes(raw[8 * i..8 * i + 8].try_into().unwrap_or_default());
        let new =
            Action { handler: word(0) as usize, flags: word(1), restorer: word(2) as usize, mask: word(3) };
        if new_at != 0 && (sig == signal::SIGKILL || sig == signal::SIGSTOP) {
            return EINVAL;
        }
        let mut actions = self.actions.lock();
        let old = actions.get(sig);
        if new_at != 0 {
            if sig != self.control().config.signal
                && let Err(error) = set_real(sig, &new)
            {
                return -i64::from(error.0);
            }
            actions.set(sig, new);
        }
        drop(actions);
        if old_at != 0 {
            let mut raw = [0u8; size_of::<Action>()];
            for (i, w) in
                [old.handler as u64, old.flags, old.restorer as u64, old.mask].into_iter().enumerate()
            {
                raw[8 * i..8 * i + 8].copy_from_slice(&w.to_le_bytes());
            }
            if !write_program(old_at, &raw) {
                return EFAULT;
            }
        }
        0
    }

    /// The program's sigprocmask(how, new, old, size): faults stay deliverable, whatever it asks for. All signals are
    /// blocked when it begins; when it ends, the program's mask is in force.
    pub fn virtual_sigprocmask(
        &self,
        thread: &mut Thread,
        [how, new_at, old_at]: [u64; 3],
        size: u64,
    ) -> i64 {
        let old = self.kept_mask(thread);
        let result = self.change_mask(thread, [how, new_at, old_at], size, old);
        self.release_held(thread);
        self.release_mask(thread);
        result
    }

    fn change_mask(&self, thread: &mut Thread, [how, new_at, old_at]: [u64; 3], size: u64, old: u64) -> i64 {
        if size != 8 {
            return EINVAL;
        }
        if new_at != 0 {
            let mut raw = [0u8; 8];
            if !read_program(new_at, &mut raw) {
                return EFAULT;
            }
            let set = u64::from_le_bytes(raw);
            let new = match how {
                0 => old | set,
                1 => old & !set,
                2 => set,
                _ => return EINVAL,
            };
            self.keep_mask(thread, new);
        }
        if old_at != 0 && !write_program(old_at, &old.to_le_bytes()) {
            return EFAULT;
        }
        0
    }

    /// The program's sigaltstack(new, old): ours stays in place, the program's is used when its handlers run.
    pub fn virtual_sigaltstack(&self, thread: &mut Thread, [new_at, old_at, _]: [u64; 3]) -> i64 {
        const ON: u64 = 1;
        const DISABLE: u64 = 2;
        const AUTODISARM: u64 = 1 << 31;
        const SMALLEST: u64 = 2048;
        let mut old = thread.app_stack;
        let on = on_stack(&old, thread.gpr[4]);
        // The flags field is an int; the padding behind it is the program's.
        old[1] = if old[2] == 0 { DISABLE } else { old[1] & AUTODISARM | u64::from(on) };
        if new_at != 0 {
            let mut raw = [0u8; 24];
            if !read_program(new_at, &mut raw) {
                return EFAULT;
            }
            let word = |i: usize| u64::from_le_bytes(raw[8 * i..8 * i + 8].try_into().unwrap_or_default());
            let (at, flags, size) = (word(0), word(1) & 0xffff_ffff, word(2));
            if on {
                return EPERM;
            }
            match flags & !AUTODISARM {
                DISABLE => thread.app_stack = [0, DISABLE, 0],
                0 | ON if size < SMALLEST => return ENOMEM,
                0 | ON => thread.app_stack = [at, flags & AUTODISARM, size],
                _ => return EINVAL,
            }
        }
        if old_at != 0 {
            let mut raw = [0u8; 24];
            for (i, w) in old.into_iter().enumerate() {
                raw[8 * i..8 * i + 8].copy_from_slice(&w.to_le_bytes());
            }
            if !write_program(old_at, &raw) {
                return EFAULT;
            }
        }
        0
    }

    /// Before rt_sigreturn: lets the frame come back to our landing instead of the program's pc.
    pub fn prepare_sigreturn(&self, thread: &mut Thread) {
        let rip = core::mem::offset_of!(Context, regs) + core::mem::offset_of!(signal::Registers, rip);
        let at = thread.gpr[4] + rip as u64;
        let mut pc = [0u8; 8];
        if read_program(at, &mut pc) {
            thread.resume_pc = u64::from_le_bytes(pc);
            let landing = entry::sonde_landing as *const () as u64;
            write_program(at, &landing.to_le_bytes());
        }
        // The kernel sets the alternate stack from the frame: the program's goes to us, ours stays.
        let at = thread.gpr[4] + core::mem::offset_of!(Context, stack) as u64;
        let mut stack = [0u8; 24];
        if read_program(at, &mut stack) {
            let word = |i: usize| u64::from_le_bytes(stack[8 * i..8 * i + 8].try_into().unwrap_or_default());
            let (at_stack, flags, size) = (word(0), word(1) & 0xffff_ffff, word(2));
            if !on_stack(&thread.app_stack, thread.gpr[4]) {
                thread.app_stack =
                    if flags & 2 != 0 { [0, 2, 0] } else { [at_stack, flags & (1 << 31), size] };
            }
            let ours = thread.signal_stack();
            for (i, w) in ours.into_iter().enumerate() {
                write_program(at + 8 * i as u64, &w.to_le_bytes());
            }
        }
        let at = thread.gpr[4] + core::mem::offset_of!(Context, mask) as u64;
        let mut mask = [0u8; 8];
        if read_program(at, &mut mask) {
            let mask = u64::from_le_bytes(mask);
            thread.blocked_faults = mask & ALWAYS_OURS;
            self.release_held(thread);
            write_program(at, &(mask & !ALWAYS_OURS).to_le_bytes());
        }
    }

    /// Raises a held signal again if the program no longer blocks it.
    fn release_held(&self, thread: &mut Thread) {
        let held = thread.held;
        let sig = held.info[0] as i32;
        if sig != 0 && thread.blocked_faults & signal::bit(sig) == 0 {
            thread.held.info[0] = 0;
            let _ = signal::requeue(self.pid.load(Relaxed), thread.tid.load(Relaxed), sig, &held.info);
        }
    }
}

/// Installs our handler in the place of the program's, or its default or ignore action.
pub fn set_real(sig: i32, wanted: &Action) -> Result<(), sonde_sys::Errno> {
    let handled = wanted.handler > signal::SIG_IGN || ALWAYS_OURS & signal::bit(sig) != 0;
    let action = if handled {
        let kept = wanted.flags & !(signal::SA_RESETHAND | signal::SA_NODEFER);
        Action {
            handler: on_signal as *const () as usize,
            flags: kept | signal::SA_SIGINFO | signal::SA_RESTORER | signal::SA_ONSTACK,
            restorer: entry::sonde_restorer as *const () as usize,
            mask: !0,
        }
    } else {
        *wanted
    };
    // SAFETY: our handler runs anywhere; the others are the program's own.
    unsafe { signal::sigaction(sig, Some(&action)) }.map(|_| ())
}

/// Whether a stack pointer lies on an alternate stack.
pub fn on_stack(stack: &[u64; 3], sp: u64) -> bool {
    stack[2] != 0 && stack[1] & (1 << 31) == 0 && sp > stack[0] && sp - stack[0] <= stack[2]
}
