//! `sonde_rap_*`: trees by handle, with every option and query.
//!
//! Lengths: a call that fills an array stores the number of elements that there are; if the array is too small, nothing is
//! written to it, the call returns `TooSmall`, and can be repeated with enough room.

use crate::any_tree::AnyTree;
use crate::pointers::{copy_out, read, slice, write};
use crate::status::{Failure, Status, guard};
use crate::table;
use crate::types::{RapConfig, RapHandle, RapHotRange, RapInfo, RapKey};
use sonde_rap::Config;
use std::ffi::c_char;

/// Fills a configuration with the defaults: 64-bit keys, `b` = 4, `eps` = 1 %, `q` = 2, no memory limit.
///
/// # Safety
/// `config` must be NULL or point to room for a configuration.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sonde_rap_config_default(config: *mut RapConfig) -> Status {
    // SAFETY: the caller's promise is passed on.
    guard(|| unsafe { write(config, RapConfig::from(&Config::new()), "config") })
}

/// Makes an empty tree and stores its handle. To be freed with `sonde_rap_free`.
///
/// # Safety
/// `config` must be NULL or point to a configuration, `handle` must be NULL or point to room for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sonde_rap_new(config: *const RapConfig, handle: *mut RapHandle) -> Status {
    guard(|| {
        // SAFETY: the caller's promise is passed on.
        let config = unsafe { read(config, "config") }?;
        let tree = AnyTree::new(config.key_type, config.to_config()?)?;
        // SAFETY: the caller's promise is passed on.
        unsafe { hand_out(tree, handle) }
    })
}

/// Stores the handle of a new tree; the tree is not kept when it cannot be stored.
///
/// # Safety
/// As for [`write`].
unsafe fn hand_out(tree: AnyTree, handle: *mut RapHandle) -> Result<(), Failure> {
    // SAFETY: the caller's promise is passed on. The first write only finds out whether the second will succeed.
    unsafe { write(handle, 0, "handle") }?;
    // SAFETY: as above.
    unsafe { write(handle, table::insert(tree), "handle") }
}

/// Frees a tree. A second time it is `BadHandle`.
#[unsafe(no_mangle)]
pub extern "C" fn sonde_rap_free(handle: RapHandle) -> Status {
    guard(|| table::remove(handle))
}

/// Counts one event, for trees of 32-bit or 64-bit numbers.
#[unsafe(no_mangle)]
pub extern "C" fn sonde_rap_add(handle: RapHandle, number: u64) -> Status {
    sonde_rap_add_weighted(handle, number, 1)
}

/// Counts `weight` events with the same number, for trees of 32-bit or 64-bit numbers.
#[unsafe(no_mangle)]
pub extern "C" fn sonde_rap_add_weighted(handle: RapHandle, number: u64, weight: u64) -> Status {
    guard(|| {
        table::with(handle, |tree| {
            if !tree.takes_numbers() {
                let message = "keys of this tree are no numbers of 32 or 64 bits: use sonde_rap_add_key";
                return Err(Failure::new(Status::WrongType, message));
            }
            tree.add(&RapKey { part: [number, 0, 0] }, weight)
        })
    })
}

/// Counts `weight` events with the same key, for trees of any key type.
///
/// # Safety
/// `key` must be NULL or point to a key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sonde_rap_add_key(handle: RapHandle, key: *const RapKey, weight: u64) -> Status {
    guard(|| {
        // SAFETY: the caller's promise is passed on.
        let key = unsafe { read(key, "key") }?;
        table::with(handle, |tree| tree.add(&key, weight))
    })
}

/// Counts one event for each number, for trees of 64-bit keys: the fast way.
///
/// # Safety
/// `numbers` must be NULL or point to `length` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sonde_rap_add_slice(
    handle: RapHandle,
    numbers: *const u64,
    length: usize,
) -> Status {
    guard(|| {
        // SAFETY: the caller's promise is passed on.
        let numbers = unsafe { slice(numbers, length, "numbers") }?;
        table::with(handle, |tree| tree.add_slice_u64(numbers))
    })
}

/// Counts one event for each number, for trees of 32-bit keys: the fast way.
///
/// # Safety
/// `numbers` must be NULL or point to `length` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sonde_rap_add_slice_u32(
    handle: RapHandle,
    numbers: *const u32,
    length: usize,
) -> Status {
    guard(|| {
        // SAFETY: the caller's promise is passed on.
        let numbers = unsafe { slice(numbers, length, "numbers") }?;
        table::with(handle, |tree| tree.add_slice_u32(numbers))
    })
}

/// Tells where a tree stands; buffered events are counted in first.
///
/// # Safety
/// `info` must be NULL or point to room for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sonde_rap_get_info(handle: RapHandle, info: *mut RapInfo) -> Status {
    guard(|| {
        let now = table::with(handle, |tree| {
            tree.finish();
            Ok(tree.info())
        })?;
        // SAFETY: the caller's promise is passed on.
        unsafe { write(info, now, "info") }
    })
}

/// Stores the hot ranges at `threshold` (a share, such as 0.1), outer ranges before inner, in the caller's array.
///
/// # Safety
/// `ranges` must be NULL or point to room for `capacity` ranges, `count` must be NULL or point to a `size_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sonde_rap_hot(
    handle: RapHandle,
    threshold: f64,
    ranges: *mut RapHotRange,
    capacity: usize,
    count: *mut usize,
) -> Status {
    guard(|| {
        if !(threshold > 0.0 && threshold <= 1.0) {
            let message =
                format!("a threshold is a share above 0 and at most 1 (0.1 is 10 %), not {threshold}");
            return Err(Failure::new(Status::BadArgument, message));
        }
        let hot = table::with(handle, |tree| Ok(tree.hot(threshold)))?;
        // SAFETY: the caller's promise is passed on.
        unsafe { copy_out(&hot, ranges, capacity, count) }
    })
}

/// Stores the least and the most events that keys from `lo` to `hi` (both included, in each dimension) can have.
///
/// # Safety
/// `lo` and `hi` must be NULL or point to keys, `lower` and `upper` must be NULL or point to room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sonde_rap_bounds(
    handle: RapHandle,
    lo: *const RapKey,
    hi: *const RapKey,
    lower: *mut u64,
    upper: *mut u64,
) -> Status {
    guard(|| {
        // SAFETY: the caller's promise is passed on.
        let (lo, hi) = unsafe { (read(lo, "lo")?, read(hi, "hi")?) };
        let (least, most) = table::with(handle, |tree| tree.bounds(&lo, &hi))?;
        // SAFETY: the caller's promise is passed on.
        unsafe {
            write(lower, least, "lower")?;
            write(upper, most, "upper")
        }
    })
}

/// Stores the tree as bytes (with version and checksum) in the caller's array.
///
/// # Safety
/// `bytes` must be NULL or point to room for `capacity` bytes, `length` must be NULL or point to a `size_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sonde_rap_serialize(
    handle: RapHandle,
    bytes: *mut u8,
    capacity: usize,
    length: *mut usize,
) -> Status {
    guard(|| {
        let written = table::with(handle, |tree| Ok(tree.to_bytes()))?;
        // SAFETY: the caller's promise is passed on.
        unsafe { copy_out(&written, bytes, capacity, length) }
    })
}

/// Makes a tree of a key type from serialized bytes, which need not be trusted, and stores its handle.
///
/// # Safety
/// `bytes` must be NULL or point to `length` bytes, `handle` must be NULL or point to room for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sonde_rap_deserialize(
    key_type: u32,
    bytes: *const u8,
    length: usize,
    handle: *mut RapHandle,
) -> Status {
    guard(|| {
        // SAFETY: the caller's promise is passed on.
        let bytes = unsafe { slice(bytes, length, "bytes") }?;
        let tree = AnyTree::from_bytes(key_type, bytes)?;
        // SAFETY: the caller's promise is passed on.
        unsafe { hand_out(tree, handle) }
    })
}

/// Adds a tree that was built apart, given as serialized bytes of the same key type. Errors add up: `eps * (n1 + n2)`.
///
/// # Safety
/// `bytes` must be NULL or point to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sonde_rap_merge(handle: RapHandle, bytes: *const u8, length: usize) -> Status {
    guard(|| {
        // SAFETY: the caller's promise is passed on.
        let bytes = unsafe { slice(bytes, length, "bytes") }?;
        table::with(handle, |tree| tree.merge(bytes))
    })
}

/// Stores the tree as text (not ended by NUL) in the caller's array.
///
/// # Safety
/// `text` must be NULL or point to room for `capacity` characters, `length` must be NULL or point to a `size_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sonde_rap_dump(
    handle: RapHandle,
    text: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> Status {
    guard(|| {
        let dump = table::with(handle, AnyTree::dump)?;
        // SAFETY: the caller's promise is passed on; a `char` is a byte.
        unsafe { copy_out(&dump, text.cast::<u8>(), capacity, length) }
    })
}
