//! Functions of both profiles, by name: modules may have been built anew.

use std::collections::{BTreeMap, BTreeSet};

use sonde_place::{Kind, Place, Region};
use sonde_profile::Profile;
use sonde_profile::diff::{Named, Pair, Stretch};
use sonde_symbol::Symbols;

/// Functions that changed.
pub struct Functions {
    /// The changes, largest first.
    pub changes: Vec<Named>,
    /// Functions compared.
    pub compared: usize,
    /// Modules whose functions could be named on one side only, and which side that was not.
    pub nameless: BTreeMap<String, &'static str>,
}

/// Compares the functions of two profiles.
pub fn compare(pair: &Pair<'_>, symbols: &mut Symbols) -> Functions {
    let mut seen = Seen::default();
    let before = pair.profiles().0;
    let mut name = |profile: &Profile, at: u64| {
        let side = usize::from(!std::ptr::eq(profile, before));
        let (module, found) = stretch(profile, Place(at), symbols)?;
        seen.note(side, module, found.is_some());
        found
    };
    // Profiles of older versions have other weights in their trees, but the same beginnings of bursts.
    let sampled = pair.named_starts(&mut name);
    let (mut changes, compared) = sampled.unwrap_or_else(|| pair.named(&mut name));
    let nameless = seen.nameless();
    let is_named = |change: &Named| !nameless.keys().any(|module| change.name.ends_with(&of(module)));
    changes.retain(is_named);
    Functions { changes, compared, nameless }
}

/// Modules that had places on each side, and those of which some were named.
#[derive(Default)]
struct Seen {
    there: [BTreeSet<String>; 2],
    named: [BTreeSet<String>; 2],
}

impl Seen {
    fn note(&mut self, side: usize, module: String, is_named: bool) {
        if is_named {
            self.named[side].insert(module.clone());
        }
        self.there[side].insert(module);
    }

    fn nameless(&self) -> BTreeMap<String, &'static str> {
        let lacks = |side: usize| self.there[side].difference(&self.named[side]);
        let (before, after) = (lacks(0), lacks(1));
        let before = before.filter(|module| self.named[1].contains(*module));
        let after = after.filter(|module| self.named[0].contains(*module));
        let before = before.map(|module| (module.clone(), "before"));
        before.chain(after.map(|module| (module.clone(), "after"))).collect()
    }
}

fn of(module: &str) -> String {
    format!(" ({module})")
}

/// The module of a place and the function around it.
fn stretch(profile: &Profile, place: Place, symbols: &mut Symbols) -> Option<(String, Option<Stretch>)> {
    let region = profile.summary.regions.get(place).filter(|region| region.kind == Kind::Module)?;
    let module = region.name.rsplit('/').next().unwrap_or_default().to_owned();
    let found = function(region, place, symbols).map(|(name, lo, hi)| Stretch {
        name: format!("{name}{}", of(&module)),
        lo,
        hi,
    });
    Some((module, found))
}

fn function(region: &Region, place: Place, symbols: &mut Symbols) -> Option<(String, u64, u64)> {
    let (file, id) = (&region.name, &region.build_id);
    let address = symbols.image_address(file, id, place.offset())?;
    let span = symbols.function(file, id, address)?;
    let lo = place.0.checked_sub(address.checked_sub(span.start)?)?;
    let hi = lo.checked_add(span.size.max(1) - 1)?;
    (Place(lo).slot() == place.slot() && Place(hi).slot() == place.slot()).then_some((span.name, lo, hi))
}
