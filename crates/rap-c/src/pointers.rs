//! The only place that touches the caller's memory: NULL and misalignment are refused, the rest is the caller's word.

use crate::status::{Failure, Status};
use std::ffi::{CStr, c_char};

fn refuse<T>(pointer: *const T, name: &str) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(Failure::new(Status::BadPointer, format!("{name} is NULL")));
    }
    if !pointer.is_aligned() {
        return Err(Failure::new(Status::BadPointer, format!("{name} is not aligned for its type")));
    }
    Ok(())
}

/// Reads one value.
///
/// # Safety
/// A pointer that is not NULL must point to a value of its type that nobody writes meanwhile.
pub unsafe fn read<T: Copy>(pointer: *const T, name: &str) -> Result<T, Failure> {
    refuse(pointer, name)?;
    // SAFETY: not NULL and aligned; that it points to a value is the caller's promise.
    Ok(unsafe { pointer.read() })
}

/// Writes one value.
///
/// # Safety
/// A pointer that is not NULL must point to room for a value of its type that nobody uses meanwhile.
pub unsafe fn write<T: Copy>(pointer: *mut T, value: T, name: &str) -> Result<(), Failure> {
    refuse(pointer, name)?;
    // SAFETY: not NULL and aligned; that it points to room for the value is the caller's promise.
    unsafe { pointer.write(value) };
    Ok(())
}

/// A slice of the caller's memory; with length 0 the pointer may be NULL.
///
/// # Safety
/// A pointer that is not NULL must point to `length` values that nobody writes while the slice is in use.
pub unsafe fn slice<'a, T: Copy>(pointer: *const T, length: usize, name: &str) -> Result<&'a [T], Failure> {
    if length == 0 {
        return Ok(&[]);
    }
    refuse(pointer, name)?;
    if length > isize::MAX as usize / size_of::<T>() {
        return Err(Failure::new(
            Status::BadArgument,
            format!("{length} elements of {name} are more than memory"),
        ));
    }
    // SAFETY: not NULL, aligned, and no longer than an object can be; the values are the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(pointer, length) })
}

/// Stores how many items there are and copies them if they fit into the caller's array of `capacity`.
///
/// # Safety
/// `count`, if not NULL, must point to a `size_t`, and `out`, if not NULL, to room for `capacity` items; nobody else may use
/// either meanwhile.
pub unsafe fn copy_out<T: Copy>(
    items: &[T],
    out: *mut T,
    capacity: usize,
    count: *mut usize,
) -> Result<(), Failure> {
    // SAFETY: the caller's promise is passed on.
    unsafe { write(count, items.len(), "the pointer for the length") }?;
    if items.len() > capacity {
        let message =
            format!("{} elements do not fit into {capacity}: the needed number is stored", items.len());
        return Err(Failure::new(Status::TooSmall, message));
    }
    if items.is_empty() {
        return Ok(());
    }
    refuse(out, "the array for the result")?;
    // SAFETY: `out` is not NULL, aligned, and has room for `capacity >= items.len()` items by the caller's promise; `items`
    // is memory of this library, so that the two do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(items.as_ptr(), out, items.len()) };
    Ok(())
}

/// A file name; NULL is `None`.
///
/// # Safety
/// A pointer that is not NULL must point to a string that ends with NUL and that nobody writes meanwhile.
pub unsafe fn optional_path(pointer: *const c_char) -> Option<std::path::PathBuf> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: not NULL, and ended by NUL by the caller's promise.
    let text = unsafe { CStr::from_ptr(pointer) };
    use std::os::unix::ffi::OsStrExt;
    Some(std::ffi::OsStr::from_bytes(text.to_bytes()).into())
}
