//! Policies that keep threads in the copy: system calls and signals are taken over, so that nothing gets away.

use sonde_sys::signal::Action;

/// The program's signal actions, as it believes they are.
pub struct Actions {
    /// By signal number minus one.
    pub table: [Action; 64],
}

impl Default for Actions {
    fn default() -> Self {
        Actions { table: [Action { handler: 0, flags: 0, restorer: 0, mask: 0 }; 64] }
    }
}

/// Takes the calling process over from `pc` on, if the policy asks for it: returns where its thread has to go on and
/// its log pointer. None if the policy lets it run natively.
pub fn adopt(engine: &'static crate::state::Engine, pc: u64) -> Option<(u64, u64)> {
    let _ = (engine, pc);
    None
}
