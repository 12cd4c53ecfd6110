//! Fewer checks for counter mode: which function entries and loop back-edges need one.
//!
//! Hirzel and Chilimbi, *Bursty Tracing* (2001), section 4. Counter mode counts a check at every function entry and every
//! back-edge; what a check costs is its basic overhead. A check is needed only so that no cycle of the program runs
//! without one:
//!
//! * **entries** (4.1): a function keeps its check if it calls something and is a root, has its address taken, or has
//!   *recursion from below*: it is called from its own strongly connected component by a function at least as far from
//!   the roots. Every cycle of calls then meets a check ([`Graph::unchecked_cycle`] proves it for a graph);
//! * **back-edges** (4.2): a loop is *k-boring* if it calls nothing and makes at most k references; its back-edge keeps
//!   none. Such a loop may run long without a check, as in the paper, but it never recurses.
//!
//! The analysis is of one module at a time. A function that another module can call (it is exported) counts as having
//! its address taken, so that cycles through several modules meet a check as well.
//!
//! A check lies at the branch that leads to an entry, not at the entry: indirect calls keep theirs whatever they call, and
//! forward jumps into other functions never have one ([`Graph::go_on_into`]).
//!
//! ```
//! use sonde_checks::{Function, Graph};
//!
//! // main calls visit, which calls itself and a leaf.
//! let function = |calls: &[usize]| Function { calls: calls.to_vec(), ..Function::default() };
//! let graph = Graph { functions: vec![function(&[1]), function(&[1, 2]), function(&[])] };
//! assert_eq!(graph.checked(), [true, true, false]);
//! ```
//!
//! Non-goals: code that is generated at run time, which counter mode does not copy anyway.
#![forbid(unsafe_code)]

mod components;
mod graph;
mod in_place;
mod loops;
mod module;
mod needed;
mod plan;
mod sweep;

pub use graph::{Function, Graph};
pub use in_place::{BELL, Edit, InPlace, Layout, Miss, RINGS_AT, What};
pub use loops::Loop;
pub use module::{Module, ModuleError};
pub use needed::{Needed, needed};
pub use plan::{Entries, Plan, Scheme};
