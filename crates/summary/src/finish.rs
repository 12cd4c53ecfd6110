//! From trees that grew to a summary: code is counted out, everything is put in order.

use crate::bank::{Growing, Grown};
use crate::blocks::add_up_light;
use crate::kind::Kind;
use crate::ranges::{Ranges, Trees};
use crate::summaries::Summaries;
use crate::summary::{BlockWeight, CacheCounts, Memory, Summary};
use crate::unit::Unit;
use sonde_event::Catalog;
use sonde_place::Place;

/// Puts a summary together; `own_bytes` is what the reader itself used.
pub(crate) fn summary(mut from: Summaries, mut grown: Grown, own_bytes: usize, catalog: &Catalog) -> Summary {
    let unit = if from.config.burst_time.is_some() { Unit::Picoseconds } else { Unit::Events };
    let blocks = match unit {
        Unit::Picoseconds => add_samples(&mut from, &mut grown),
        Unit::Events => {
            add_code(&mut from, &mut grown, catalog);
            blocks(&mut from, catalog)
        }
    };
    add_edges(&mut from, &mut grown, catalog);
    let memory = Memory { limit: from.config.max_memory as u64, used: (own_bytes + grown.memory) as u64 };
    let one =
        grown.one.into_iter().map(|mut g| ranges(unit, g.kind, g.events, Trees::One(g.tree.snapshot())));
    let two =
        grown.two.into_iter().map(|mut g| ranges(unit, g.kind, g.events, Trees::Two(g.tree.snapshot())));
    let mut all: Vec<Ranges> = one.chain(two).collect();
    all.sort_by_key(|ranges| ranges.kind);
    Summary {
        unit,
        counts: from.counts(),
        bursts: from.bursts,
        ranges: all,
        blocks,
        regions: from.places.regions().clone(),
        cache: grown.cache.map(|statistics| CacheCounts { config: from.config.cache, statistics }),
        missing: from.missing,
        memory,
    }
}

fn ranges(unit: Unit, kind: Kind, events: u64, tree: Trees) -> Ranges {
    Ranges { kind, unit, events, tree }
}

/// The trees over code count instructions as events; an event of a block is one pass through it.
fn add_code(from: &mut Summaries, grown: &mut Grown, catalog: &Catalog) {
    let Some(tree) = find(&mut grown.one, Kind::Code) else { return };
    from.code.blocks(catalog, &mut from.places, |block| {
        tree.tree.add_weighted(block.place, block.weight);
    });
    tree.events = from.counts().blocks;
}

fn add_edges(from: &mut Summaries, grown: &mut Grown, catalog: &Catalog) {
    let Some(tree) = find(&mut grown.two, Kind::Edges) else { return };
    from.code.edges(catalog, &mut from.places, |edge, passes, weight| {
        tree.tree.add_weighted(edge, weight);
        tree.events = tree.events.saturating_add(passes);
    });
}

fn find<K: sonde_rap::Key>(all: &mut [Growing<K>], kind: Kind) -> Option<&mut Growing<K>> {
    all.iter_mut().find(|growing| growing.kind == kind)
}

/// The instructions that bursts began at have the time that these stand for.
fn add_samples(from: &mut Summaries, grown: &mut Grown) -> Vec<BlockWeight> {
    let samples = from.samples.finish();
    if let Some(tree) = find(&mut grown.one, Kind::Code) {
        for (place, sample) in &samples {
            tree.tree.add_weighted(*place, sample.weight);
            tree.events += sample.count;
        }
    }
    let weight = |(place, sample): (u64, crate::samples::Sample)| BlockWeight {
        place: Place(place),
        bytes: 1,
        weight: sample.weight,
    };
    let mut all = samples.into_iter().map(weight).collect();
    add_up_light(&mut all, Summary::MOST_BLOCKS);
    all
}

fn blocks(from: &mut Summaries, catalog: &Catalog) -> Vec<BlockWeight> {
    let mut all: Vec<BlockWeight> = Vec::new();
    from.code.blocks(catalog, &mut from.places, |block| {
        all.push(BlockWeight { place: Place(block.place), bytes: block.bytes, weight: block.weight });
    });
    let beyond = from.code.blocks_beyond();
    all.extend(beyond.iter().map(|b| BlockWeight {
        place: Place(b.place),
        bytes: b.bytes,
        weight: b.weight,
    }));
    all.sort_unstable();
    all.dedup_by(|next, first| {
        let same = next.place == first.place;
        if same {
            first.weight = first.weight.saturating_add(next.weight);
            first.bytes = first.bytes.max(next.bytes);
        }
        same
    });
    add_up_light(&mut all, Summary::MOST_BLOCKS);
    all
}
