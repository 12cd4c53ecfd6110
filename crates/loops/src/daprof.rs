//! DAProf (paper 5): a profiler in hardware that sees short backward branches only, modelled to the bit.

mod cache;
mod config;
mod fifo;
mod profile;
mod reader;

pub use cache::{Entry, ProfileCache};
pub use config::{Average, Calls, DaprofConfig, Granularity, Rounding};
pub(crate) use config::{MAX_CURRENT, MAX_EXECUTIONS};
pub use fifo::Fifo;
pub use profile::{DaprofLoop, DaprofProfile};
pub use reader::DaprofReader;
