//! Binary input: little-endian words read straight into the array that the sink gets, without a copy between.

use std::io::{self, Read};

use crate::batch::Sink;
use crate::error::{BadLine, ReadError, Reason};
use crate::format::{Counts, OnBad};

/// Bytes read at once. Smaller blocks were slower, down to 0.75 of this at 64 KiB.
const BLOCK: usize = 1 << 20;

/// A key that binary input can hold.
pub trait RawWord: bytemuck::Pod {
    /// The word as the machine has it, from its little-endian form.
    fn into_native(self) -> Self;
}

impl RawWord for u32 {
    fn into_native(self) -> Self {
        u32::from_le(self)
    }
}

impl RawWord for u64 {
    fn into_native(self) -> Self {
        u64::from_le(self)
    }
}

impl RawWord for u128 {
    fn into_native(self) -> Self {
        u128::from_le(self)
    }
}

impl<W: RawWord, const N: usize> RawWord for [W; N]
where
    [W; N]: bytemuck::Pod,
{
    fn into_native(self) -> Self {
        self.map(W::into_native)
    }
}

/// Reads all of `reader` as words and hands them to `sink`.
///
/// Bytes after the last whole word are an error, or with [`OnBad::Skip`] one bad line.
pub fn read_raw<W: RawWord>(
    name: &str,
    mut reader: impl Read,
    on_bad: OnBad,
    sink: &mut impl Sink<W>,
) -> Result<Counts, ReadError> {
    let width = size_of::<W>();
    let mut words = vec![W::zeroed(); BLOCK / width];
    let mut counts = Counts::default();
    let mut torn = 0;
    loop {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        let count = match reader.read(&mut bytes[torn..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(cause) => return Err(ReadError::Io { name: name.into(), cause }),
            Ok(count) => count,
        };
        counts.bytes += count as u64;
        if count == 0 {
            break;
        }
        let whole = (torn + count) / width;
        torn = (torn + count) % width;
        let rest = (whole * width, whole * width + torn);
        hand_on(&mut words[..whole], sink);
        counts.numbers += whole as u64;
        bytemuck::cast_slice_mut::<W, u8>(&mut words).copy_within(rest.0..rest.1, 0);
    }
    if torn > 0 {
        end_of_torn(name, width, torn, on_bad, &mut counts)?;
    }
    Ok(counts)
}

fn hand_on<W: RawWord>(words: &mut [W], sink: &mut impl Sink<W>) {
    if cfg!(target_endian = "big") {
        words.iter_mut().for_each(|word| *word = word.into_native());
    }
    sink.keys(words);
}

pub(crate) fn end_of_torn(
    name: &str,
    width: usize,
    extra: usize,
    on_bad: OnBad,
    counts: &mut Counts,
) -> Result<(), ReadError> {
    if on_bad == OnBad::Stop {
        return Err(ReadError::Torn { name: name.into(), bytes: counts.bytes, width, extra });
    }
    let (line, reason) = (counts.numbers + 1, Reason::TornWord { width, extra });
    counts.first_bad = Some(BadLine::new(name, line, b"", reason));
    counts.bad_lines += 1;
    Ok(())
}
