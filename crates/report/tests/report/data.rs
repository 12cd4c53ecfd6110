//! Names and totals of data: what a wide range holds, and what no total has.

use sonde_place::{Kind as RegionKind, Place, Region};
use sonde_rap::{Config, Tree};
use sonde_report::{Options, Section, report};
use sonde_summary::{Kind, Ranges, Trees, Unit};
use sonde_symbol::Symbols;

use crate::made_up::{Built, kept, kept_of, run, text, tree};

/// Four arrays beside each other: a range over all of them is named by how many were used and by the heaviest, not by the
/// one that it begins in.
#[test]
fn a_range_of_many_objects_is_named_by_its_module() {
    let folder = tempfile::tempdir().unwrap();
    let source = "int a0[256], a1[256], a2[256], a3[256];\nint main(int n, char **v) { (void)v; return a0[n] + a1[n] + a2[n] + a3[n]; }\n";
    std::fs::write(folder.path().join("source.c"), source).unwrap();
    run("cc", &["-g", "-O1", "-o", "program", "source.c"], folder.path());
    let built = Built::of(folder);
    let (mut kept, module) = kept_of(&built);
    let heap =
        kept.regions.number(&Region { kind: RegionKind::Heap, name: "[heap]".into(), build_id: Vec::new() });
    let mut named = |weights: &[u64], on_heap: u64| {
        let at = |i: usize| Place::new(module, built.at(&format!("a{i}")).0).0;
        let mut points: Vec<(u64, u64)> =
            weights.iter().enumerate().flat_map(|(i, w)| [(at(i), *w), (at(i) + 512, *w)]).collect();
        points.push((Place::new(heap, 64).0, on_heap));
        points.retain(|(_, weight)| *weight > 0);
        let ranges = Ranges { kind: Kind::LoadAddresses, unit: Unit::Events, events: 8, tree: tree(&points) };
        kept.ranges = vec![ranges];
        // No single address is that hot.
        let options = Options { hot: 0.95, ..Options::default() };
        let view = report(&kept.subject(), &mut Symbols::new(), &options).ranges.remove(0);
        view.hot[0].sides[0].clone()
    };
    let even = named(&[20, 30, 28, 22], 0);
    assert_eq!(even.name, "program: 4 objects, most in .bss a1", "{even:?}");
    assert_eq!(even.variable, None);
    let skewed = named(&[85, 6, 5, 5], 0);
    assert_eq!(skewed.name, "program:.bss a0 and 3 more", "{skewed:?}");
    let spread = named(&[85, 6, 5, 5], 100);
    assert_eq!(spread.name, "2 regions, most in program", "{spread:?}");
    assert_eq!((spread.kind, spread.region), (None, None));
}

/// What lies in ranges of several objects is told with what that means for a share, and only if there is any.
#[test]
fn what_no_total_has_is_told_once() {
    let built = Built::new();
    let mut kept = kept(&built, Unit::Events);
    let exact = text(&kept.report(), &[Section::Data], 100);
    assert!(!exact.contains("too low") && !exact.contains("several"), "{exact}");
    let mut coarse = Tree::<u64>::new(Config::new().eps(0.2)).unwrap();
    for i in 0..4000u64 {
        let variable = if i % 3 == 0 { "table" } else { "other" };
        coarse.add_weighted(Place::new(1, built.at(variable).0 + (i * 37) % 4000).0, 1);
    }
    let tree = Trees::One(coarse.snapshot());
    kept.ranges = vec![Ranges { kind: Kind::LoadAddresses, unit: Unit::Events, events: 4000, tree }];
    let report = kept.report();
    let data = report.data.as_ref().unwrap();
    assert!(data.in_several > 0.001, "{data:?}");
    let low = data.objects.iter().map(|o| o.both.share_at_most - o.both.share).fold(0.0, f64::max);
    let shown = text(&report, &[Section::Data], 100).split_whitespace().collect::<Vec<_>>().join(" ");
    let (several, low) =
        (format!("{:.1} % lie in ranges", data.in_several * 100.0), format!("{:.1} %", low * 100.0));
    assert!(shown.contains(&several), "{shown}");
    assert!(shown.ends_with(&format!("makes its share too low by at most {low}")), "{shown}");
    assert_eq!(shown.matches("too low").count(), 1, "{shown}");
}

/// What the system put right behind a module is not the module's.
#[test]
fn memory_behind_a_module_is_not_taken_for_its_own() {
    let built = Built::new();
    let mut kept = kept(&built, Unit::Events);
    let (table, behind) = (Place::new(1, built.at("table").0).0, Place::new(1, 0x20_0000).0);
    let tree = tree(&[(table, 300), (behind, 350), (behind + 64, 350)]);
    kept.ranges = vec![Ranges { kind: Kind::LoadAddresses, unit: Unit::Events, events: 1000, tree }];
    let report = report(&kept.subject(), &mut Symbols::new(), &Options { hot: 0.5, ..Options::default() });
    let row = &report.data.as_ref().unwrap().objects[0];
    assert_eq!((row.name.as_str(), row.kind), ("anonymous memory behind program", "anonymous"));
    assert!((row.both.share - 0.7).abs() < 1e-9 && row.section.is_none(), "{row:?}");
    let range = &report.ranges[0].hot[0].sides[0];
    assert!(range.name.starts_with("anonymous memory behind program, "), "{range:?}");
}
