//! Profiles for people: what is hot, by name, each figure with its error; as text and as JSON.
//!
//! Everything that is shown is first worked out as plain data ([`Report`]), so that the terminal and JSON cannot
//! disagree, and each view is tested without a terminal. The JSON Schema of the data is made from the same types
//! ([`schema`]).
//!
//! Duties of the caller: a [`Subject`] with what was kept of one or several runs, and [`sonde_symbol::Symbols`] to name
//! it with. Non-goals: reading files (`sonde-profile`), HTML.
#![forbid(unsafe_code)]

mod error_bars;
mod name;
mod section;
mod subject;
mod text;
pub mod view;

pub use name::Namer;
pub use section::Section;
pub use subject::{About, Subject};
pub use text::{Style, write};
pub use view::{Options, Report, report, schema};
