//! What analyses beside the trees found, as columns and back, and kept within bounds when runs are added up.
//!
//! Their own crates know what is true of them (`check`) and how they are added up; numbers from a file are bounded here
//! first, so that no sum of theirs can overflow.

mod calls;
mod columns;
mod loops;
mod starts;
mod streams;
mod values;

pub(crate) use calls::{bound as bound_calls, decode as decode_calls, encode as encode_calls};
pub(crate) use loops::{
    bound as bound_loops, decode_head as decode_loops, decode_one as decode_loop,
    encode_head as encode_loops, encode_one as encode_loop,
};
pub(crate) use starts::{decode as decode_starts, encode as encode_starts};
pub(crate) use streams::{decode as decode_streams, encode as encode_streams};
pub(crate) use values::{bound as bound_values, decode as decode_values, encode as encode_values};

use crate::check::Invalid;
use crate::profile::Profile;
use sonde_place::Place;

/// Most entries of each list of calls.
pub(crate) const MOST_CALLS: usize = 1 << 16;
/// Most loops.
pub(crate) const MOST_LOOPS: usize = 1 << 15;

/// Most loads with values, and values of them, together.
pub(crate) const MOST_VALUES: usize = 1 << 18;

/// Checks all of them.
pub(crate) fn check(profile: &Profile) -> Result<(), Invalid> {
    let invalid = |part: &str, what: String| Invalid { part: part.into(), what };
    if let Some(starts) = &profile.starts {
        let in_region = |pc: u64| profile.summary.regions.get(Place(pc)).is_some();
        let known = starts.starts.iter().all(|start| in_region(start.pc));
        let checked = starts.check().and_then(|()| known.then_some(()).ok_or("one is in no region".into()));
        checked.map_err(|what| invalid("starts", what))?;
    }
    if let Some(calls) = &profile.calls {
        calls::within_bounds(calls).and_then(|()| calls.check()).map_err(|what| invalid("calls", what))?;
    }
    if let Some(streams) = &profile.streams {
        streams.check().map_err(|what| invalid("streams", what))?;
    }
    if let Some(loops) = &profile.loops {
        loops::within_bounds(loops).and_then(|()| loops.check()).map_err(|what| invalid("loops", what))?;
    }
    if let Some(values) = &profile.values {
        let bounded = values::within_bounds(values, MOST_VALUES);
        bounded.and_then(|()| values.check()).map_err(|what| invalid("values", what))?;
    }
    Ok(())
}
