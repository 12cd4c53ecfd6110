//! What the probe inside a program and Sonde outside share: the layout of the shared memory.
//!
//! One file in memory holds the control page (configuration, counters, buffer states), a ring of superblock
//! descriptions, the tables of branches without a check, of loads that need not be recorded and of changes in the program's
//! code, and the log buffers. The
//! program may die, or be killed, at any instruction, so whoever reads believes nothing: every length is checked against the
//! bounds here.
#![no_std]
#![forbid(unsafe_code)]

pub mod asks;
pub mod checks;
pub mod control;
pub mod descriptor;
pub mod in_place;
pub mod marker;
pub mod slot;
pub mod unwatched;

pub use control::{Buffer, Config, Control, Counter, Region, Regions, Shared, Tables};
