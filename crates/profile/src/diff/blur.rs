//! Ranges are compared no finer than runs can be compared at all.
//!
//! - The stack: the kernel moves its top by a random amount of up to some pages, within the region, in every run.
//! - Anonymous memory: the kernel puts mappings where it finds room, large ones at multiples of 2 MiB, so that their
//!   distances change from run to run. So do addresses in nothing known.
//! - Values that may be addresses: they are where the run happened to lie.
//! - Modules of another build: offsets mean something else. Functions are compared by name ([`super::Pair::named`]).

use super::is_in;
use sonde_place::{Kind as RegionKind, OFFSET_BITS, Place, Regions};
use sonde_rap::{Key, Range};
use sonde_summary::Domain;

/// Values that may be addresses of programs whose place is drawn at random.
const ADDRESSES: (u64, u64) = (1 << 32, (1 << 47) - 1);

pub(super) struct Blur {
    pub regions: Regions,
    pub rebuilt: Vec<u16>,
}

/// First and last place of a region.
pub(super) fn region(slot: u16) -> (u64, u64) {
    let lo = Place::new(slot, 0).0;
    (lo, lo + ((1 << OFFSET_BITS) - 1))
}

impl Blur {
    /// The range, widened to what can be compared.
    pub fn range<K: Key>(&self, range: &Range<K>, domains: &[Domain]) -> Range<K> {
        let (mut lo, mut hi) = ([0u128; 4], [0u128; 4]);
        for (dim, domain) in domains.iter().enumerate() {
            let ends = (range.lo.coordinate(dim) as u64, range.hi.coordinate(dim) as u64);
            let wide = if *domain == Domain::Value { values(ends) } else { self.places(ends) };
            (lo[dim], hi[dim]) = (wide.0.into(), wide.1.into());
        }
        Range { lo: K::from_coordinates(&lo[..K::DIMS]), hi: K::from_coordinates(&hi[..K::DIMS]) }
    }

    fn places(&self, (lo, hi): (u64, u64)) -> (u64, u64) {
        let slot = Place(lo).slot();
        let drawn = |kind| matches!(kind, RegionKind::Stack | RegionKind::Anonymous | RegionKind::Unknown);
        let moves = self.regions.get(Place(lo)).is_some_and(|region| drawn(region.kind));
        let whole = slot == Place(hi).slot() && (moves || is_in(lo, &self.rebuilt));
        if whole { region(slot) } else { (lo, hi) }
    }
}

/// Values that touch where addresses can be are compared with all of them together.
fn values((lo, hi): (u64, u64)) -> (u64, u64) {
    let touches = lo <= ADDRESSES.1 && ADDRESSES.0 <= hi;
    if touches { (lo.min(ADDRESSES.0), hi.max(ADDRESSES.1)) } else { (lo, hi) }
}
