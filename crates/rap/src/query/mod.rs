//! What can be asked of a finished summary: all questions go to a [`crate::Snapshot`], never to a living tree.
//!
//! Every answer rests on one rule (paper section 2.2): what is counted inside a range is certainly in it, and what may be
//! missing is held by larger ranges that reach beyond it. So the counts inside are the lower bound, and the counts of
//! everything that overlaps are the upper bound.

mod bounds;
mod check;
mod cover;
mod dump;
mod hot;
mod outline;

pub use bounds::Bounds;
pub use cover::{Covering, WidthPoint};
pub use hot::HotRange;
