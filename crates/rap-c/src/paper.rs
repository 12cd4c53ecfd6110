//! The three calls of the paper's section 3.2, over one set of profiles for the whole program.
//!
//! `rap_finalize` does not end anything, in spite of its name: the paper has it called "periodically or on an event-driven
//! basis". `rap_release` ends. Profiles are ordinary trees: `rap_profile` gives the handle for all other queries.

use crate::any_tree::AnyTree;
use crate::pointers::{optional_path, write};
use crate::status::{Failure, Status, guard};
use crate::types::{RapHandle, RapKey, SONDE_RAP_KEY_U64};
use crate::{any_tree, table};
use sonde_rap::Config;
use sonde_rap::profiles::MAX_PROFILES;
use std::ffi::{c_char, c_uint};
use std::fs::File;
use std::io::{BufWriter, Write, stdout};
use std::path::Path;
use std::sync::{PoisonError, RwLock};

/// The handles of the profiles, by profile type; empty before `rap_init`.
static PROFILES: RwLock<Vec<u64>> = RwLock::new(Vec::new());

/// Starts `number_of_profiles` empty profiles of 64-bit identifiers with the default parameters, numbered from 0. If there are
/// profiles already, these are freed and replaced.
#[unsafe(no_mangle)]
pub extern "C" fn rap_init(number_of_profiles: c_uint) -> Status {
    guard(|| {
        let number = number_of_profiles as usize;
        if !(1..=MAX_PROFILES).contains(&number) {
            let message = format!("1 to {MAX_PROFILES} profiles can be kept at once, not {number}");
            return Err(Failure::new(Status::BadArgument, message));
        }
        let trees: Result<Vec<AnyTree>, Failure> =
            (0..number).map(|_| any_tree::AnyTree::new(SONDE_RAP_KEY_U64, Config::new())).collect();
        let fresh = trees?.into_iter().map(table::insert).collect();
        free_all(replace(fresh));
        Ok(())
    })
}

/// Counts `count` events with the identifier `profile_event_identifier` in the profile `profile_type`.
#[unsafe(no_mangle)]
pub extern "C" fn rap_add_points(profile_event_identifier: u64, count: u64, profile_type: c_uint) -> Status {
    guard(|| {
        let handle = profile(profile_type)?;
        table::with(handle, |tree| tree.add(&RapKey { part: [profile_event_identifier, 0, 0] }, count))
    })
}

/// Counts buffered events in and writes all profiles as text to the file `path`: "-" is the standard output, NULL writes
/// nothing. Each profile begins with a line `# profile N`. Counting can go on afterwards.
///
/// # Safety
/// `path` must be NULL or point to a string that ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rap_finalize(path: *const c_char) -> Status {
    guard(|| {
        // SAFETY: the caller's promise is passed on.
        let path = unsafe { optional_path(path) };
        let handles = handles()?;
        let mut text = Vec::new();
        for (number, &handle) in handles.iter().enumerate() {
            let dump = table::with(handle, |tree| {
                tree.finish();
                if path.is_some() { tree.dump() } else { Ok(Vec::new()) }
            })?;
            text.extend_from_slice(format!("# profile {number}\n").as_bytes());
            text.extend_from_slice(&dump);
        }
        path.map_or(Ok(()), |path| write_text(&path, &text))
    })
}

/// Frees all profiles; `rap_init` can start new ones.
#[unsafe(no_mangle)]
pub extern "C" fn rap_release() -> Status {
    guard(|| {
        handles()?;
        free_all(replace(Vec::new()));
        Ok(())
    })
}

/// Stores the handle of a profile, for the `sonde_rap_*` queries. It is valid until `rap_release` or the next `rap_init`.
///
/// # Safety
/// `handle` must be NULL or point to room for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rap_profile(profile_type: c_uint, handle: *mut RapHandle) -> Status {
    guard(|| {
        let found = profile(profile_type)?;
        // SAFETY: the caller's promise is passed on.
        unsafe { write(handle, found, "handle") }
    })
}

fn replace(fresh: Vec<u64>) -> Vec<u64> {
    std::mem::replace(&mut *PROFILES.write().unwrap_or_else(PoisonError::into_inner), fresh)
}

fn free_all(handles: Vec<u64>) {
    // A profile's handle may have been freed by `sonde_rap_free` already; then there is nothing left to free.
    handles.into_iter().for_each(|handle| drop(table::remove(handle)));
}

fn not_initialized() -> Failure {
    Failure::new(Status::NotInitialized, "there are no profiles: call rap_init first")
}

fn handles() -> Result<Vec<u64>, Failure> {
    let handles = PROFILES.read().unwrap_or_else(PoisonError::into_inner).clone();
    if handles.is_empty() { Err(not_initialized()) } else { Ok(handles) }
}

fn profile(number: c_uint) -> Result<u64, Failure> {
    let handles = PROFILES.read().unwrap_or_else(PoisonError::into_inner);
    let last = handles.len().checked_sub(1).ok_or_else(not_initialized)?;
    let wrong =
        || Failure::new(Status::WrongType, format!("there is no profile {number}: they are 0 to {last}"));
    handles.get(number as usize).copied().ok_or_else(wrong)
}

fn write_text(path: &Path, text: &[u8]) -> Result<(), Failure> {
    let written = if path == Path::new("-") {
        stdout().write_all(text).and_then(|()| stdout().flush())
    } else {
        File::create(path).and_then(|file| {
            let mut file = BufWriter::new(file);
            file.write_all(text)?;
            file.flush()
        })
    };
    written.map_err(|error| Failure::new(Status::Io, format!("{}: {error}", path.display())))
}
