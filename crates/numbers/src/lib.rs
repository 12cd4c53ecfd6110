//! Reads a stream of numbers, text or binary, and hands it on in batches.
//!
//! [`read_text`] takes lines of decimal numbers, `0x` hexadecimal numbers, IPv4 or IPv6 addresses, one per line or in
//! chosen columns, with an optional weight column; [`read_raw`] takes little-endian `u32` or `u64` words. Both read
//! any [`std::io::Read`] in large blocks and call a [`Sink`] with slices of keys, so that the consumer can work on
//! whole batches.
//!
//! [`read_raw_file`] does the same for a regular file without a copy, by mapping it: that is the one `unsafe` here.
//! Text is always read in blocks: beside the parsing the copy does not show, and it works on pipes.
//!
//! Nothing is dropped silently: empty lines and lines that could not be read are counted in [`Counts`], and the first
//! bad line is kept with its line number and text.
//!
//! **The caller's duties**: open the input, choose the key type `K`, decide by [`OnBad`] whether a bad line stops.
//! **Not done here**: quoted CSV fields, floating point, negative numbers, compressed input.
//!
//! ```
//! use sonde_numbers::{Collect, OnBad, TextFormat, read_text};
//!
//! let text = "7\n0x1f\r\n\n12\n";
//! let mut seen = Collect::<u64>::default();
//! let counts = read_text("example", text.as_bytes(), &TextFormat::default(), OnBad::Stop, &mut seen).unwrap();
//! assert_eq!(seen.keys, [7, 31, 12]);
//! assert_eq!((counts.numbers, counts.empty_lines), (3, 1));
//! ```
#![deny(unsafe_code)]

mod batch;
mod blocks;
mod columns;
mod detect;
mod error;
mod field;
mod format;
mod key;
mod mapped;
mod quad;
mod raw;
pub mod reference;
mod rows;
mod swar;
mod text;

pub use batch::{Collect, Sink};
pub use detect::{Detected, detect};
pub use error::{BadLine, ReadError, Reason};
pub use format::{Counts, Notation, OnBad, Separator, TextFormat};
pub use key::{NumberKey, Scalar};
pub use mapped::read_raw_file;
pub use raw::{RawWord, read_raw};
pub use text::read_text;
