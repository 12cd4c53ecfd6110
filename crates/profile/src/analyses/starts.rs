//! Where bursts began, as columns.

use super::columns::{differences, even, sums};
use crate::error::ProfileError;
use crate::wire;
use sonde_starts::{Start, StartsProfile, Sum};

pub(crate) fn encode(starts: &StartsProfile) -> wire::Starts {
    wire::Starts {
        place: differences(starts.starts.iter().map(|start| start.pc)),
        count: starts.starts.iter().map(|start| start.sum.count).collect(),
        weight: starts.starts.iter().map(|start| start.sum.weight).collect(),
        behind_calls: starts.behind_calls.count,
        behind_calls_weight: starts.behind_calls.weight,
        in_faults: starts.in_faults.count,
        in_faults_weight: starts.in_faults.weight,
        not_kept: starts.not_kept.count,
        not_kept_weight: starts.not_kept.weight,
    }
}

pub(crate) fn decode(starts: &wire::Starts) -> Result<StartsProfile, ProfileError> {
    even("starts", &[starts.place.len(), starts.count.len(), starts.weight.len()])?;
    let rest = starts.count.iter().zip(&starts.weight);
    let start = |(pc, (count, weight)): (u64, (&u64, &u64))| Start {
        pc,
        sum: Sum { count: *count, weight: *weight },
    };
    Ok(StartsProfile {
        starts: sums(&starts.place).zip(rest).map(start).collect(),
        behind_calls: Sum { count: starts.behind_calls, weight: starts.behind_calls_weight },
        in_faults: Sum { count: starts.in_faults, weight: starts.in_faults_weight },
        not_kept: Sum { count: starts.not_kept, weight: starts.not_kept_weight },
    })
}
