//! What moving loops into hardware would bring: the estimate that paper 5 section 2 motivates loop profiles with.
//!
//! `S = T_sw / (T_sw - T_sw(loop) + T_hw(loop) + executions * (T_init + T_sync))`. Time is in instructions. An estimate: it
//! knows nothing of area, memory bandwidth or whether a loop can be built.

use crate::error::LoopsError;
use crate::exact::{LoopStats, LoopsProfile};
use std::collections::BTreeMap;

/// Costs, in instructions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PartitionConfig {
    /// How many times faster hardware runs a loop; papers speak of 10 to 100.
    pub hardware_speedup: f64,
    /// Moving data to the hardware before an execution (`T_init`).
    pub init: f64,
    /// Waiting for it and moving data back (`T_sync`).
    pub sync: f64,
    /// Most loops that fit into the hardware.
    pub max_loops: usize,
}

impl Default for PartitionConfig {
    fn default() -> PartitionConfig {
        PartitionConfig { hardware_speedup: 10.0, init: 100.0, sync: 100.0, max_loops: 4 }
    }
}

/// A loop in hardware.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Candidate {
    /// Header of the loop.
    pub header: u64,
    /// Share of all instructions in it, inner loops included, called functions not: those stay in software.
    pub share: f64,
    /// Executions, those not seen whole included.
    pub executions: u64,
    /// Speed-up of the program with this loop alone in hardware; below 1 it becomes slower.
    pub speedup: f64,
}

/// The estimate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Partition {
    /// All loops that were executed, best first.
    pub candidates: Vec<Candidate>,
    /// The loops chosen together, in the order of choice; none lies in another.
    pub chosen: Vec<Candidate>,
    /// Speed-up of the program with the chosen loops in hardware.
    pub speedup: f64,
}

/// Instructions saved by a loop in hardware; negative if it costs more than it saves.
fn saved(own: f64, executions: f64, config: &PartitionConfig) -> f64 {
    own - own / config.hardware_speedup - executions * (config.init + config.sync)
}

/// Estimates for each loop, and for a set chosen greedily. Time and executions are those recorded, so that profiles of
/// bursts can be used, too; an execution that a burst saw in part counts as one.
pub fn partition(profile: &LoopsProfile, config: &PartitionConfig) -> Result<Partition, LoopsError> {
    validate(config)?;
    let total = profile.instructions as f64;
    let nests = nests(profile);
    let speedup = |saved: f64| if total > 0.0 { total / (total - saved).max(f64::MIN_POSITIVE) } else { 1.0 };
    let mut candidates: Vec<(f64, Candidate)> = Vec::new();
    for l in &profile.loops {
        let executions = l.whole.executions + l.cut.starts.max(l.cut.ends);
        if executions == 0 {
            continue;
        }
        let share = profile.share(nests[&l.header]);
        let saved = saved(share * total, executions as f64, config);
        candidates.push((saved, Candidate { header: l.header, share, executions, speedup: speedup(saved) }));
    }
    candidates.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.header.cmp(&b.1.header)));
    let (mut chosen, mut sum) = (Vec::new(), 0.0);
    for (saved, candidate) in &candidates {
        if *saved <= 0.0 || chosen.len() == config.max_loops {
            break;
        }
        let overlaps = |c: &Candidate| {
            is_around(profile, c.header, candidate.header) || is_around(profile, candidate.header, c.header)
        };
        if !chosen.iter().any(overlaps) {
            chosen.push(*candidate);
            sum += saved;
        }
    }
    let candidates = candidates.into_iter().map(|c| c.1).collect();
    Ok(Partition { candidates, chosen, speedup: speedup(sum) })
}

fn validate(config: &PartitionConfig) -> Result<(), LoopsError> {
    let bad = |what, value: f64, rule| Err(LoopsError::OutOfRange { what, value: value.to_string(), rule });
    let cost = |value: f64| value.is_finite() && value >= 0.0;
    if !(config.hardware_speedup.is_finite() && config.hardware_speedup > 0.0) {
        return bad("hardware_speedup", config.hardware_speedup, "a number above 0 is needed");
    }
    if !cost(config.init) {
        return bad("init", config.init, "a number of instructions is needed");
    }
    if !cost(config.sync) {
        return bad("sync", config.sync, "a number of instructions is needed");
    }
    Ok(())
}

/// Weight of each loop with its inner loops.
fn nests(profile: &LoopsProfile) -> BTreeMap<u64, f64> {
    let mut weights: BTreeMap<u64, f64> = profile.loops.iter().map(|l| (l.header, l.own_weight)).collect();
    let mut inner_first: Vec<&LoopStats> = profile.loops.iter().collect();
    inner_first.sort_by_key(|l| (std::cmp::Reverse(l.depth), l.header));
    for l in inner_first {
        let weight = weights[&l.header];
        if let Some(outer) = l.parent.and_then(|p| weights.get_mut(&p)) {
            *outer += weight;
        }
    }
    weights
}

/// Whether a loop is around another.
fn is_around(profile: &LoopsProfile, outer: u64, inner: u64) -> bool {
    let mut at = profile.get(inner);
    // Merged profiles may name parents that are not there or go in a circle.
    for _ in 0..profile.loops.len() {
        let Some(parent) = at.and_then(|l| l.parent) else { return false };
        if parent == outer {
            return true;
        }
        at = profile.get(parent);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::Spread;

    fn l(header: u64, parent: Option<u64>, executions: u64, own: u64) -> LoopStats {
        LoopStats {
            header,
            parent,
            depth: 1 + u32::from(parent.is_some()),
            whole: Spread { executions, ..Spread::default() },
            own,
            own_weight: own as f64,
            ..LoopStats::default()
        }
    }

    fn profile(loops: Vec<LoopStats>) -> LoopsProfile {
        LoopsProfile { loops, instructions: 1_000_000, weight: 1e6, ..LoopsProfile::default() }
    }

    /// The example of section 2: loop A has less time than loop B, but runs 5 times instead of 6,000.
    #[test]
    fn fewer_executions_beat_more_time() {
        let profile = profile(vec![l(1, None, 5, 330_000), l(2, None, 6000, 400_000)]);
        let config = PartitionConfig { max_loops: 1, ..PartitionConfig::default() };
        let got = partition(&profile, &config).unwrap();
        assert_eq!(got.chosen[0].header, 1);
        // T - 330000 + 33000 + 5 * 200
        assert!((got.speedup - 1e6 / 704_000.0).abs() < 1e-9);
        let b = got.candidates.iter().find(|c| c.header == 2).unwrap();
        assert!((b.speedup - 1e6 / 1_840_000.0).abs() < 1e-9);
        let free = PartitionConfig { init: 0.0, sync: 0.0, ..config };
        assert_eq!(partition(&profile, &free).unwrap().chosen[0].header, 2);
    }

    #[test]
    fn a_loop_and_one_inside_it_are_not_both_chosen() {
        let profile =
            profile(vec![l(1, None, 1, 100_000), l(2, Some(1), 10, 300_000), l(3, None, 1, 50_000)]);
        let got = partition(&profile, &PartitionConfig::default()).unwrap();
        let chosen: Vec<u64> = got.chosen.iter().map(|c| c.header).collect();
        assert_eq!(chosen, [1, 3]);
        assert!((got.chosen[0].share - 0.4).abs() < 1e-12);
    }

    #[test]
    fn costs_must_be_numbers() {
        let config = PartitionConfig { init: f64::NAN, ..PartitionConfig::default() };
        assert!(partition(&profile(vec![]), &config).is_err());
    }
}
