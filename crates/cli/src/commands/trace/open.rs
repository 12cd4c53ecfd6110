//! Opens traces and says what is wrong with them.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result};
use sonde_event::Reader;
use sonde_event::trace::{Replayed, TraceReader, replay};

use crate::mistaken::no_trace;
use crate::outcome::{Damaged, EndsEarly};

/// Opens a trace.
pub fn open(path: &Path) -> Result<TraceReader<File>> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    TraceReader::new(file).map_err(|error| no_trace(path, error))
}

/// Plays a trace to a reader.
pub fn play<R: Reader + ?Sized>(path: &Path, reader: &mut R) -> Result<Replayed> {
    replay(&mut open(path)?, reader).with_context(|| path.display().to_string())
}

/// What is wrong with a trace, a sentence each; that it ends early is told by [`ends_early`].
pub fn troubles(played: &Replayed) -> Vec<String> {
    let mut troubles: Vec<String> = played.damaged.iter().map(|(at, what)| damage(*at, what)).collect();
    let more = played.damages.saturating_sub(played.damaged.len() as u64);
    if more > 0 {
        troubles.push(format!("{more} more damaged places"));
    }
    if let Some(error) = &played.first_error {
        troubles.push(format!("{} errors in what was recorded, the first: {error}", played.errors));
    }
    if played.lost.words > 0 {
        troubles.push(format!(
            "{} words in {} buffers could not be read",
            played.lost.words, played.lost.buffers
        ));
    }
    if played.left_out > 0 {
        troubles.push(format!("{} chunks of too many processes were left out", played.left_out));
    }
    troubles
}

/// One of them: a place in the file.
pub fn damage(at: u64, what: &str) -> String {
    format!("damaged: the chunk at byte {at}: {what}")
}

/// Fails if something in the file could not be read.
pub fn damaged(file: &Path, places: u64, errors: u64) -> Result<(), Damaged> {
    if places == 0 && errors == 0 {
        return Ok(());
    }
    Err(Damaged { file: file.to_owned(), places, errors })
}

/// Fails if the file ends before the recording does.
pub fn ends_early(file: &Path, chunks: u64, cut_at: Option<u64>, has_end: bool) -> Result<(), EndsEarly> {
    if cut_at.is_none() && has_end {
        return Ok(());
    }
    Err(EndsEarly { file: file.to_owned(), chunks, cut_at })
}
