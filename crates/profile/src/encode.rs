//! From a profile to the parts of its file.

use crate::analyses::{
    encode_calls, encode_loop, encode_loops, encode_starts, encode_streams, encode_values,
};
use crate::profile::Profile;
use crate::run::{Ending, Run};
use crate::timeline::Timeline;
use crate::{trees, wire};
use sonde_event::Counts;
use sonde_place::Region;
use sonde_summary::{BlockWeight, Bursts, CacheCounts, Missing, Summary};

/// The parts, one after the other. Each is a whole message with one field set: put together they are all one message.
pub(crate) fn parts(profile: &Profile) -> impl Iterator<Item = wire::Profile> {
    let summary = &profile.summary;
    let one = wire::Profile {
        head: Some(head(profile)),
        counts: Some(counts(&summary.counts)),
        cache: summary.cache.as_ref().map(cache),
        bursts: Some(bursts(&summary.bursts)),
        blocks: Some(blocks(&summary.blocks)),
        missing: Some(missing(&summary.missing)),
        memory: Some(wire::Memory { limit: summary.memory.limit, used: summary.memory.used }),
        starts: profile.starts.as_ref().map(encode_starts),
        calls: profile.calls.as_ref().map(encode_calls),
        streams: profile.streams.as_ref().map(encode_streams),
        loops: profile.loops.as_ref().map(encode_loops),
        values: profile.values.as_ref().map(encode_values),
        ..wire::Profile::default()
    };
    let runs = profile.runs.iter().map(|r| wire::Profile { runs: vec![run(r)], ..Default::default() });
    let regions = regions(summary);
    let trees = summary.ranges.iter().map(trees::encode);
    let trees = trees.map(|tree| wire::Profile { trees: vec![tree], ..Default::default() });
    let loops = profile.loops.iter().flat_map(|loops| &loops.loops).map(encode_loop);
    let loops = loops.map(|one| wire::Profile { r#loop: vec![one], ..Default::default() });
    std::iter::once(one).chain(loops).chain(runs).chain(regions).chain(trees)
}

fn head(profile: &Profile) -> wire::Head {
    let totals = &profile.totals;
    wire::Head {
        writer: env!("CARGO_PKG_VERSION").into(),
        runs: totals.runs,
        bursts: totals.bursts,
        cpu_ns: totals.cpu_ns,
        wall_ns: totals.wall_ns,
        losses: totals.losses.clone(),
        regions_left_out: profile.summary.regions.left_out(),
        pooled_by_name: totals.pooled_by_name,
        unit: profile.summary.unit as i32,
    }
}

fn run(run: &Run) -> wire::Run {
    wire::Run {
        recorder: run.recorder.clone(),
        command: run.command.clone(),
        path: run.path.clone(),
        policy: run.policy.clone(),
        record: run.record.clone(),
        trigger: run.trigger.clone(),
        trigger_note: run.trigger_note.clone(),
        loader: run.loader.clone(),
        period_ns: run.period_ns,
        burst_checks: run.burst_checks,
        gap_checks: run.gap_checks,
        rate: run.rate,
        max_overhead: run.max_overhead,
        mean_period_ns: run.mean_period_ns,
        bursts_left_out: run.bursts_left_out,
        random_gap: run.random_gap,
        seed: run.seed,
        started_ms: run.started_ms,
        machine: Some(wire::Machine {
            processor: run.machine.processor.clone(),
            processors: run.machine.processors,
            kernel: run.machine.kernel.clone(),
        }),
        cpu_ns: run.cpu_ns,
        system_ns: run.system_ns,
        sonde_ns: run.sonde_ns,
        wall_ns: run.wall_ns,
        bursts: run.bursts,
        burst_ns: run.burst_ns,
        became: run.became.clone(),
        error: run.error.clone(),
        counters: run.counters.clone(),
        burst_ends: run.burst_ends.clone(),
        losses: run.losses.clone(),
        timeline: Some(timeline(&run.timeline)),
        command_left_out: run.command_left_out,
        end: match run.ending {
            Ending::Unknown => None,
            Ending::Status(status) => Some(wire::run::End::Status(status)),
            Ending::Signal(signal) => Some(wire::run::End::Signal(signal)),
        },
    }
}

fn timeline(line: &Timeline) -> wire::Timeline {
    wire::Timeline {
        interval_ns: line.interval_ns,
        cpu_ns: line.intervals.iter().map(|interval| interval.cpu_ns).collect(),
        bursts: line.intervals.iter().map(|interval| interval.bursts).collect(),
    }
}

fn regions(summary: &Summary) -> impl Iterator<Item = wire::Profile> {
    let region = |region: &Region| wire::Region {
        kind: region.kind as i32,
        name: region.name.clone(),
        build_id: region.build_id.clone(),
    };
    let all = summary.regions.all().iter().map(region);
    all.map(|region| wire::Profile { regions: vec![region], ..Default::default() })
}

fn counts(counts: &Counts) -> wire::Counts {
    wire::Counts {
        bursts: counts.bursts,
        passes: counts.runs,
        blocks: counts.blocks,
        instructions: counts.instructions,
        loads: counts.loads,
        stores: counts.stores,
        without_address: counts.without_address,
        repetitions: counts.repetitions,
        unrecorded: counts.unrecorded,
    }
}

fn cache(cache: &CacheCounts) -> wire::Cache {
    let counted = &cache.statistics;
    let level = |geometry: sonde_cache::Geometry| wire::CacheLevel {
        bytes: geometry.size,
        ways: geometry.ways,
        line_bytes: geometry.line,
        ..wire::CacheLevel::default()
    };
    let first = wire::CacheLevel {
        load_misses: counted.first_load_misses,
        load_unknown: counted.first_load_unknown,
        store_misses: counted.first_store_misses,
        store_unknown: counted.first_store_unknown,
        ..level(cache.config.first())
    };
    let second = wire::CacheLevel {
        load_misses: counted.second_load_misses,
        load_unknown: counted.second_load_unknown,
        store_misses: counted.second_store_misses,
        store_unknown: counted.second_store_unknown,
        ..level(cache.config.second())
    };
    wire::Cache {
        first: Some(first),
        second: Some(second),
        loads: counted.loads,
        stores: counted.stores,
        first_touches: counted.first_touches,
    }
}

fn bursts(bursts: &Bursts) -> wire::Bursts {
    wire::Bursts {
        count: bursts.count,
        empty: bursts.empty,
        thinned: bursts.thinned,
        time: bursts.time,
        kernel_time: bursts.kernel_time,
        squares: bursts.squares,
        reference_time: bursts.reference_time,
        reference_squares: bursts.reference_squares,
    }
}

fn blocks(blocks: &[BlockWeight]) -> wire::Blocks {
    let mut before = 0u64;
    let delta =
        |block: &BlockWeight| block.place.0.wrapping_sub(std::mem::replace(&mut before, block.place.0));
    wire::Blocks {
        place: blocks.iter().map(delta).collect(),
        bytes: blocks.iter().map(|block| block.bytes).collect(),
        weight: blocks.iter().map(|block| block.weight).collect(),
    }
}

fn missing(missing: &Missing) -> wire::Missing {
    wire::Missing {
        unplaced_code: missing.unplaced_code,
        unplaced_data: missing.unplaced_data,
        without_address: missing.without_address,
        without_value: missing.without_value,
        conditional: missing.conditional,
        without_target: missing.without_target,
        gaps: missing.gaps,
    }
}
