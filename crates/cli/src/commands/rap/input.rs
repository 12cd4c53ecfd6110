//! The inputs named on the command line, opened one after the other and read into a tree.

use std::fs::{self, File};
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sonde_numbers::{Counts, OnBad, Sink, read_text};

use super::keys::CliKey;
use super::layout::Layout;
use super::progress::Progress;

/// How much of the input is looked at to find out what it holds.
const SAMPLE: u64 = 64 << 10;

/// The inputs; the beginning of the first is already read.
pub struct Inputs {
    paths: Vec<PathBuf>,
    first: Option<Box<dyn Read>>,
    /// The beginning of the first input.
    pub sample: Vec<u8>,
    /// All bytes, if every input is a file of known size.
    pub total_bytes: Option<u64>,
}

impl Inputs {
    /// Checks that all inputs are there, so that a missing one is told before the others are read, and reads a sample.
    pub fn open(files: &[PathBuf]) -> Result<Self> {
        let paths = if files.is_empty() { vec![PathBuf::from("-")] } else { files.to_vec() };
        let mut total_bytes = Some(0);
        for path in &paths {
            total_bytes = total_bytes.zip(size_of(path)?).map(|(total, size)| total + size);
        }
        let mut first = open(&paths[0])?;
        let mut sample = Vec::new();
        let read = first.by_ref().take(SAMPLE).read_to_end(&mut sample);
        read.with_context(|| format!("{}: cannot read", name_of(&paths[0])))?;
        Ok(Inputs { paths, first: Some(first), sample, total_bytes })
    }

    /// Reads all inputs as one stream.
    pub fn read<K: CliKey>(
        mut self,
        layout: &Layout,
        on_bad: OnBad,
        progress: &Progress,
        sink: &mut impl Sink<K>,
    ) -> Result<Counts> {
        let mut counts = Counts::default();
        for path in &self.paths {
            let begun = self.first.take();
            let name = name_of(path);
            if layout.binary && !is_stdin(path) {
                let file = open_file(path)?;
                let read = K::read_word_file(&name, &file, on_bad, sink, |bytes| progress.passed(bytes))?;
                if let Some(read) = read {
                    counts.absorb(read);
                    continue;
                }
            }
            let reader: Box<dyn Read> = match begun {
                Some(first) => Box::new(Cursor::new(std::mem::take(&mut self.sample)).chain(first)),
                None => open(path)?,
            };
            let reader = progress.watch(reader);
            counts.absorb(match layout.binary {
                true => K::read_words(&name, reader, on_bad, sink)?,
                false => read_text(&name, reader, &layout.text, on_bad, sink)?,
            });
        }
        Ok(counts)
    }
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// What messages call an input.
fn name_of(path: &Path) -> String {
    if is_stdin(path) { "<stdin>".into() } else { path.display().to_string() }
}

fn open(path: &Path) -> Result<Box<dyn Read>> {
    if is_stdin(path) {
        return Ok(Box::new(io::stdin()));
    }
    Ok(Box::new(open_file(path)?))
}

fn open_file(path: &Path) -> Result<File> {
    File::open(path).with_context(|| format!("{}: cannot open", path.display()))
}

/// Size of a regular file; `None` for what has no size beforehand, such as a pipe.
fn size_of(path: &Path) -> Result<Option<u64>> {
    if is_stdin(path) {
        return Ok(None);
    }
    let metadata = fs::metadata(path).with_context(|| format!("{}: cannot open", path.display()))?;
    if metadata.is_dir() {
        anyhow::bail!("{}: is a directory, not a file", path.display());
    }
    Ok(metadata.is_file().then_some(metadata.len()))
}
