//! Range-adaptive profiles (RAP): a summary of any stream of numbers in bounded memory, with a proven error.

pub mod code;
pub mod codec;
pub mod config;
pub mod exact;
mod front;
pub mod key;
pub mod profiles;
pub mod query;
pub mod range;
pub mod snapshot;
pub mod textbook;
pub mod tree;
pub mod worst_case;

pub use codec::DecodeError;
pub use config::{Branching, Buffer, Config, ConfigError};
pub use key::Key;
pub use query::{Bounds, Covering, HotRange, WidthPoint};
pub use range::Range;
pub use snapshot::{Node, Snapshot};
pub use tree::{MergeError, Stats, Tree};
