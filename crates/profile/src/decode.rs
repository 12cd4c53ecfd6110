//! From the parts of a file to a profile. Nothing is trusted: the whole is checked before it is handed out.

use crate::analyses::{
    MOST_LOOPS, decode_calls, decode_loop, decode_loops, decode_starts, decode_streams, decode_values,
};
use crate::error::ProfileError;
use crate::profile::{Profile, Totals};
use crate::run::{Ending, Run};
use crate::timeline::{Interval, Timeline};
use crate::{trees, wire};
use prost::Message;
use sonde_calls::CallProfile;
use sonde_event::Counts;
use sonde_event::trace::Machine;
use sonde_loops::{LoopStats, LoopsProfile};
use sonde_place::{Kind as RegionKind, Place, Region, Regions};
use sonde_starts::StartsProfile;
use sonde_streams::StreamsProfile;
use sonde_summary::{BlockWeight, Bursts, CacheCounts, Memory, Missing, Summary};
use sonde_values::ValueProfile;

/// Numbers of the fields of `Profile` in the schema.
mod field {
    pub const HEAD: u32 = 1;
    pub const RUN: u32 = 2;
    pub const REGION: u32 = 3;
    pub const TREE: u32 = 4;
    pub const COUNTS: u32 = 5;
    pub const CACHE: u32 = 6;
    pub const BURSTS: u32 = 7;
    pub const BLOCKS: u32 = 8;
    pub const MISSING: u32 = 9;
    pub const MEMORY: u32 = 10;
    pub const CALLS: u32 = 11;
    pub const STREAMS: u32 = 12;
    pub const LOOPS: u32 = 13;
    pub const LOOP: u32 = 14;
    pub const VALUES: u32 = 15;
    pub const STARTS: u32 = 16;
}

/// A part that is not made of columns has at most this many bytes: messages of many small fields take far more memory than room
/// in the file.
const MOST_PART: u64 = 1 << 20;
/// A tree of the most nodes, each field at its longest.
const MOST_TREE: u64 = Profile::MOST_NODES as u64 * (3 * 10 + 2) + (1 << 10);
/// The longest lists of calls, streams or values, in columns.
const MOST_COLUMNS: u64 = 16 << 20;
/// More parts than any profile has.
const MOST_PARTS: u64 = 1 << 18;

/// The most bytes that a part may have.
pub(crate) fn most_bytes(number: u32) -> u64 {
    match number {
        field::TREE => MOST_TREE,
        field::CALLS | field::STREAMS | field::VALUES | field::STARTS => MOST_COLUMNS,
        _ => MOST_PART,
    }
}

/// Puts parts together.
#[derive(Default)]
pub(crate) struct Assembly {
    head: Option<wire::Head>,
    runs: Vec<Run>,
    regions: Vec<Region>,
    ranges: Vec<sonde_summary::Ranges>,
    counts: Counts,
    cache: Option<CacheCounts>,
    bursts: Bursts,
    blocks: Vec<BlockWeight>,
    missing: Missing,
    memory: Memory,
    starts: Option<StartsProfile>,
    calls: Option<CallProfile>,
    streams: Option<StreamsProfile>,
    loops: Option<LoopsProfile>,
    each_loop: Vec<LoopStats>,
    values: Option<ValueProfile>,
    unknown_parts: u64,
    parts: u64,
}

fn message<M: Message + Default>(bytes: &[u8]) -> Result<M, ProfileError> {
    M::decode(bytes).map_err(|error| ProfileError::damaged(error.to_string()))
}

fn limit(holds: bool, what: &'static str, limit: usize, of: &'static str) -> Result<(), ProfileError> {
    if holds { Ok(()) } else { Err(ProfileError::TooLarge { what, limit: limit as u64, of }) }
}

impl Assembly {
    /// Takes a part: the number of its field and its bytes.
    pub fn part(&mut self, number: u32, bytes: &[u8]) -> Result<(), ProfileError> {
        self.parts += 1;
        limit(self.parts <= MOST_PARTS, "the file", MOST_PARTS as usize, "parts")?;
        match number {
            field::HEAD => self.head = Some(message(bytes)?),
            field::RUN => self.run(bytes)?,
            field::REGION => self.region(bytes)?,
            field::TREE => self.tree(bytes)?,
            field::COUNTS => self.counts = counts(&message(bytes)?),
            field::CACHE => self.cache = Some(cache(&message(bytes)?)?),
            field::BURSTS => self.bursts = bursts(&message(bytes)?),
            field::BLOCKS => self.blocks = blocks(&message(bytes)?)?,
            field::MISSING => self.missing = missing(&message(bytes)?),
            field::MEMORY => self.memory = memory(&message(bytes)?),
            field::STARTS => self.starts = Some(decode_starts(&message(bytes)?)?),
            field::CALLS => self.calls = Some(decode_calls(message(bytes)?)?),
            field::STREAMS => self.streams = Some(decode_streams(&message(bytes)?)?),
            field::LOOPS => self.loops = Some(decode_loops(&message(bytes)?)),
            field::LOOP => self.one_loop(bytes)?,
            field::VALUES => self.values = Some(decode_values(&message(bytes)?)?),
            _ => self.unknown_parts += 1,
        }
        Ok(())
    }

    /// The whole, checked.
    pub fn finish(self) -> Result<Profile, ProfileError> {
        let head = self.head.ok_or_else(|| ProfileError::damaged("its head is missing"))?;
        let regions = Regions::from_parts(self.regions, head.regions_left_out);
        let summary = Summary {
            unit: trees::unit(head.unit)?,
            counts: self.counts,
            bursts: self.bursts,
            ranges: self.ranges,
            blocks: self.blocks,
            regions: regions.ok_or_else(|| ProfileError::damaged("its regions are missing"))?,
            cache: self.cache,
            missing: self.missing,
            memory: self.memory,
        };
        let totals = Totals {
            runs: head.runs,
            bursts: head.bursts,
            cpu_ns: head.cpu_ns,
            wall_ns: head.wall_ns,
            losses: head.losses,
            pooled_by_name: head.pooled_by_name,
        };
        if self.loops.is_none() && !self.each_loop.is_empty() {
            return Err(ProfileError::damaged("what is known about all loops is missing"));
        }
        let profile = Profile {
            totals,
            runs: self.runs,
            summary,
            starts: self.starts,
            calls: self.calls,
            streams: self.streams,
            loops: self.loops.map(|all| LoopsProfile { loops: self.each_loop, ..all }),
            values: self.values,
            unknown_parts: self.unknown_parts,
        };
        profile.check()?;
        Ok(profile)
    }

    fn one_loop(&mut self, bytes: &[u8]) -> Result<(), ProfileError> {
        limit(self.each_loop.len() < MOST_LOOPS, "the list of loops", MOST_LOOPS, "loops")?;
        self.each_loop.push(decode_loop(message(bytes)?)?);
        Ok(())
    }

    fn run(&mut self, bytes: &[u8]) -> Result<(), ProfileError> {
        limit(self.runs.len() < Profile::MOST_RUNS, "the list of runs", Profile::MOST_RUNS, "runs")?;
        self.runs.push(run(message(bytes)?)?);
        Ok(())
    }

    fn region(&mut self, bytes: &[u8]) -> Result<(), ProfileError> {
        limit(self.regions.len() < Regions::MOST, "the list of regions", Regions::MOST, "regions")?;
        let region: wire::Region = message(bytes)?;
        let kind = usize::try_from(region.kind).ok().and_then(|code| RegionKind::ALL.get(code).copied());
        let kind = kind.ok_or_else(|| ProfileError::damaged("a region is of no known kind"))?;
        self.regions.push(Region { kind, name: region.name, build_id: region.build_id });
        Ok(())
    }

    fn tree(&mut self, bytes: &[u8]) -> Result<(), ProfileError> {
        let tree: wire::Tree = message(bytes)?;
        let Some(kind) = trees::kind(&tree) else {
            self.unknown_parts += 1;
            return Ok(());
        };
        limit(tree.own.len() <= Profile::MOST_NODES, "a tree", Profile::MOST_NODES, "nodes")?;
        // Twice the same: one of them would have to win.
        if self.ranges.iter().any(|known| known.kind == kind) {
            return Err(ProfileError::damaged(format!("there are two trees over {}", kind.name())));
        }
        self.ranges.push(trees::decode(kind, &tree)?);
        self.ranges.sort_by_key(|tree| tree.kind);
        Ok(())
    }
}

fn run(run: wire::Run) -> Result<Run, ProfileError> {
    let machine = run.machine.unwrap_or_default();
    Ok(Run {
        recorder: run.recorder,
        command: run.command,
        command_left_out: run.command_left_out,
        path: run.path,
        policy: run.policy,
        record: run.record,
        trigger: run.trigger,
        trigger_note: run.trigger_note,
        loader: run.loader,
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
        machine: Machine {
            processor: machine.processor,
            processors: machine.processors,
            kernel: machine.kernel,
        },
        cpu_ns: run.cpu_ns,
        system_ns: run.system_ns,
        sonde_ns: run.sonde_ns,
        wall_ns: run.wall_ns,
        ending: match run.end {
            None => Ending::Unknown,
            Some(wire::run::End::Status(status)) => Ending::Status(status),
            Some(wire::run::End::Signal(signal)) => Ending::Signal(signal),
        },
        bursts: run.bursts,
        burst_ns: run.burst_ns,
        became: run.became,
        error: run.error,
        counters: run.counters,
        burst_ends: run.burst_ends,
        losses: run.losses,
        timeline: run.timeline.map_or(Ok(Timeline::default()), timeline)?,
    })
}

fn timeline(line: wire::Timeline) -> Result<Timeline, ProfileError> {
    if line.cpu_ns.len() != line.bursts.len() {
        return Err(ProfileError::damaged("the columns of a time line are of different lengths"));
    }
    let intervals = line.cpu_ns.iter().zip(&line.bursts);
    let intervals = intervals.map(|(cpu, bursts)| Interval { cpu_ns: *cpu, bursts: *bursts }).collect();
    Ok(Timeline { interval_ns: line.interval_ns, intervals })
}

fn counts(counts: &wire::Counts) -> Counts {
    Counts {
        bursts: counts.bursts,
        runs: counts.passes,
        blocks: counts.blocks,
        instructions: counts.instructions,
        loads: counts.loads,
        stores: counts.stores,
        without_address: counts.without_address,
        repetitions: counts.repetitions,
        unrecorded: counts.unrecorded,
    }
}

fn cache(cache: &wire::Cache) -> Result<CacheCounts, ProfileError> {
    let (first, second) = (cache.first.unwrap_or_default(), cache.second.unwrap_or_default());
    let geometry = |level: &wire::CacheLevel| sonde_cache::Geometry {
        size: level.bytes,
        ways: level.ways,
        line: level.line_bytes,
    };
    let config = sonde_cache::Config::new(geometry(&first), geometry(&second));
    Ok(CacheCounts {
        config: config.map_err(|error| ProfileError::damaged(format!("cache model: {error}")))?,
        statistics: sonde_cache::Statistics {
            loads: cache.loads,
            first_load_misses: first.load_misses,
            first_load_unknown: first.load_unknown,
            second_load_misses: second.load_misses,
            second_load_unknown: second.load_unknown,
            stores: cache.stores,
            first_store_misses: first.store_misses,
            first_store_unknown: first.store_unknown,
            second_store_misses: second.store_misses,
            second_store_unknown: second.store_unknown,
            first_touches: cache.first_touches,
        },
    })
}

fn bursts(bursts: &wire::Bursts) -> Bursts {
    Bursts {
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

fn blocks(blocks: &wire::Blocks) -> Result<Vec<BlockWeight>, ProfileError> {
    if blocks.place.len() != blocks.bytes.len() || blocks.place.len() != blocks.weight.len() {
        return Err(ProfileError::damaged("the columns of the blocks are of different lengths"));
    }
    let mut at = 0u64;
    let columns = blocks.place.iter().zip(&blocks.bytes).zip(&blocks.weight);
    let block = |((delta, bytes), weight): ((&u64, &u32), &u64)| {
        at = at.wrapping_add(*delta);
        BlockWeight { place: Place(at), bytes: *bytes, weight: *weight }
    };
    Ok(columns.map(block).collect())
}

fn missing(missing: &wire::Missing) -> Missing {
    Missing {
        unplaced_code: missing.unplaced_code,
        unplaced_data: missing.unplaced_data,
        without_address: missing.without_address,
        without_value: missing.without_value,
        conditional: missing.conditional,
        without_target: missing.without_target,
        gaps: missing.gaps,
    }
}

fn memory(memory: &wire::Memory) -> Memory {
    Memory { limit: memory.limit, used: memory.used }
}
