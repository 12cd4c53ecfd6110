//! Outside the program: starts it with the probe inside, drives the trigger, reads what the probe logs, and watches
//! for the end.
//!
//! [`Session::start`] makes the shared memory, starts the program stopped at its first instruction, places the probe
//! and lets it go; [`Session::serve`] feeds the stream to a reader until the program is gone.
//!
//! Duties of the caller: call from a process that may have children, from one thread at a time. Non-goals: what is
//! done with the stream.

mod answers;
mod begin;
mod children;
mod error;
pub mod examine;
mod fewer_checks;
mod follow;
mod gaps;
mod govern;
mod governing;
mod habits;
mod image;
mod in_place;
mod job_control;
mod native;
mod options;
mod perf;
mod place;
mod place_running;
mod program;
mod ptrace;
mod reading;
mod serve;
mod session;
mod shared;
mod signals;
mod spawn;
mod stacks;
mod stops;
mod study;
mod thread_files;
mod threads;
mod timer_grain;
mod watch;

pub use children::Children;
pub use error::LaunchError;
pub use fewer_checks::FewerChecks;
pub use follow::{Followed, Part, Parts};
pub use govern::{Governed, TRIGGER_SECONDS};
pub use in_place::InPlaceFacts;
pub use options::{DEFAULT_MAX_OVERHEAD, DEFAULT_PERIOD, Loader, Options, Policy, Trigger};
pub use program::Program;
pub use serve::{Exit, Outlets, Served, Tap, Totals};
pub use session::{Session, Setup, warning};
pub use signals::die_by;
pub use sonde_checks::Scheme;
pub use sonde_wire::Counter;
pub use threads::Kind as TriggerKind;
pub use watch::own_cpu_time;
