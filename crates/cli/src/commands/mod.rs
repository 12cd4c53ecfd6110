//! The subcommands, one file each (with a folder of the same name where one file would hold several ideas).

pub mod diff;
pub mod doctor;
pub mod lab;
pub mod merge;
pub mod rap;
pub mod report;
pub mod run;
pub mod trace;
