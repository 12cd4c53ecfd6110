//! Checks in the program's own code: changes it while it stands still at its entry, begins a burst when a thread has used its
//! checks up, and keeps what was changed out of the program's sight.
//!
//! A stub that has no checks left reads the *bell*, a page that is never there: the kernel tells Sonde (userfaultfd) and lets
//! the thread wait. No signal is raised and no system call made, so that neither the program's signals nor what it may call
//! (seccomp) matter; and if Sonde is gone, the kernel gives the page, and the thread goes on without checks.

mod apply;
mod bell;
mod changes;
mod entry;
mod room;

pub use apply::InPlaceFacts;
pub use bell::Bell;
pub use changes::Changes;
pub use entry::{Entry, expect};

use sonde_checks::Layout;
use sonde_wire::slot;

/// Where stubs find what they use.
const LAYOUT: Layout = Layout {
    checks: slot::CHECKS as i32,
    app_r14: slot::APP_R14 as i32,
    save: slot::SAVE as i32,
    target: slot::TARGET as i32,
};
