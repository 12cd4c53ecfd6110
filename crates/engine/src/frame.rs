//! The signal frame with which a thread goes native: the kernel restores registers, mask, alternate stack and
//! floating-point state from it at once.

use crate::state::{Engine, engine};
use crate::thread::{STATE_BYTES, Thread};
use sonde_sys::process;
use sonde_sys::signal::{self, Context};
use sonde_wire::Counter;

/// UC_FP_XSTATE: the frame holds extended state.
pub const HAS_XSTATE: u64 = 1;
const MAGIC1: u32 = 0x4650_5853;
const MAGIC2: u32 = 0x4650_5845;

/// The shape of a signal frame, for threads that go native without ever having had one.
#[derive(Clone, Copy)]
pub struct Template {
    /// The context, registers meaningless.
    pub frame: Context,
    /// Features of the extended state.
    pub features: u64,
    /// The kernel's description of the extended state.
    pub words: [u64; 6],
    /// Bytes of the extended state.
    pub size: u32,
}

/// Bytes of the instruction that raises the signal whose frame is looked at.
const UD2_BYTES: u64 = 2;

/// Sees a frame of the kernel's making.
extern "C" fn on_lesson(_sig: i32, _info: *const signal::Info, uc: *mut Context) {
    // SAFETY: the kernel gives a valid context.
    let uc = unsafe { &mut *uc };
    uc.regs.rip += UD2_BYTES;
    let Some(engine) = engine() else { return };
    let Some(thread) = engine.thread_of(process::gettid()) else { return };
    if engine.keep_frame(thread, uc).is_ok() {
        // SAFETY: `keep_frame` filled the state area; its description lies at byte 464.
        let words = unsafe { *((thread.state_at + 464) as *const [u64; 6]) };
        let (features, size) = (thread.state_features, words[2] as u32);
        *engine.template.lock() = Some(Template { frame: thread.frame, features, words, size });
    }
}

impl Engine {
    /// Learns the shape of the kernel's signal frames from one. An illegal instruction raises it: to send a signal may be
    /// forbidden where the program runs. All signals are blocked.
    pub fn learn_frame(&self) {
        let lesson = signal::Action {
            handler: on_lesson as *const () as usize,
            flags: signal::SA_SIGINFO | signal::SA_ONSTACK | signal::SA_RESTORER,
            restorer: crate::entry::sonde_restorer as *const () as usize,
            mask: !0,
        };
        // SAFETY: the handler is one, and its signal is raised here only.
        let Ok(before) = (unsafe { signal::sigaction(signal::SIGILL, Some(&lesson)) }) else { return };
        let mask = signal::set_mask(!signal::bit(signal::SIGILL));
        // SAFETY: the handler goes on behind it, with all registers as they are.
        unsafe { core::arch::asm!("ud2") };
        signal::set_mask(mask);
        // SAFETY: the program's own action.
        let _ = unsafe { signal::sigaction(signal::SIGILL, Some(&before)) };
    }

    /// Keeps what is needed of the signal frame to go native with one of the same shape.
    pub fn keep_frame(&self, thread: &mut Thread, uc: &Context) -> Result<(), Counter> {
        thread.frame = *uc;
        let state = uc.fpstate as *const u8;
        if state.is_null() || uc.flags & HAS_XSTATE == 0 {
            return Err(Counter::SkippedState);
        }
        // SAFETY: the kernel's frame holds a 512-byte legacy area whose last 48 bytes describe the rest.
        let (magic, features, size) = unsafe {
            let sw = state.add(464);
            (*(sw as *const u32), *(sw.add(8) as *const u64), *(sw.add(16) as *const u32))
        };
        if magic != MAGIC1 || size as usize + 4 > STATE_BYTES || size < 576 {
            return Err(Counter::SkippedState);
        }
        // SAFETY: the state area has STATE_BYTES bytes, enough as just checked; bytes 464..512 and the header are
        // copied so that xsave, which does not write them, leaves a valid area.
        unsafe {
            let to = thread.state_at as *mut u8;
            core::ptr::copy_nonoverlapping(state, to, 576);
            core::ptr::write_bytes(to.add(512), 0, 64);
            (to.add(size as usize) as *mut u32).write_unaligned(MAGIC2);
        }
        thread.state_features = features;
        thread.frame.fpstate = thread.state_at;
        Ok(())
    }

    /// Resident threads change their mask and alternate stack while they are in the copy; the frame must not undo that.
    /// From here on no signal comes: it would find a thread that is neither in the copy nor native.
    pub fn refresh_frame(&self, thread: &mut Thread) {
        self.block_all(thread);
        thread.frame.mask = self.kept_mask(thread);
        thread.frame.stack = thread.app_stack;
    }

    /// Puts the program's registers into the frame.
    pub fn fill_frame(&self, thread: &mut Thread, pc: u64) {
        let g = &thread.gpr;
        let r = &mut thread.frame.regs;
        r.rax = g[0];
        r.rcx = g[1];
        r.rdx = g[2];
        r.rbx = g[3];
        r.rsp = g[4];
        r.rbp = g[5];
        r.rsi = g[6];
        r.rdi = g[7];
        r.r8_15[..6].copy_from_slice(&g[8..14]);
        r.r8_15[6] = thread.app_r14;
        r.r8_15[7] = thread.app_r15;
        r.rflags = thread.flags;
        r.rip = pc;
    }

    /// A thread without a signal frame of its own gets the shape of one.
    pub fn use_template(&self, thread: &mut Thread, template: &Template) {
        thread.frame = template.frame;
        thread.frame.fpstate = thread.state_at;
        thread.state_features = template.features;
        // SAFETY: the state area has room for the legacy part, the header, and the mark behind the whole.
        unsafe {
            let to = thread.state_at as *mut u8;
            core::ptr::write_bytes(to, 0, 576);
            core::ptr::copy_nonoverlapping(template.words.as_ptr().cast::<u8>(), to.add(464), 48);
            (to.add(template.size as usize) as *mut u32).write_unaligned(MAGIC2);
        }
    }
}
