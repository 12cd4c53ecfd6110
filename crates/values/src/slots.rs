//! Load-value profiling by slots: Zilles and Sohi 2001, section 5 and appendix A.
//!
//! A few slots each watch one load and one of its values. Frequent loads push infrequent ones out (informational
//! replacement, A.3); what the slots have learned is copied into a table now and then ([`table`]), and loads that are
//! known well enough are masked, so that the next ones get a slot ([`control`]), and glanced at from time to time. What
//! was not counted is estimated at the end (A.6, [`estimate`]).

pub mod array;
mod config;
pub mod control;
pub mod estimate;
mod glance;
mod publish;
mod reader;
pub mod table;

pub use array::{Event, Slot, SlotArray};
pub use config::{SlotConfig, SlotStats};
pub use control::SlotProfiler;
pub use reader::SlotReader;
