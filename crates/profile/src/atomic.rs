//! A file is there whole or not at all: a profile that was good is never replaced by half of a new one.

use crate::error::ProfileError;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// How many names are tried for the file beside the final one.
const TRIES: u32 = 1000;

/// Writes beside the file, then moves over it. What is no plain file (a pipe, `/dev/stdout`) is written to as it is.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), ProfileError> {
    // A link stays a link: what it leads to is replaced.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.into());
    let cannot = |cause| ProfileError::System { action: "write", path: path.into(), cause };
    let there = fs::metadata(path).ok();
    if there.as_ref().is_some_and(|there| !there.is_file()) {
        let file = OpenOptions::new().write(true).open(path);
        return file.and_then(|mut file| file.write_all(bytes)).map_err(cannot);
    }
    let (beside, file) = beside(path).map_err(cannot)?;
    let filled = fill(file, bytes, there.map(|there| there.permissions()));
    let moved = filled.and_then(|()| fs::rename(&beside, path));
    if moved.is_err() {
        let _ = fs::remove_file(&beside);
    }
    moved.map_err(cannot)
}

/// Finds out whether a profile can be written to a file, without touching what is there: to be asked before the work.
pub fn try_to_write(path: &Path) -> Result<(), ProfileError> {
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.into());
    let cannot = |cause| ProfileError::System { action: "write", path: path.into(), cause };
    match fs::metadata(path) {
        Ok(there) if there.is_dir() => Err(cannot(io::ErrorKind::IsADirectory.into())),
        Ok(there) if !there.is_file() => Ok(()),
        // A mistyped name must not cost a program or its source.
        Ok(there) if there.len() > 0 && !is_profile(path) => {
            let why = "it is there and is no profile: remove it first, or give another name";
            Err(cannot(io::Error::new(io::ErrorKind::AlreadyExists, why)))
        }
        _ => beside(path).and_then(|(beside, _)| fs::remove_file(beside)).map_err(cannot),
    }
}

/// A new file in the same folder, so that it can be moved in one step.
fn beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    for attempt in 0..TRIES {
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}-{attempt}.tmp", std::process::id()));
        let beside = path.with_file_name(hidden);
        match OpenOptions::new().write(true).create_new(true).open(&beside) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return opened.map(|file| (beside, file)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn fill(mut file: File, bytes: &[u8], permissions: Option<fs::Permissions>) -> io::Result<()> {
    if let Some(permissions) = permissions {
        file.set_permissions(permissions)?;
    }
    file.write_all(bytes)?;
    // Before the name points to it: after a crash an empty file must not stand where a good one was.
    file.sync_all()
}

/// Whether a file begins as a profile does.
fn is_profile(path: &Path) -> bool {
    let mut head = [0; 16];
    let read = fs::File::open(path).and_then(|mut file| io::Read::read_exact(&mut file, &mut head));
    read.is_ok() && crate::file::begins_as_profile(&head)
}
