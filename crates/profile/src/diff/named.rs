//! Code compared by name: what is left when a module was built anew and its offsets mean something else.

use super::noise::Noise;
use super::{DiffOptions, Pair, Share, Shares};
use crate::profile::Profile;
use sonde_rap::Snapshot;
use sonde_starts::StartsProfile;
use sonde_summary::{Kind, Trees};
use std::collections::BTreeMap;

/// A stretch of places that has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Its name, the same in both profiles for what is to be compared.
    pub name: String,
    /// First place.
    pub lo: u64,
    /// Last place.
    pub hi: u64,
}

/// Something with a name that got hotter or colder.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// By how much.
    pub shares: Shares,
}

/// Gives the stretch that a place lies in, if it has a name there.
pub type Namer<'a> = dyn FnMut(&Profile, u64) -> Option<Stretch> + 'a;

impl Pair<'_> {
    /// The changes of code by name, largest first, and how many names were compared. `name` is asked for places of each
    /// profile, in its own region numbers; what it gives no name to is left out.
    pub fn named(&self, name: &mut Namer<'_>) -> (Vec<Named>, usize) {
        let kind = Kind::Code;
        let trees = (code(self.before), code(self.after));
        let (Some(before), Some(after)) = trees else { return (Vec::new(), 0) };
        let mut all: BTreeMap<String, (Share, Share)> = BTreeMap::new();
        for (key, share) in shares(before, |place| name(self.before, place)) {
            all.entry(key).or_default().0 = share;
        }
        for (key, share) in shares(after, |place| name(self.after, place)) {
            all.entry(key).or_default().1 = share;
        }
        let noise = |compared| self.noise(kind, compared);
        self.judged(all, noise)
    }

    /// The same by where bursts began, if both profiles tell: also time in which a function waited for memory.
    pub fn named_starts(&self, name: &mut Namer<'_>) -> Option<(Vec<Named>, usize)> {
        let (before, after) = (self.before.starts.as_ref()?, self.after.starts.as_ref()?);
        let mut all: BTreeMap<String, (Share, Share)> = BTreeMap::new();
        for (key, share) in begun(before, |place| name(self.before, place)) {
            all.entry(key).or_default().0 = share;
        }
        for (key, share) in begun(after, |place| name(self.after, place)) {
            all.entry(key).or_default().1 = share;
        }
        let bursts = |starts: &StartsProfile| starts.all().count as f64;
        // Beside all kinds of trees.
        let lists = self.before.summary.ranges.len() + 1;
        let noise = |compared: usize| {
            let compared = compared.max(1) * lists;
            Noise::new(bursts(before), bursts(after), compared, self.options.confidence)
        };
        Some(self.judged(all, noise))
    }

    fn judged(
        &self,
        mut all: BTreeMap<String, (Share, Share)>,
        noise: impl FnOnce(usize) -> Noise,
    ) -> (Vec<Named>, usize) {
        let hot = |(a, b): &(Share, Share)| a.upper.max(b.upper) >= self.options.hot;
        all.retain(|_, shares| hot(shares));
        let compared = all.len();
        let noise = noise(compared);
        let shares = all.into_iter().map(|(name, (before, after))| Named {
            name,
            shares: Shares { before, after, noise: noise.of(before.upper, after.upper) },
        });
        let mut changes: Vec<Named> = shares.filter(|named| self.changed(&named.shares)).collect();
        changes.sort_by(|a, b| b.shares.apart().abs().total_cmp(&a.shares.apart().abs()));
        (changes, compared)
    }

    fn changed(&self, shares: &Shares) -> bool {
        let options: &DiffOptions = &self.options;
        shares.is_change(options)
    }
}

/// Shares of the beginnings of bursts by name; those without a name are in none.
fn begun(starts: &StartsProfile, mut name: impl FnMut(u64) -> Option<Stretch>) -> BTreeMap<String, Share> {
    let whole = starts.all().weight.max(1) as f64;
    let mut shares: BTreeMap<String, Share> = BTreeMap::new();
    for start in &starts.starts {
        let Some(found) = name(start.pc) else { continue };
        let share = shares.entry(found.name).or_default();
        share.lower += start.sum.weight as f64 / whole;
        share.upper = share.lower;
    }
    shares
}

fn code(profile: &Profile) -> Option<&Snapshot<u64>> {
    match &profile.summary.of(Kind::Code)?.tree {
        Trees::One(tree) => Some(tree),
        Trees::Two(_) => None,
    }
}

/// Shares by name: at least what was counted inside the name's stretches, at most what was counted in ranges that touch
/// them.
fn shares(tree: &Snapshot<u64>, mut name: impl FnMut(u64) -> Option<Stretch>) -> BTreeMap<String, Share> {
    let mut stretches: BTreeMap<(u64, u64), String> = BTreeMap::new();
    for node in &tree.nodes {
        // Both ends, since a wide range may begin outside of everything; in between lies what has nodes of its own.
        for place in [node.range.lo, node.range.hi] {
            let known = stretches.range(..=(place, u64::MAX)).next_back();
            if known.is_some_and(|((lo, hi), _)| *lo <= place && place <= *hi) {
                continue;
            }
            if let Some(found) = name(place).filter(|found| found.lo <= place && place <= found.hi) {
                stretches.insert((found.lo, found.hi), found.name);
            }
        }
    }
    let whole = tree.events.max(1) as f64;
    let mut shares: BTreeMap<String, Share> = BTreeMap::new();
    for ((lo, hi), name) in stretches {
        let bounds = tree.bounds(lo, hi);
        let share = shares.entry(name).or_default();
        share.lower += bounds.lower as f64 / whole;
        share.upper = (share.upper + bounds.upper as f64 / whole).min(1.0);
    }
    shares
}
