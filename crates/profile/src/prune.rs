//! Trees that are too large for a file are made coarser, as they would be with a larger `eps`; what that costs is told.

use crate::analyses::{MOST_CALLS, MOST_LOOPS, MOST_VALUES, bound_calls, bound_loops, bound_values};
use crate::error::ProfileError;
use crate::profile::Profile;
use crate::trees::heaviest_path;
use sonde_rap::{Buffer, Config, Key, MergeError, Snapshot, Tree};
use sonde_summary::Trees;

/// From one attempt to the next the error allowed grows by this factor.
const STEP: f64 = 1.5;

impl Profile {
    /// The profile with at most `most` nodes in each tree; none if that is so already.
    pub fn pruned(&self, most: usize) -> Result<Option<Profile>, ProfileError> {
        let nodes = |trees: &Trees| match trees {
            Trees::One(tree) => tree.nodes.len(),
            Trees::Two(tree) => tree.nodes.len(),
        };
        let mut pruned = self.clone();
        let shorter = pruned.bound_lists();
        if !shorter && self.summary.ranges.iter().all(|ranges| nodes(&ranges.tree) <= most) {
            return Ok(None);
        }
        for ranges in pruned.summary.ranges.iter_mut().filter(|ranges| nodes(&ranges.tree) > most) {
            let kind = ranges.kind;
            let done = match &mut ranges.tree {
                Trees::One(tree) => prune(tree, most).map(|fewer| *tree = fewer),
                Trees::Two(tree) => prune(tree, most).map(|fewer| *tree = fewer),
            };
            done.map_err(|cause| ProfileError::Trees { kind, cause })?;
        }
        Ok(Some(pruned))
    }

    /// Keeps the heaviest of lists that are too long, and counts what goes. Whether any was.
    pub(crate) fn bound_lists(&mut self) -> bool {
        let lengths = |p: &Profile| {
            let calls = p.calls.as_ref().map(|c| {
                [c.regions.len(), c.backward.len(), c.functions.len(), c.pairs.len(), c.contexts.len()]
            });
            (calls, p.loops.as_ref().map(|l| l.loops.len()), p.values.as_ref().map(|v| v.loads.len()))
        };
        let before = lengths(self);
        let calls = self.calls.as_mut().map_or(0, |calls| bound_calls(calls, MOST_CALLS));
        let loops = self.loops.as_mut().map_or(0, |loops| bound_loops(loops, MOST_LOOPS));
        self.values.iter_mut().for_each(|values| bound_values(values, MOST_VALUES));
        self.add_loss("code_regions_left_out", calls);
        self.add_loss("loops_left_out", loops);
        before != lengths(self)
    }
}

/// The same events in at most `most` nodes (at least one): light ranges are merged into their parents, as a tree with a
/// larger `eps` does it (Mysore et al. 2008, section 2.2). What then holds is in `eps_effective`.
pub(crate) fn prune<K: Key>(tree: &Snapshot<K>, most: usize) -> Result<Snapshot<K>, MergeError> {
    let mut eps = tree.config.eps;
    let mut fewer = tree.clone();
    while fewer.nodes.len() > most.max(1) {
        eps *= STEP;
        if eps >= 1.0 {
            fewer.nodes = vec![sonde_rap::Node { range: sonde_rap::Range::all(), own: tree.events }];
            break;
        }
        let mut coarser = Tree::new(coarse(&tree.config, eps)).map_err(MergeError::Config)?;
        coarser.merge(&fewer)?;
        fewer.nodes = coarser.snapshot().nodes;
    }
    let lost = heaviest_path(&fewer) as f64 / fewer.events.max(1) as f64;
    fewer.eps_effective = fewer.config.eps.max(lost);
    Ok(fewer)
}

/// Merges at once, and takes no more memory than the nodes need.
fn coarse(config: &Config, eps: f64) -> Config {
    Config { eps, first_merge: 1, max_memory: None, buffer: Buffer::None, ..config.clone() }
}
