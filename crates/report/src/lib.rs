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
mod figures;
mod name;
mod section;
mod subject;
mod text;
pub mod view;

pub use error_bars::half_width;
pub use figures::{count, grouped, short, size};
pub use name::{CodeName, DataName, Namer, Used};
pub use section::Section;
pub use subject::{About, Subject};
pub use text::{Style, write, write_entry, write_hot};
pub use view::{Options, Report, hot, report, schema};
