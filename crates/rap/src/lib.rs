//! Range-adaptive profiles (RAP): a summary of any stream of numbers in bounded memory, with a proven error.
//!
//! After Mysore, Agrawal, Neuber, Sherwood, Shrivastava and Suri, *Formulating and Implementing Profiling over Adaptive
//! Ranges* (2008). Ranges of keys that receive many events are split into finer ones, ranges that turn out cold are merged
//! again: what matters is counted precisely, the rest as wide ranges, and nothing is sampled or dropped.
//!
//! ```
//! use sonde_rap::{Config, Tree};
//!
//! let mut tree = Tree::<u64>::new(Config::new().eps(0.01))?;
//! for i in 0..100_000u64 {
//!     tree.add(0x40_1000 + i % 16 * 4); // a hot loop,
//!     tree.add(i.wrapping_mul(0x9E37_79B9_7F4A_7C15)); // and noise all over
//! }
//! let summary = tree.snapshot();
//! let hot = summary.hot(0.1);
//! assert!(hot.iter().any(|hot| hot.range.lo >= 0x40_1000 && hot.range.hi <= 0x40_103f));
//! let bounds = summary.bounds(0x40_1000, 0x40_103f);
//! assert!(bounds.lower <= 100_000 && 100_000 <= bounds.upper);
//! assert!(summary.nodes.len() < 32_000); // of 100,016 different keys
//! # Ok::<(), sonde_rap::ConfigError>(())
//! ```
//!
//! # Guarantee
//!
//! With `n` the weight of all events, at *every* moment, for weights, and after [`Tree::merge`] too:
//!
//! * **Error.** For every range of the tree, the counts inside it are a lower bound of its events and miss at most
//!   `eps * n` (section 2.2). [`Snapshot::bounds`] gives lower and upper bound for any range or box.
//! * **Memory.** Never more than [`worst_case::guaranteed_nodes`] ranges hold a count, whatever the stream: `O(log_b(R) /
//!   eps)`, independent of `n`. With [`Config::max_memory`] it is a limit in bytes, and what that costs in precision is
//!   reported as [`Snapshot::eps_effective`].
//! * **Hot ranges.** A range that is reported hot is; a range of which `threshold + eps` lies outside the reported ranges
//!   inside it is reported.
//!
//! The tests hold both trees, [`Tree`] and the plain [`textbook::TextbookTree`], to it on random, skewed, scattered,
//! adversarial and program-like streams against [`exact`] counts.
//!
//! # The paper, section by section
//!
//! | section | here |
//! |---|---|
//! | 2, 2.1, 2.2 update, split, merge | [`Tree`]; in plain form [`textbook`] |
//! | 3.1 branching factor, batched merges, figures 2 and 3 | [`Config`], [`worst_case`] |
//! | 3.2 several profiles at once, ASCII dump | [`profiles`], [`Snapshot::dump`] (the C calls are in `sonde-rap-c`) |
//! | 3.2.1 merging-event buffer | [`Buffer`] |
//! | 5.1 hot ranges, coverage | [`Snapshot::hot`], [`Snapshot::covering`] |
//! | 5.2 nodes over time, figure 9 | [`Stats`] |
//! | 5.3 accuracy | the test `accuracy` |
//! | 5.4 figure 11 | [`Snapshot::width_coverage`] |
//! | 5.5 several dimensions | [`Key`] for arrays |
//!
//! # The caller's duties
//!
//! Feed events through [`Tree::add_slice`] where speed matters. Ask questions of a [`Snapshot`], not of the tree. Merge only
//! trees of the same kind of events. A tree is not shared between threads: build one for each and merge them.
//!
//! # Not here
//!
//! Deletion of events, sliding windows, and quantiles; reading input (`sonde-numbers`), and symbols for addresses.

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
