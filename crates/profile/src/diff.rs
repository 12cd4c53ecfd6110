//! What changed from one profile to another: ranges whose share differs by more than both profiles can be wrong.
//!
//! A share is known up to two errors: that of the tree (a proven bound, `bounds`), and, where only bursts were recorded,
//! that of the sample (`noise.rs`). A range has changed if its two intervals lie apart by more than chance explains.
//! Candidates are the hot ranges of both sides and whole regions; a range around one that changed is only reported if it
//! changed beyond that, as a range is not hot merely because a hot one lies in it (Mysore et al. 2008, section 5.1).

mod blur;
mod drawn;
mod named;
mod noise;

use crate::error::ProfileError;
use crate::profile::Profile;
use crate::relocate::{Moves, relocated};
use blur::Blur;
use noise::Noise;
use sonde_place::{Kind as RegionKind, Place, Region, Regions};
use sonde_rap::{Key, Range, Snapshot};
use sonde_summary::{BlockWeight, Domain, Kind, Trees, Unit};

pub use named::{Named, Stretch};

/// What counts as a change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiffOptions {
    /// Ranges with at least this share in one of the profiles are compared.
    pub hot: f64,
    /// Changes of a share by less than this are of no interest.
    pub least: f64,
    /// How sure it has to be that none of the changes shown is chance, all together.
    pub confidence: f64,
}

impl Default for DiffOptions {
    fn default() -> DiffOptions {
        DiffOptions { hot: 0.01, least: 0.005, confidence: 0.99 }
    }
}

/// What changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Diff {
    /// What places in it are in: the regions of both.
    pub regions: Regions,
    /// Modules of which the two profiles have different builds, by number: of them only wholes are compared here.
    pub rebuilt: Vec<u16>,
    /// The heaviest blocks of both, by place, except in other builds: what in a range was executed.
    pub blocks: Vec<BlockWeight>,
    /// What weights are.
    pub unit: Unit,
    /// By kind, those that both profiles have.
    pub kinds: Vec<KindDiff>,
    /// Kinds that only the first has.
    pub only_before: Vec<Kind>,
    /// Kinds that only the second has.
    pub only_after: Vec<Kind>,
}

/// What changed in the trees of a kind.
#[derive(Clone, Debug, PartialEq)]
pub struct KindDiff {
    /// What they are over.
    pub kind: Kind,
    /// Ranges compared.
    pub compared: usize,
    /// By how much a share of 10 % had to change to be seen, the errors of the trees aside.
    pub resolution: f64,
    /// All weights of both.
    pub weights: (u64, u64),
    /// Values that were drawn at random in each run and are no changes: pairs of one that went and one that came.
    pub drawn: usize,
    /// The changes, largest first.
    pub changes: Vec<Change>,
}

/// A range that got hotter or colder.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Lowest key, of each dimension.
    pub lo: Vec<u64>,
    /// Highest key, of each dimension.
    pub hi: Vec<u64>,
    /// By how much it changed.
    pub shares: Shares,
    /// Parts of it changed by themselves, and are changes of their own: the shares are of the rest.
    pub is_rest: bool,
}

/// Shares of something in two profiles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    /// In the first.
    pub before: Share,
    /// In the second.
    pub after: Share,
    /// By how much they may differ by chance.
    pub noise: f64,
}

/// A share that is known to lie between two bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// At least.
    pub lower: f64,
    /// At most.
    pub upper: f64,
}

impl Shares {
    /// The distance between the two intervals: positive if it got hotter, negative if colder, 0 if they touch.
    pub fn apart(&self) -> f64 {
        let (up, down) = (self.after.lower - self.before.upper, self.before.lower - self.after.upper);
        if up > 0.0 { up } else { -down.max(0.0) }
    }

    /// The change as it was counted.
    pub fn counted(&self) -> f64 {
        self.after.lower - self.before.lower
    }

    /// Whether it is a change, and no chance.
    pub fn is_change(&self, options: &DiffOptions) -> bool {
        self.apart().abs() > self.noise.max(options.least)
    }
}

/// Two profiles, made comparable.
pub struct Pair<'a> {
    before: &'a Profile,
    after: &'a Profile,
    moves: Moves,
    blur: Blur,
    options: DiffOptions,
}

impl<'a> Pair<'a> {
    /// Finds out which regions are the same. Modules of which each profile has another build are taken for the same by
    /// their file names.
    pub fn new(
        before: &'a Profile,
        after: &'a Profile,
        options: DiffOptions,
    ) -> Result<Pair<'a>, ProfileError> {
        let (ours, theirs) = (before.summary.unit, after.summary.unit);
        if ours != theirs {
            return Err(ProfileError::Units { ours, theirs });
        }
        let mut regions = before.summary.regions.clone();
        let (old, new) = (before.summary.regions.all(), after.summary.regions.all());
        let mut rebuilt = Vec::new();
        let slots = new.iter().map(|region| match rebuilt_from(old, new, region) {
            Some(slot) => {
                rebuilt.push(slot);
                slot
            }
            None => regions.number(region),
        });
        let moves = Moves { slots: slots.collect(), widened: 0, pooled: 0 };
        Ok(Pair { before, after, moves, blur: Blur { regions, rebuilt }, options })
    }

    /// The two, before and after.
    pub fn profiles(&self) -> (&'a Profile, &'a Profile) {
        (self.before, self.after)
    }

    /// What changed.
    pub fn diff(mut self) -> Diff {
        let has = |profile: &Profile, kind| profile.summary.of(kind).is_some();
        let only = |one: &Profile, other: &Profile| {
            Kind::ALL.into_iter().filter(|kind| has(one, *kind) && !has(other, *kind)).collect()
        };
        let (only_before, only_after) = (only(self.before, self.after), only(self.after, self.before));
        let both: Vec<Kind> =
            Kind::ALL.into_iter().filter(|kind| has(self.before, *kind) && has(self.after, *kind)).collect();
        let mut kinds: Vec<KindDiff> = both.iter().filter_map(|kind| self.kind(*kind)).collect();
        kinds.sort_by_key(|kind| kind.kind);
        Diff {
            blocks: self.blocks(),
            unit: self.before.summary.unit,
            regions: self.blur.regions,
            rebuilt: self.blur.rebuilt,
            kinds,
            only_before,
            only_after,
        }
    }

    fn blocks(&self) -> Vec<BlockWeight> {
        let moved = |b: &BlockWeight| BlockWeight { place: Place(self.moves.place(b.place.0)), ..*b };
        let after = self.after.summary.blocks.iter().map(moved);
        let mut blocks: Vec<BlockWeight> = self.before.summary.blocks.iter().copied().chain(after).collect();
        blocks.retain(|block| !is_in(block.place.0, &self.blur.rebuilt));
        blocks.sort();
        blocks.dedup_by_key(|block| block.place);
        blocks
    }

    fn kind(&mut self, kind: Kind) -> Option<KindDiff> {
        let before = self.before.summary.of(kind)?;
        let after = relocated(self.after.summary.of(kind)?, &mut self.moves);
        match (&before.tree, &after.tree) {
            (Trees::One(a), Trees::One(b)) => Some(self.trees(kind, a, b)),
            (Trees::Two(a), Trees::Two(b)) => Some(self.trees(kind, a, b)),
            _ => None,
        }
    }

    fn trees<K: Key>(&self, kind: Kind, before: &Snapshot<K>, after: &Snapshot<K>) -> KindDiff {
        let candidates = self.candidates(kind, before, after);
        let noise = self.noise(kind, candidates.len());
        let mut found: Vec<Found<K>> = Vec::new();
        for range in &candidates {
            let whole = (share(before, range), share(after, range));
            let mut shares = Shares { before: whole.0, after: whole.1, noise: 0.0 };
            let mut is_rest = false;
            // What lies in it and changed by itself does not count again.
            for inner in found.iter().filter(|inner| inner.is_outermost && range.contains(&inner.range)) {
                shares.before.subtract(&inner.whole.0);
                shares.after.subtract(&inner.whole.1);
                is_rest = true;
            }
            shares.noise = noise.of(shares.before.upper, shares.after.upper);
            if shares.is_change(&self.options) {
                found.iter_mut().for_each(|inner| inner.is_outermost &= !range.contains(&inner.range));
                found.push(Found { range: *range, whole, shares, is_rest, is_outermost: true });
            }
        }
        found.sort_by(|a, b| b.shares.apart().abs().total_cmp(&a.shares.apart().abs()));
        let mut changes: Vec<Change> = found.iter().map(Found::change).collect();
        let drawn = drawn::leave_out(&mut changes, kind.domains(), self.options.least);
        KindDiff {
            kind,
            compared: candidates.len(),
            resolution: noise.of(0.1, 0.1),
            weights: (before.events, after.events),
            drawn,
            changes,
        }
    }

    /// Hot ranges of both, as wide as they can be compared, and whole regions; small ones first.
    fn candidates<K: Key>(&self, kind: Kind, before: &Snapshot<K>, after: &Snapshot<K>) -> Vec<Range<K>> {
        let hot = before.hot(self.options.hot).into_iter().chain(after.hot(self.options.hot));
        let mut all: Vec<Range<K>> = hot.map(|hot| self.blur.range(&hot.range, kind.domains())).collect();
        if K::DIMS == 1 && kind.domains() != [Domain::Value] {
            all.extend((0..self.blur.regions.all().len()).map(|slot| {
                let (lo, hi) = blur::region(slot as u16);
                Range { lo: K::from_coordinates(&[lo.into()]), hi: K::from_coordinates(&[hi.into()]) }
            }));
        }
        let everything = Range::all();
        all.retain(|range| *range != everything);
        all.sort_by_key(|range| (size(range), range.lo, range.hi));
        all.dedup();
        all
    }

    fn noise(&self, kind: Kind, compared: usize) -> Noise {
        let bursts = |profile| noise::effective_bursts(profile, kind);
        // All kinds together are to be wrong no more often than the confidence allows.
        let kinds = self.before.summary.ranges.len().max(1);
        Noise::new(bursts(self.before), bursts(self.after), compared.max(1) * kinds, self.options.confidence)
    }
}

/// A change that was found.
struct Found<K> {
    range: Range<K>,
    /// Its shares in both, with all that lies in it.
    whole: (Share, Share),
    /// What changed: without what lies in it and changed by itself.
    shares: Shares,
    is_rest: bool,
    /// It lies in no other change found so far.
    is_outermost: bool,
}

impl<K: Key> Found<K> {
    fn change(&self) -> Change {
        let corner = |key: K| (0..K::DIMS).map(|dim| key.coordinate(dim) as u64).collect();
        Change {
            lo: corner(self.range.lo),
            hi: corner(self.range.hi),
            shares: self.shares,
            is_rest: self.is_rest,
        }
    }
}

impl Share {
    fn subtract(&mut self, inner: &Share) {
        let lower = (self.lower - inner.upper).max(0.0);
        self.upper = (self.upper - inner.lower).max(lower);
        self.lower = lower;
    }
}

fn size<K: Key>(range: &Range<K>) -> u128 {
    let side = |dim| range.hi.coordinate(dim) - range.lo.coordinate(dim) + 1;
    // Two sides of 2^64 are everything, which is left out.
    (0..K::DIMS).map(side).fold(1, u128::saturating_mul)
}

fn share<K: Key>(tree: &Snapshot<K>, range: &Range<K>) -> Share {
    let bounds = tree.bounds(range.lo, range.hi);
    let of = |weight: u64| if tree.events == 0 { 0.0 } else { weight as f64 / tree.events as f64 };
    Share { lower: of(bounds.lower), upper: of(bounds.upper) }
}

/// The number of the region that another build of this module has among the old ones, if neither build is in both.
fn rebuilt_from(old: &[Region], new: &[Region], region: &Region) -> Option<u16> {
    let file = |region: &Region| region.name.rsplit('/').next().map(str::to_owned);
    let is_in = |all: &[Region], region: &Region| all.iter().any(|known| known.is_same_as(region));
    if region.kind != RegionKind::Module || is_in(old, region) {
        return None;
    }
    let other = |known: &Region| {
        known.kind == RegionKind::Module && file(known) == file(region) && !is_in(new, known)
    };
    old.iter().position(other).map(|slot| slot as u16)
}

/// Whether a place is in one of these regions.
pub(crate) fn is_in(place: u64, slots: &[u16]) -> bool {
    slots.contains(&Place(place).slot())
}
