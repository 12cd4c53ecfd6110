//! Range-adaptive profiles (RAP): a summary of any stream of numbers in bounded memory, with a proven error.

pub mod code;
pub mod config;
pub mod key;
pub mod range;
pub mod snapshot;
pub mod tree;

pub use config::{Branching, Buffer, Config, ConfigError};
pub use key::Key;
pub use range::Range;
pub use snapshot::{Node, Snapshot};
pub use tree::{MergeError, Stats, Tree};
