//! Two samples of the same are the same; what changed is found, and nothing around it.

mod common;

use common::{Random, place, profile, regions};
use sonde_place::{Kind as RegionKind, OFFSET_BITS, Place, Regions};
use sonde_profile::diff::{Diff, DiffOptions, Pair, Stretch};
use sonde_profile::{Profile, ProfileError, Run};
use sonde_rap::{Config, Tree};
use sonde_summary::{Bursts, Kind, Ranges, Summary, Trees, Unit};

const PROGRAM: &str = "/opt/program";
const LIBRARY: &str = "/lib/libc.so.6";
/// What a burst stands for.
const TIME: u64 = 10_000_000;

/// A program of a few functions: where they begin, and how much of the time each takes, in percent.
type Functions = [(&'static str, u64, u64)];

const OLD: &Functions =
    &[(PROGRAM, 0x1000, 40), (PROGRAM, 0x1400, 10), (PROGRAM, 0x2000, 20), (LIBRARY, 0x9000, 30)];
const NEW: &Functions =
    &[(PROGRAM, 0x1000, 10), (PROGRAM, 0x1400, 40), (PROGRAM, 0x2000, 20), (LIBRARY, 0x9000, 30)];

/// A run in bursts, each in one function, which is the worst case for a sample.
fn sampled(seed: u64, bursts: u64, functions: &Functions) -> Profile {
    let mut random = Random(seed);
    let regions = regions(seed);
    let mut code = Tree::<u64>::new(Config::new().eps(0.005)).unwrap();
    let mut events = 0;
    for _ in 0..bursts {
        let mut draw = random.below(100);
        let within = functions.iter().find(|(_, _, percent)| {
            let hit = draw < *percent;
            draw = draw.wrapping_sub(*percent);
            hit
        });
        let (module, at, _) = within.expect("percents add up");
        for _ in 0..20 {
            code.add_weighted(place(&regions, module, at + random.below(16) * 4), TIME / 20);
            events += 1;
        }
    }
    let ranges =
        vec![Ranges { kind: Kind::Code, unit: Unit::Picoseconds, events, tree: Trees::One(code.snapshot()) }];
    let base = profile(seed, 10, &Config::new());
    let run = Run { bursts, timeline: Default::default(), ..base.runs[0].clone() };
    let counted = Bursts { count: bursts, time: bursts * TIME, ..Bursts::default() };
    let summary = Summary {
        unit: Unit::Picoseconds,
        ranges,
        regions,
        bursts: counted,
        blocks: Vec::new(),
        ..base.summary
    };
    let made = Profile::of_run(run, summary);
    assert_eq!(made.check(), Ok(()));
    made
}

fn diff(before: &Profile, after: &Profile) -> Diff {
    Pair::new(before, after, DiffOptions::default()).unwrap().diff()
}

#[test]
fn two_samples_of_the_same_show_nothing() {
    for bursts in [5, 50, 500, 3000] {
        for seed in 0..20 {
            let (a, b) = (sampled(seed, bursts, OLD), sampled(1000 + seed, bursts, OLD));
            let changes = &diff(&a, &b).kinds[0].changes;
            assert!(changes.is_empty(), "{bursts} bursts, seed {seed}: {changes:?}");
        }
    }
}

#[test]
fn what_changed_is_found_and_nothing_around_it() {
    // Other numbers of regions in both: it must not matter.
    let (a, b) = (sampled(1, 2000, OLD), sampled(2, 2000, NEW));
    let diff = diff(&a, &b);
    let found: Vec<(u64, bool)> = diff.kinds[0]
        .changes
        .iter()
        .map(|change| {
            assert_eq!(diff.regions.get(Place(change.lo[0])).unwrap().name, PROGRAM);
            assert!(change.hi[0] - change.lo[0] < 0x400, "{change:x?}");
            (Place(change.lo[0]).offset() & !0x3ff, change.shares.apart() > 0.0)
        })
        .collect();
    assert!(found.contains(&(0x1000, false)) && found.contains(&(0x1400, true)), "{found:x?}");
    assert!(found.iter().all(|(at, hotter)| (*at == 0x1000 && !hotter) || (*at == 0x1400 && *hotter)));
    // Pieces of the function, or all of it: together they are what truly changed, as far as it is certain.
    let colder: f64 = diff.kinds[0].changes.iter().map(|c| c.shares.counted().min(0.0)).sum();
    assert!((-0.4..-0.15).contains(&colder), "{colder}");
}

#[test]
fn few_bursts_prove_nothing_and_say_so() {
    let diff = diff(&sampled(1, 10, OLD), &sampled(2, 10, NEW));
    assert!(diff.kinds[0].changes.is_empty());
    assert!(diff.kinds[0].resolution > 0.5);
}

/// The same profile with another build of the program.
fn rebuilt(mut profile: Profile) -> Profile {
    let mut all = profile.summary.regions.all().to_vec();
    let program = all.iter_mut().find(|region| region.name == PROGRAM).unwrap();
    *program = common::region(RegionKind::Module, "/home/me/new/program", &[8, 8, 8]);
    profile.summary.regions = Regions::from_parts(all, 0).unwrap();
    profile
}

fn function(profile: &Profile, at: u64) -> Option<Stretch> {
    let region = profile.summary.regions.get(Place(at))?;
    let offset = Place(at).offset() & !0x3ff;
    let name = format!("{}:{offset:x}", region.name.rsplit('/').next()?);
    let lo = Place::new(Place(at).slot(), offset).0;
    (region.kind == RegionKind::Module && offset < 1 << 20).then_some(Stretch { name, lo, hi: lo + 0x3ff })
}

#[test]
fn another_build_is_compared_by_whole_and_by_name() {
    let (a, b) = (sampled(1, 2000, OLD), rebuilt(sampled(2, 2000, NEW)));
    let pair = Pair::new(&a, &b, DiffOptions::default()).unwrap();
    let (named, compared) = pair.named(&mut |profile, at| function(profile, at));
    let names: Vec<(&str, bool)> = named.iter().map(|n| (n.name.as_str(), n.shares.apart() > 0.0)).collect();
    assert_eq!(compared, 4);
    assert_eq!(names.len(), 2, "{named:?}");
    assert!(names.contains(&("program:1000", false)) && names.contains(&("program:1400", true)), "{names:?}");
    let diff = pair.diff();
    assert_eq!(diff.rebuilt.len(), 1);
    assert!(diff.kinds[0].changes.is_empty(), "the program as a whole takes as much as before");
    const SLOWER: &Functions = &[(PROGRAM, 0x1000, 80), (LIBRARY, 0x9000, 20)];
    let slower = rebuilt(sampled(3, 2000, SLOWER));
    let diff = Pair::new(&a, &slower, DiffOptions::default()).unwrap().diff();
    let changes = &diff.kinds[0].changes;
    let whole =
        changes.iter().find(|c| c.hi[0] - c.lo[0] == (1 << OFFSET_BITS) - 1).expect("the whole module");
    assert_eq!(Place(whole.lo[0]).slot(), diff.rebuilt[0]);
}

#[test]
fn what_cannot_be_compared_is_refused_or_named() {
    let (a, mut b) = (sampled(1, 100, OLD), sampled(2, 100, OLD));
    b.summary.ranges.push(common::ranges(
        &mut Random(1),
        &b.summary.regions.clone(),
        Kind::Edges,
        10,
        &Config::new(),
    ));
    assert_eq!(diff(&a, &b).only_after, [Kind::Edges]);
    b.summary.unit = Unit::Events;
    assert!(matches!(Pair::new(&a, &b, DiffOptions::default()), Err(ProfileError::Units { .. })));
}

#[test]
fn stacks_and_pointers_are_compared_as_wholes() {
    let made = |shift: u64| {
        let regions = regions(0);
        let mut loads = Tree::<u64>::new(Config::new()).unwrap();
        let mut values = Tree::<u64>::new(Config::new()).unwrap();
        for i in 0..10_000u64 {
            loads.add(place(&regions, "[stack]", (1 << 47) - 0x1000 - shift + i % 64 * 8));
            values.add(if i % 2 == 0 { 7 } else { 0x7f12_3456_7000 + shift * 0x100_0000 + i % 64 });
        }
        let mut made = profile(0, 10, &Config::new());
        made.runs[0].policy = "always".into();
        let tree = |kind, mut tree: Tree<u64>| Ranges {
            kind,
            unit: Unit::Events,
            events: 10_000,
            tree: Trees::One(tree.snapshot()),
        };
        made.summary.regions = regions;
        made.summary.ranges = vec![tree(Kind::LoadAddresses, loads), tree(Kind::LoadValues, values)];
        assert_eq!(made.check(), Ok(()));
        made
    };
    let diff = diff(&made(0), &made(0x730));
    assert!(diff.kinds.iter().all(|kind| kind.compared > 0 && kind.changes.is_empty()), "{diff:?}");
}

#[test]
fn a_profile_does_not_differ_from_itself() {
    let all = profile(3, 2000, &Config::new());
    let diff = diff(&all, &all);
    assert_eq!(diff.kinds.len(), Kind::ALL.len());
    assert!(diff.kinds.iter().all(|kind| kind.changes.is_empty()), "{diff:?}");
}

/// A part of a stretch got much hotter, the rest colder by nearly as much: both are changes, and each says by how much it
/// changed itself, so that none is within what chance explains.
#[test]
fn a_change_is_told_with_the_shares_that_were_judged() {
    let made = |heavy: u64, rest: u64| {
        let mut made = sampled(1, 300, OLD);
        let slot = made.summary.regions.all().iter().position(|r| r.name == PROGRAM).unwrap() as u16;
        let mut tree = Tree::<u64>::new(Config::new().eps(0.002)).unwrap();
        tree.add_weighted(Place::new(slot, 0x1000).0, heavy);
        (0..512).for_each(|i| tree.add_weighted(Place::new(slot, 0x1100 + 16 * i).0, rest));
        tree.add_weighted(Place::new(slot, 0x100_0000).0, 100_000 - heavy - 512 * rest);
        let tree = Trees::One(tree.snapshot());
        made.summary.ranges =
            vec![Ranges { kind: Kind::Code, unit: Unit::Picoseconds, events: 100_000, tree }];
        made.summary.bursts.time = 100_000;
        made
    };
    let diff = diff(&made(5_000, 120), &made(60_000, 20));
    let changes = &diff.kinds[0].changes;
    assert!(changes.iter().any(|c| c.is_rest), "{changes:x?}");
    for change in changes {
        assert!(change.shares.apart().abs() > change.shares.noise, "{change:x?}");
    }
    let (up, down): (Vec<&_>, Vec<&_>) = changes.iter().partition(|c| c.shares.apart() > 0.0);
    assert!(up.iter().any(|c| !c.is_rest) && down.iter().any(|c| c.is_rest), "{changes:x?}");
}

/// Functions of which only the beginnings of bursts changed: one waits for memory more often.
#[test]
fn functions_are_compared_by_where_bursts_began() {
    let made = |seed: u64, first: u64| {
        let mut made = sampled(seed, 1000, OLD);
        let slot = made.summary.regions.all().iter().position(|r| r.name == PROGRAM).unwrap() as u16;
        let start = |offset, count| sonde_starts::Start {
            pc: Place::new(slot, offset).0,
            sum: sonde_starts::Sum { count, weight: 10 * count },
        };
        let starts =
            vec![start(0x1004, first / 2), start(0x1010, first - first / 2), start(0x1404, 1000 - first)];
        made.starts = Some(sonde_starts::StartsProfile { starts, ..Default::default() });
        assert_eq!(made.check(), Ok(()));
        made
    };
    let compared = |a: &Profile, b: &Profile| {
        let pair = Pair::new(a, b, DiffOptions::default()).unwrap();
        pair.named_starts(&mut |profile, at| function(profile, at)).unwrap()
    };
    let (old, new) = (made(1, 300), made(2, 700));
    let (changes, count) = compared(&old, &new);
    assert_eq!((changes.len(), count), (2, 2), "{changes:?}");
    let first = changes.iter().find(|c| c.name == "program:1000").unwrap();
    assert!((first.shares.before.lower - 0.3).abs() < 1e-9 && (first.shares.apart() - 0.4).abs() < 1e-9);
    assert!(compared(&old, &made(3, 320)).0.is_empty(), "within chance");
    let without = Profile { starts: None, ..sampled(1, 1000, OLD) };
    let pair = Pair::new(&old, &without, DiffOptions::default()).unwrap();
    assert!(pair.named_starts(&mut |profile, at| function(profile, at)).is_none());
}
