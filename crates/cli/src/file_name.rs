//! Names of files that are written: `-` stands for standard output elsewhere, but profiles and traces are binary, and standard
//! output is the program's.

use std::path::PathBuf;

use clap::builder::{PathBufValueParser, TypedValueParser};

/// Takes a name of a file, but not `-`.
pub fn to_write() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path.as_os_str() == "-" {
        true => Err("it goes to a file, not to standard output; ./- is a file of that name"),
        false => Ok(path),
    })
}
