//! The reader of the stream: it gives every event its place and its weight, and hands them to the trees.

use crate::batch::{Batch, Event};
use crate::bursts::Bursts;
use crate::code::{Code, branch_of_exit};
use crate::config::{BurstTime, Config, Shares};
use crate::crew::Crew;
use crate::error::SummaryError;
use crate::finish;
use crate::kind::Kind;
use crate::open::{Open, Random};
use crate::pending::Pending;
use crate::reference;
use crate::summary::{Missing, Summary};
use sonde_event::maps::Mapping;
use sonde_event::{Access, Begin, Catalog, Count, Counts, End, Reader, Run};
use sonde_place::Places;
use std::collections::HashMap;

/// Fewest references that an open burst may keep, however many bursts are open.
const LEAST_OPEN: usize = 1 << 10;
/// Emptied bursts whose memory is kept for later ones.
const SPARE: usize = 8;

/// Makes summaries of a stream.
pub struct Summaries {
    pub(crate) config: Config,
    shares: Shares,
    count: Count,
    pub(crate) bursts: Bursts,
    pub(crate) missing: Missing,
    pub(crate) places: Places,
    pub(crate) code: Code,
    pending: Pending,
    crew: Crew,
    /// What waits for a batch to be full, where events count as they are.
    batch: Batch,
    /// Bursts under way, by thread, where each burst has its weight.
    open: HashMap<i32, Open>,
    spare: Vec<Open>,
    /// The burst of the thread that was read last, taken out of `open`.
    current: Option<(i32, Open)>,
    random: Random,
    /// Most references in an open burst now.
    cap: usize,
    wants: Wants,
}

/// What the chosen kinds need.
#[derive(Clone, Copy)]
struct Wants {
    references: bool,
    edges: bool,
}

impl Summaries {
    /// Nothing seen yet.
    pub fn new(config: Config) -> Result<Summaries, SummaryError> {
        let shares = config.shares()?;
        let of_code = |kind: &Kind| matches!(kind, Kind::Code | Kind::Edges);
        let wants = Wants {
            references: !config.what.kinds().iter().all(of_code),
            edges: config.what.has(Kind::Edges),
        };
        Ok(Summaries {
            crew: Crew::new(&config, &shares)?,
            code: Code::new(shares.exits),
            pending: Pending::new(shares.pending),
            config,
            shares,
            count: Count::default(),
            bursts: Bursts::default(),
            missing: Missing::default(),
            places: Places::new(),
            batch: Batch { weight: 1, ..Batch::default() },
            open: HashMap::new(),
            spare: Vec::new(),
            current: None,
            random: Random::default(),
            cap: shares.open,
            wants,
        })
    }

    /// Exact totals so far.
    pub fn counts(&self) -> Counts {
        self.count.counts
    }

    /// The place of an address, as far as the mappings seen so far tell.
    pub fn place(&mut self, address: u64) -> u64 {
        self.places.place(address).0
    }

    /// Bytes used by this thread's part.
    pub fn memory_bytes(&self) -> usize {
        self.own_bytes() + self.crew.memory_bytes()
    }

    fn own_bytes(&self) -> usize {
        let open = self.open.values().chain(&self.spare).chain(self.current.as_ref().map(|c| &c.1));
        self.code.memory_bytes()
            + self.places.memory_bytes()
            + self.pending.memory_bytes()
            + self.batch.memory_bytes()
            + open.map(Open::memory_bytes).sum::<usize>()
    }

    /// Ends it all: bursts that are still open end here.
    pub fn finish(mut self, catalog: &Catalog) -> Summary {
        self.park();
        let mut threads: Vec<i32> = self.open.keys().copied().collect();
        threads.sort_unstable();
        for tid in threads {
            if let Some(open) = self.open.remove(&tid) {
                self.close(open);
            }
        }
        self.hand_on();
        self.give_up_pending();
        let own = self.own_bytes();
        let crew = std::mem::replace(&mut self.crew, Crew::idle());
        finish::summary(self, crew.finish(), own, catalog)
    }

    /// Hands the common batch to the trees.
    fn hand_on(&mut self) {
        let mut batch = std::mem::take(&mut self.batch);
        self.send(&mut batch);
        self.batch = batch;
        self.batch.weight = 1;
    }

    /// Places what is in a batch and hands it to the trees. It comes back empty.
    fn send(&mut self, batch: &mut Batch) {
        self.place_pending();
        self.pending.place(batch, &mut self.places, &mut self.missing);
        if !batch.is_empty() {
            self.crew.take(batch);
        }
    }

    /// New mappings may tell where older references went.
    fn place_pending(&mut self) {
        for mut batch in self.pending.retry(&mut self.places) {
            self.crew.take(&mut batch);
        }
    }

    fn give_up_pending(&mut self) {
        for mut batch in self.pending.give_up(&mut self.places, &mut self.missing) {
            self.crew.take(&mut batch);
        }
    }

    /// Makes the burst of a thread the current one.
    fn turn_to(&mut self, tid: i32) -> &mut Open {
        if self.current.as_ref().is_none_or(|current| current.0 != tid) {
            self.park();
            let open = self.open.remove(&tid).unwrap_or_else(|| self.fresh());
            self.current = Some((tid, open));
            self.set_cap();
        }
        &mut self.current.get_or_insert_with(|| (tid, Open::default())).1
    }

    fn fresh(&mut self) -> Open {
        let mut open = self.spare.pop().unwrap_or_default();
        open.restart();
        open
    }

    fn park(&mut self) {
        if let Some((tid, open)) = self.current.take() {
            self.open.insert(tid, open);
        }
    }

    /// Many threads have to share the memory for open bursts.
    fn set_cap(&mut self) {
        self.cap = (self.shares.open / (self.open.len() + 1)).max(LEAST_OPEN);
    }

    /// A burst is over: its time is divided among what it recorded.
    fn close(&mut self, mut open: Open) {
        let time = self.config.burst_time.as_ref().map_or(0, BurstTime::picoseconds);
        let time = open.picoseconds.unwrap_or(time);
        let weight = self.bursts.weigh(time, open.instructions);
        for (exit, times) in open.passes() {
            self.code.add(*exit, u64::from(*times), weight);
        }
        let mut batch = std::mem::take(&mut open.batch);
        // Blocks and edges are never thinned out.
        if open.stands_for() > 1 {
            self.bursts.thinned += 1;
            let mut events = Batch { events: std::mem::take(&mut batch.events), ..Batch::default() };
            events.weight = weight.saturating_mul(open.stands_for());
            self.send(&mut events);
        }
        batch.weight = weight;
        self.send(&mut batch);
        open.batch = batch;
        if self.spare.len() < SPARE {
            self.spare.push(open);
        }
    }

    /// Where events count as they are.
    fn run_unweighted(&mut self, run: &Run<'_>) {
        let delta = self.code.delta(run, &mut self.places);
        match run.exit().filter(|exit| self.code.has_room_for(*exit)) {
            Some(exit) => self.code.add(exit, 1, 1),
            None => push_blocks(run, delta, &mut self.batch),
        }
        self.missing.unplaced_code += if delta.is_none() { u64::from(run.path.blocks) } else { 0 };
        if self.wants.edges && run.path.target == 0 {
            push_edge(run, delta, &mut self.places, &mut self.batch, &mut self.missing);
        }
        if self.wants.references {
            let (batch, missing) = (&mut self.batch, &mut self.missing);
            match run.plain_references() {
                Some(plain) => {
                    let delta = delta.unwrap_or(0);
                    missing.without_value += u64::from(run.path.unknown_loads);
                    batch.events.extend(plain.map(|r| reference::plain(&r, delta)));
                }
                None => push_references(run, delta, missing, |event| batch.events.push(event)),
            }
        }
        if self.batch.is_full() {
            self.hand_on();
        }
    }

    fn run_in_burst(&mut self, run: &Run<'_>) {
        self.turn_to(run.tid);
        let Some((_, open)) = &mut self.current else { return };
        let delta = self.code.delta(run, &mut self.places);
        open.instructions += run.instructions();
        match run.exit().filter(|exit| self.code.has_room_for(*exit)) {
            Some(exit) => open.pass(exit),
            None => push_blocks(run, delta, &mut open.batch),
        }
        self.missing.unplaced_code += if delta.is_none() { u64::from(run.path.blocks) } else { 0 };
        if self.wants.edges && run.path.target == 0 {
            push_edge(run, delta, &mut self.places, &mut open.batch, &mut self.missing);
        }
        if self.wants.references {
            let (cap, random, missing) = (self.cap, &mut self.random, &mut self.missing);
            match run.plain_references() {
                Some(plain) => {
                    let delta = delta.unwrap_or(0);
                    missing.without_value += u64::from(run.path.unknown_loads);
                    open.extend(plain.map(|r| reference::plain(&r, delta)), cap, random);
                }
                None => push_references(run, delta, missing, |event| open.push(event, cap, random)),
            }
        }
    }
}

impl Reader for Summaries {
    fn begin(&mut self, begin: &Begin) {
        self.count.begin(begin);
        self.bursts.count += 1;
        if self.config.burst_time.is_some() {
            // An older burst of the thread whose end was lost.
            self.end_burst(begin.tid);
            self.turn_to(begin.tid);
        }
    }

    fn pace(&mut self, tid: i32, period_ns: u64) {
        if self.config.burst_time.is_some() {
            self.turn_to(tid).picoseconds = Some(period_ns.saturating_mul(1000));
        }
    }

    fn run(&mut self, run: &Run<'_>) {
        self.count.run(run);
        if self.config.burst_time.is_some() {
            self.run_in_burst(run);
        } else {
            self.run_unweighted(run);
        }
    }

    fn end(&mut self, end: &End) {
        if self.config.burst_time.is_some() {
            self.end_burst(end.tid);
        }
    }

    fn mapping(&mut self, mapping: &Mapping) {
        // What was recorded before belongs to what lay there before.
        if self.config.burst_time.is_none() {
            self.hand_on();
        }
        self.places.map(mapping);
        self.pending.news();
    }

    fn wants_mappings(&self) -> bool {
        self.pending.is_waiting()
    }

    fn gap(&mut self) {
        self.missing.gaps += 1;
    }
}

impl Summaries {
    fn end_burst(&mut self, tid: i32) {
        let current = self.current.take_if(|current| current.0 == tid).map(|current| current.1);
        if let Some(open) = current.or_else(|| self.open.remove(&tid)) {
            self.close(open);
        }
    }
}

/// The address moved to its place; an address of code in no known mapping stands for itself.
#[inline(always)]
fn moved(pc: u64, delta: Option<u64>) -> u64 {
    pc.wrapping_add(delta.unwrap_or(0))
}

/// Blocks of a pass that has no number in the table of exits: one that was cut short, for the most part.
fn push_blocks(run: &Run<'_>, delta: Option<u64>, batch: &mut Batch) {
    let blocks = run.blocks().map(|block| (moved(block.block.pc, delta), u64::from(block.insns)));
    batch.blocks.extend(blocks);
}

/// The branch that ends a pass, if only the log tells where it led.
fn push_edge(
    run: &Run<'_>,
    delta: Option<u64>,
    places: &mut Places,
    batch: &mut Batch,
    missing: &mut Missing,
) {
    let Some(from) = branch_of_exit(run.path, run.superblock) else { return };
    match run.next_pc {
        Some(to) => batch.edges.push([moved(from, delta), places.place(to).0]),
        None => missing.without_target += 1,
    }
}

/// References of a pass that are not all plain.
fn push_references(run: &Run<'_>, delta: Option<u64>, missing: &mut Missing, mut push: impl FnMut(Event)) {
    let delta = delta.unwrap_or(0);
    for (index, r) in run.references().enumerate() {
        push_reference(run, index, &r, r.pc.wrapping_add(delta), missing, &mut push);
    }
}

fn has_more(run: &Run<'_>, index: usize) -> bool {
    run.wide_value(index).iter().skip(1).any(|word| *word != 0)
}

/// A reference that may be repeated, masked or without an address.
fn push_reference(
    run: &Run<'_>,
    index: usize,
    r: &sonde_event::Ref,
    pc: u64,
    missing: &mut Missing,
    push: &mut impl FnMut(Event),
) {
    if r.conditional {
        missing.conditional += 1;
        return;
    }
    missing.without_address += u64::from(r.address.is_none());
    if r.count != 1 {
        return reference::repeated(r, pc, |event| {
            missing.without_value += if r.access == Access::Load { event.times.into() } else { 0 };
            push(event);
        });
    }
    let flags = reference::flags(r, || has_more(run, index));
    missing.without_value += u64::from(flags & (Event::LOAD | Event::VALUE) == Event::LOAD);
    let (data, value) = (r.address.unwrap_or(0), r.value.unwrap_or(0));
    push(Event { pc, data, value, size: r.size.into(), times: 1, flags });
}
