//! Handles instead of pointers: a number that C can pass wrongly, twice or too late, and that is then refused.
//!
//! Numbers are never given out twice, so that a freed handle stays invalid for ever.

use crate::any_tree::AnyTree;
use crate::status::{Failure, Status};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};

type Shared = Arc<Mutex<AnyTree>>;

static TABLE: LazyLock<RwLock<HashMap<u64, Shared>>> = LazyLock::new(RwLock::default);
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Puts a tree into the table and returns its handle, which is never 0.
pub fn insert(tree: AnyTree) -> u64 {
    let handle = NEXT.fetch_add(1, Ordering::Relaxed);
    // A poisoned table is still a valid map: the panic cannot have come from inside its own methods.
    TABLE.write().unwrap_or_else(PoisonError::into_inner).insert(handle, Arc::new(Mutex::new(tree)));
    handle
}

/// Takes a tree out; calls that are using it on other threads finish first on their own share.
pub fn remove(handle: u64) -> Result<(), Failure> {
    let taken = TABLE.write().unwrap_or_else(PoisonError::into_inner).remove(&handle);
    taken.map(drop).ok_or_else(|| unknown(handle))
}

/// Runs `body` on the tree of a handle, alone.
pub fn with<T>(handle: u64, body: impl FnOnce(&mut AnyTree) -> Result<T, Failure>) -> Result<T, Failure> {
    let found = TABLE.read().unwrap_or_else(PoisonError::into_inner).get(&handle).cloned();
    let shared = found.ok_or_else(|| unknown(handle))?;
    let mut tree = shared.lock().map_err(|_| {
        Failure::new(
            Status::Internal,
            format!("handle {handle} was left broken by an internal error; free it"),
        )
    })?;
    body(&mut tree)
}

fn unknown(handle: u64) -> Failure {
    let reason = if handle == 0 {
        "handle 0 is never valid: was the status of sonde_rap_new checked?".to_string()
    } else if handle < NEXT.load(Ordering::Relaxed) {
        format!("handle {handle} was freed already")
    } else {
        format!("handle {handle} was never given out")
    };
    Failure::new(Status::BadHandle, reason)
}
