//! The key types that `sonde rap` can count, with the seams to the reader and to the tree.

use std::fs::File;
use std::io::Read;

use sonde_numbers::{Counts, NumberKey, OnBad, ReadError, Sink, read_raw, read_raw_file};
use sonde_rap::Key;

/// A key that can be read, counted and shown.
pub trait CliKey: Key + NumberKey {
    /// Reads binary words of this type.
    fn read_words(
        name: &str,
        reader: impl Read,
        on_bad: OnBad,
        sink: &mut impl Sink<Self>,
    ) -> Result<Counts, ReadError>;

    /// Reads a file of binary words without a copy; `None` if it has to be read in the other way.
    fn read_word_file(
        name: &str,
        file: &File,
        on_bad: OnBad,
        sink: &mut impl Sink<Self>,
        passed: impl FnMut(u64),
    ) -> Result<Option<Counts>, ReadError>;
}

macro_rules! key_with_binary_form {
    ($($t:ty),*) => {$(
        impl CliKey for $t {
            fn read_words(
                name: &str,
                reader: impl Read,
                on_bad: OnBad,
                sink: &mut impl Sink<Self>,
            ) -> Result<Counts, ReadError> {
                read_raw(name, reader, on_bad, sink)
            }

            fn read_word_file(
                name: &str,
                file: &File,
                on_bad: OnBad,
                sink: &mut impl Sink<Self>,
                passed: impl FnMut(u64),
            ) -> Result<Option<Counts>, ReadError> {
                read_raw_file(name, file, on_bad, sink, passed)
            }
        }
    )*};
}
key_with_binary_form!(u32, u64, u128, [u32; 2], [u64; 2], [u32; 3], [u64; 3]);
