//! How a call ends: a status code for the program, a sentence for the person, and no panic past the boundary.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a call came to. Zero is success.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Status {
    /// Done.
    Ok = 0,
    /// A pointer that must not be NULL is NULL, or is not aligned for its type.
    BadPointer = 1,
    /// The handle was never given out, or was freed already.
    BadHandle = 2,
    /// A configuration value is out of its range.
    BadConfig = 3,
    /// The call does not fit the tree's key type, or the profile number is not below the number given to `rap_init`.
    WrongType = 4,
    /// `rap_init` was not called, or `rap_release` was called since.
    NotInitialized = 5,
    /// The caller's array is too small; the needed length was stored.
    TooSmall = 6,
    /// Serialized bytes that are not a tree of this version and key type, or are damaged.
    BadData = 7,
    /// An argument is out of its range: a threshold that is no share, a length or count too large.
    BadArgument = 8,
    /// A file could not be written.
    Io = 9,
    /// A bug in this library; the tree that was being changed is no longer usable.
    Internal = 10,
}

/// A failed call: the code and the sentence.
#[derive(Debug)]
pub struct Failure {
    /// The code that the call returns.
    pub status: Status,
    /// What was wrong and what to do.
    pub message: String,
}

impl Failure {
    /// A failure with its sentence.
    pub fn new(status: Status, message: impl fmt::Display) -> Self {
        Failure { status, message: message.to_string() }
    }
}

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

fn remember(message: &str) {
    // A message never holds a NUL of its own; if one came in through a path or an error, cut it out rather than lose all.
    let clean: Vec<u8> = message.bytes().filter(|&byte| byte != 0).collect();
    LAST_ERROR.with(|last| *last.borrow_mut() = CString::new(clean).unwrap_or_default());
}

/// Runs the body of a call: stores the sentence of a failure, turns a panic into [`Status::Internal`].
pub fn guard(body: impl FnOnce() -> Result<(), Failure>) -> Status {
    // Unwind safety: the only state that outlives a panic is behind mutexes, which are poisoned by it and then refused.
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => Status::Ok,
        Ok(Err(failure)) => {
            remember(&failure.message);
            failure.status
        }
        Err(_) => {
            remember("internal error: a panic was caught; please report it with the standard error output");
            Status::Internal
        }
    }
}

/// The sentence of the last failed call on this thread; empty if none failed. Valid until the next failing call on this
/// thread; never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn sonde_rap_last_error() -> *const c_char {
    LAST_ERROR.with(|last| last.borrow().as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn a_panic_becomes_a_status() {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| ()));
        let status = guard(|| panic!("on purpose"));
        std::panic::set_hook(hook);
        assert_eq!(status, Status::Internal);
    }

    #[test]
    fn messages_are_kept_without_their_nul() {
        assert_eq!(guard(|| Err(Failure::new(Status::Io, "a\0b"))), Status::Io);
        // SAFETY: the pointer comes from a live thread-local CString.
        let text = unsafe { CStr::from_ptr(sonde_rap_last_error()) };
        assert_eq!(text.to_bytes(), b"ab");
    }
}
