//! Profiles given where a trace is wanted, and traces where a profile is: both are files of Sonde, and which command reads
//! which has to be told once.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Error, Result, anyhow};
use sonde_event::trace::{TraceError, begins_as_trace};
use sonde_profile::{Profile, ProfileError, begins_as_profile};

/// As many first bytes as tell either.
const HEAD: u64 = 16;

/// Reads a profile.
pub fn profile(path: &Path) -> Result<Profile> {
    Profile::read(path).map_err(|error| match &error {
        ProfileError::File { cause, .. } if matches!(**cause, ProfileError::NotAProfile) => {
            instead_of_profile(path).unwrap_or_else(|| error.into())
        }
        _ => error.into(),
    })
}

fn instead_of_profile(path: &Path) -> Option<Error> {
    let file = path.display();
    begins_as_trace(&head(path)).then(|| {
        anyhow!(
            "{file}: this is a trace, not a profile: `sonde trace info {file}` shows what it holds, `sonde trace replay \
             --dump {file}` prints it; profiles are what `sonde run -o` writes"
        )
    })
}

/// What is wrong with a file that could not be opened as a trace.
pub fn no_trace(path: &Path, error: TraceError) -> Error {
    let file = path.display();
    if matches!(error, TraceError::NotATrace) && begins_as_profile(&head(path)) {
        return anyhow!(
            "{file}: this is a profile, not a trace: `sonde report {file}` shows it; traces are what `sonde trace record -o` \
             writes"
        );
    }
    Error::new(error).context(file.to_string())
}

/// The first bytes, as far as there are any.
fn head(path: &Path) -> Vec<u8> {
    let mut head = Vec::new();
    if let Ok(file) = File::open(path) {
        // What cannot be read begins like nothing that is known.
        let _ = file.take(HEAD).read_to_end(&mut head);
    }
    head
}
