//! The model against a naive one that follows the definition: each set a list, the most recently used line last.

use proptest::prelude::*;
use sonde_cache::{Bounds, Cache, Config, Found, Geometry};
use std::collections::{BTreeMap, BTreeSet};

struct Naive {
    geometry: Geometry,
    sets: BTreeMap<u64, Vec<u64>>,
}

impl Naive {
    fn new(geometry: Geometry) -> Naive {
        Naive { geometry, sets: BTreeMap::new() }
    }

    fn touch(&mut self, address: u64) -> bool {
        let line = address / u64::from(self.geometry.line);
        let set = self.sets.entry(line % self.geometry.sets()).or_default();
        let held = set.iter().position(|&l| l == line);
        if let Some(place) = held {
            set.remove(place);
        }
        set.push(line);
        if set.len() > self.geometry.ways as usize {
            set.remove(0);
        }
        held.is_some()
    }
}

/// All addresses of a reference, byte by byte, line by line.
fn found(first: &mut Naive, second: &mut Naive, address: u64, size: u64) -> Found {
    let line = u64::from(first.geometry.line);
    let lines: BTreeSet<u64> = (address..address + size.max(1)).map(|a| a / line * line).collect();
    let one = |at: u64| match (first.touch(at), ()) {
        (true, ()) => Found::First,
        (false, ()) if second.touch(at) => Found::Second,
        _ => Found::Memory,
    };
    lines.into_iter().map(one).max().unwrap()
}

fn geometries() -> impl Strategy<Value = Config> {
    let level = |lines: std::ops::Range<u32>| (0..5u32, 1..9u32, lines);
    (level(3..6), level(5..8)).prop_map(|(a, b)| {
        let geometry = |(sets, ways, line): (u32, u32, u32)| Geometry {
            size: u64::from(ways) << (sets + line),
            ways,
            line: 1 << line,
        };
        Config::new(geometry(a), geometry(b)).unwrap()
    })
}

proptest! {
    #[test]
    fn agrees_with_the_definition(
        config in geometries(),
        // Few lines, so that sets fill and lines come back.
        references in prop::collection::vec((0..2048u64, 0..70u64, any::<bool>()), 1..600),
    ) {
        let mut cache = Cache::new(&config);
        let (mut first, mut second) = (Naive::new(config.first()), Naive::new(config.second()));
        let mut misses = [0u64; 2];
        let mut touched = BTreeSet::new();
        for &(address, size, write) in &references {
            let expected = found(&mut first, &mut second, address, size);
            let got = if write { cache.store(address, size) } else { cache.load(address, size) };
            prop_assert_eq!(got, Bounds::known(expected));
            misses[0] += u64::from(expected > Found::First);
            misses[1] += u64::from(expected == Found::Memory);
            touched.extend((address..address + size.max(1)).map(|a| a / u64::from(config.second().line)));
        }
        let s = cache.statistics();
        prop_assert_eq!(s.loads + s.stores, references.len() as u64);
        prop_assert_eq!([s.first_load_misses + s.first_store_misses, s.second_load_misses + s.second_store_misses], misses);
        prop_assert_eq!(s.first_load_unknown + s.first_store_unknown + s.second_load_unknown + s.second_store_unknown, 0);
        // Of so few lines none shares a bit of the table.
        prop_assert_eq!(s.first_touches, touched.len() as u64);
    }
}

#[test]
fn contents_survive_and_the_oldest_line_goes() {
    let config = Config::parse("128:2:64,256:4:64").unwrap();
    let mut cache = Cache::new(&config);
    let lines = [0x000, 0x040, 0x000, 0x080];
    let memory = Bounds::known(Found::Memory);
    assert!(lines.map(|a| cache.load(a, 1)).iter().filter(|f| **f == memory).count() == 3);
    assert_eq!(cache.load(0x000, 1), Bounds::known(Found::First), "used after the line that went");
    assert_eq!(cache.load(0x040, 1), Bounds::known(Found::Second));
}

#[test]
fn any_claim_is_followed_only_so_far() {
    let mut cache = Cache::new(&Config::default());
    assert_eq!(cache.store(u64::MAX - 3, 100), Bounds::known(Found::Memory));
    assert_eq!(cache.load(0, u64::MAX), Bounds::known(Found::Memory));
}
