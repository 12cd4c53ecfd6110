//! The reader of the stream: it gives every event its place and its weight, and hands them to the trees.

use crate::batch::{BATCH, Batch, Event};
use crate::bursts::Bursts;
use crate::code::Code;
use crate::columns::{Around, Columns, Counted, Wants, Weights, add_event};
use crate::config::{BurstTime, Config, Shares};
use crate::crew::Crew;
use crate::error::SummaryError;
use crate::finish;
use crate::kind::Kind;
use crate::one_by_one::{push_blocks, push_edge, push_references};
use crate::open::{Began, Open, Random};
use crate::passes::Made;
use crate::pending::Pending;
use crate::samples::Samples;
use crate::summary::{Missing, Summary};
use crate::ways::{Look, Ways};
use crate::window::Window;
use sonde_event::maps::Mapping;
use sonde_event::{Begin, Catalog, Count, Counts, End, PathSize, Reader, Run, Taken};
use sonde_place::Places;
use std::collections::HashMap;

/// Fewest bytes of passes that an open burst may keep, however many bursts are open.
const LEAST_OPEN: usize = 1 << 15;
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
    /// Where bursts began, and what they stand for.
    pub(crate) samples: Samples,
    pub(crate) ways: Ways,
    pub(crate) columns: Columns,
    pub(crate) pending: Pending,
    crew: Crew,
    /// Memory for the next batch.
    pub(crate) batch: Batch,
    /// What waits for enough to be counted together, where events count as they are.
    common: Open,
    /// Bursts under way, by thread, where each burst has its weight.
    open: HashMap<i32, Open>,
    spare: Vec<Open>,
    /// The burst of the thread that was read last, taken out of `open`.
    current: Option<(i32, Open)>,
    random: Random,
    /// Most bytes of passes in an open burst now.
    cap: usize,
    pub(crate) wants: Wants,
}

impl Summaries {
    /// Nothing seen yet.
    pub fn new(config: Config) -> Result<Summaries, SummaryError> {
        let shares = config.shares()?;
        let wants = Wants::of(&config.what);
        let mut common = Open::default();
        common.restart(Began::Unseen);
        Ok(Summaries {
            crew: Crew::new(&config, &shares)?,
            code: Code::new(shares.exits),
            samples: Samples::default(),
            ways: Ways::new(shares.recipes),
            columns: Columns::new(wants, shares.rows, config.cache.first().line),
            pending: Pending::new(shares.pending),
            config,
            shares,
            count: Count::default(),
            bursts: Bursts::default(),
            missing: Missing::default(),
            places: Places::new(),
            batch: Batch::default(),
            common,
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
            + self.samples.memory_bytes()
            + self.places.memory_bytes()
            + self.pending.memory_bytes()
            + self.ways.memory_bytes()
            + self.columns.memory_bytes()
            + self.batch.memory_bytes()
            + self.common.memory_bytes()
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
        self.drain();
        let own = self.own_bytes();
        let crew = std::mem::replace(&mut self.crew, Crew::idle());
        finish::summary(self, crew.finish(), own, catalog)
    }

    /// Hands to the trees what counts as it is.
    fn hand_on(&mut self) {
        let mut common = std::mem::take(&mut self.common);
        self.count_up(&common, &common.passes.words, 1, None);
        common.restart(Began::Unseen);
        self.common = common;
    }

    /// Counts passes whose records are in `words`, and what else waited, a part at a time: a burst can have much more than
    /// a batch.
    fn count_up(&mut self, open: &Open, words: &[u64], weight: u64, window: Option<&Window>) {
        self.place_pending();
        for (exit, times) in open.exits() {
            self.code.add(*exit, u64::from(*times), weight);
        }
        let mut batch = std::mem::take(&mut self.batch);
        open.edges.iter().for_each(|edge| batch.edges.push(*edge, 1, weight));
        for (place, insns) in &open.blocks {
            self.code.add_block(*place, insns.saturating_mul(weight));
            batch.of_mut(Kind::Code).push(*place, *insns, weight);
        }
        let weights = Weights {
            pass: (!open.is_thinned()).then_some(weight),
            reference: weight.saturating_mul(open.stands_for()),
            stands_for: open.stands_for(),
        };
        let counted = Counted { weights, window };
        let mut rest = &open.passes.list[..];
        while !rest.is_empty() {
            batch.out_of_order = open.is_thinned();
            let (part, later) = rest.split_at(self.part(rest));
            let mut around = Around {
                ways: &self.ways,
                code: &mut self.code,
                places: &mut self.places,
                pending: &mut self.pending,
                missing: &mut self.missing,
            };
            self.columns.fill(&mut batch, words, &open.passes, part, counted, &mut around);
            self.send(&mut batch);
            rest = later;
        }
        self.send(&mut batch);
        self.batch = batch;
    }

    /// How many passes make a batch.
    fn part(&self, passes: &[crate::passes::Pass]) -> usize {
        let mut references = 0;
        let fits = passes.iter().take_while(|pass| {
            references += match pass.made() {
                Made::Logged { exit, .. } => self.ways.of(exit).references.into(),
                Made::Events { count, .. } => count,
            };
            references <= BATCH
        });
        fits.count().max(1)
    }

    /// Hands a batch to the trees. It comes back empty.
    pub(crate) fn send(&mut self, batch: &mut Batch) {
        if !batch.is_empty() {
            self.crew.take(batch);
        }
    }

    /// New mappings may tell where older references went.
    pub(crate) fn place_pending(&mut self) {
        let placed = self.pending.retry(&mut self.places);
        self.send_events(&placed);
    }

    fn give_up_pending(&mut self) {
        let placed = self.pending.give_up(&mut self.places, &mut self.missing);
        self.send_events(&placed);
    }

    /// Hands events to the trees that have waited, those of the same weight together.
    fn send_events(&mut self, events: &[(Event, u64)]) {
        let mut batch = std::mem::take(&mut self.batch);
        for same in events.chunk_by(|a, b| a.1 == b.1).flat_map(|same| same.chunks(BATCH)) {
            for (event, weight) in same {
                add_event(&mut batch, event, *weight, self.wants);
                batch.weight = *weight;
                if self.wants.misses {
                    batch.out_of_order = self.config.has_gaps();
                    let at = batch.accesses.more(1);
                    batch.accesses.set(at, Some(event));
                }
            }
            self.send(&mut batch);
        }
        self.batch = batch;
    }

    /// Hands to the trees what is counted beside them.
    fn drain(&mut self) {
        let mut batch = std::mem::take(&mut self.batch);
        let crew = &mut self.crew;
        self.columns.drain(&mut batch, |batch| {
            if !batch.is_empty() {
                crew.take(batch);
            }
        });
        self.batch = batch;
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
        open.restart(Began::Unseen);
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

    fn end_burst(&mut self, tid: i32) {
        let current = self.current.take_if(|current| current.0 == tid).map(|current| current.1);
        if let Some(open) = current.or_else(|| self.open.remove(&tid)) {
            self.close(open);
        }
    }

    /// A burst is over: the instruction that it began at has its time, which the code around shares out for what it did.
    fn close(&mut self, mut open: Open) {
        let time = self.config.burst_time.as_ref().map_or(0, BurstTime::picoseconds);
        let time = open.picoseconds.unwrap_or(time);
        self.bursts.empty += u64::from(!open.recorded);
        match open.began {
            Began::At(pc) => {
                self.bursts.weigh(time);
                self.samples.add(pc, time, &mut self.places);
            }
            Began::Kernel => self.bursts.weigh_kernel(time),
            Began::Unseen => {}
        }
        let weight = time.checked_div(open.instructions).unwrap_or(0);
        self.bursts.weigh_references(open.references, weight);
        self.bursts.thinned += u64::from(open.is_thinned());
        self.batch.after_gap = true;
        self.count_up(&open, &open.passes.words, weight, Some(&open.window));
        if self.spare.len() < SPARE {
            open.restart(Began::Unseen);
            self.spare.push(open);
        }
    }

    /// Notes a pass of the current burst, or one that counts as it is. Its words may have been copied already.
    fn note(&mut self, run: &Run<'_>, copied: Option<u32>, weighted: bool) {
        let open = open(&mut self.current, &mut self.common, weighted);
        let counts = !weighted || open.window.admits(run);
        if counts {
            open.instructions += run.instructions();
            open.references += u64::from(run.path.refs);
        } else if !self.wants.misses {
            return;
        }
        let exit = run.exit().filter(|exit| self.code.has_room_for(*exit));
        if self.wants.edges && run.path.target == 0 && counts {
            let delta = self.code.delta(run, &mut self.places);
            push_edge(run, delta, &mut self.places, &mut open.edges, &mut self.missing);
        }
        if open.passes.list.is_empty() {
            open.passes.fs_base = run.fs_base;
        }
        let waits = self.wants.references && open.passes.fs_base == run.fs_base;
        match exit.filter(|_| waits) {
            Some(exit) if self.ways.is_plain(exit, run, &mut self.code, &mut self.places) => {
                self.missing.without_value += if counts { u64::from(run.path.unknown_loads) } else { 0 };
                if open.is_thinned() && counts {
                    open.took(exit);
                }
                if open.keeps(&mut self.random) {
                    let at = copied.unwrap_or_else(|| open.passes.copy(run.words));
                    open.passes.push(exit, at, run.path.refs, run.next_pc.unwrap_or(0));
                }
            }
            _ => self.note_odd(run, exit, weighted, counts),
        }
    }

    /// Notes a pass whose references cannot be computed together with those of others.
    #[inline(never)]
    fn note_odd(&mut self, run: &Run<'_>, exit: Option<u32>, weighted: bool, counts: bool) {
        let delta = self.code.delta(run, &mut self.places);
        let open = open(&mut self.current, &mut self.common, weighted);
        match exit {
            Some(exit) if weighted && counts => open.took(exit),
            Some(exit) if !weighted => self.code.add(exit, 1, 1),
            None if !weighted => push_blocks(run, delta, &mut open.blocks),
            _ => {}
        }
        self.missing.unplaced_code += if delta.is_none() && counts { u64::from(run.path.blocks) } else { 0 };
        if self.wants.references {
            let before = open.passes.events.len();
            let keeps = open.keeps(&mut self.random);
            let silent = if counts { 0 } else { Event::SILENT };
            let mut ignored = Missing::default();
            let missing = if counts { &mut self.missing } else { &mut ignored };
            push_references(run, delta, missing, |event| {
                if keeps {
                    open.passes.events.push(Event { flags: event.flags | silent, ..event });
                }
            });
            open.passes.push_events(open.passes.events.len() - before);
        }
    }

    /// Notes many passes of a burst, of which only those through the code that it began in count.
    fn note_burst(&mut self, passes: &sonde_event::Passes<'_>) {
        self.turn_to(passes.tid()).recorded |= !passes.list().is_empty();
        for (index, pass) in passes.list().iter().enumerate() {
            let window = &open(&mut self.current, &mut self.common, true).window;
            let wants = || passes.superblock(pass.exit).is_some_and(|superblock| window.wants(superblock));
            if (self.wants.misses || wants())
                && let Some(run) = passes.run(index)
            {
                self.note_alone(&run, true);
            }
        }
    }

    /// Notes many passes where only code is asked for.
    fn note_code(&mut self, passes: &sonde_event::Passes<'_>) {
        let mut index = 0;
        while let Some(pass) = passes.list().get(index) {
            // What is to be seen to of an exit shows when it is taken for the first time.
            let known = self.code.knows(pass.exit);
            let size = passes.size(pass.exit);
            if known && !(self.wants.edges && size.flags & PathSize::INDIRECT != 0) {
                self.code.add(pass.exit, 1, 1);
            } else if let Some(run) = passes.run(index) {
                self.note_alone(&run, false);
            }
            index += 1;
        }
    }

    /// Notes many passes that count as they are: where the log has them, unless they are few.
    fn note_all(&mut self, passes: &sonde_event::Passes<'_>) {
        if !self.wants.references {
            return self.note_code(passes);
        }
        let list = passes.list();
        let made = |taken: &Taken| taken.times as usize * usize::from(passes.size(taken.exit).refs);
        let references = passes.taken().iter().map(made).sum::<usize>();
        let at_once = references >= BATCH / 2;
        if at_once || self.common.passes.fs_base != passes.fs_base() {
            self.hand_on();
        }
        if at_once && self.are_plain(passes) {
            return self.count_logged(passes);
        }
        let first = list.first().map_or(0, |pass| pass.at as usize);
        let words = &passes.words()[first..passes.end()];
        let open = &mut self.common;
        if open.passes.list.is_empty() {
            open.passes.fs_base = passes.fs_base();
        }
        // A thread that moved its fs base: rare enough to be noted one by one.
        if open.passes.fs_base != passes.fs_base() {
            return passes.runs().for_each(|run| self.note_alone(&run, false));
        }
        let base = if at_once { 0 } else { open.passes.copy(words).wrapping_sub(first as u32) };
        self.note_together(passes, base);
        if at_once {
            let mut common = std::mem::take(&mut self.common);
            self.count_up(&common, passes.words(), 1, None);
            common.restart(Began::Unseen);
            self.common = common;
        } else if self.common.is_full() {
            self.hand_on();
        }
    }

    /// Notes passes whose words begin `base` behind where the log has them.
    fn note_together(&mut self, passes: &sonde_event::Passes<'_>, base: u32) {
        let list = passes.list();
        let mut index = 0;
        while let Some(pass) = list.get(index) {
            if self.ways.look(pass.exit) != Look::Together {
                if let Some(run) = passes.run(index) {
                    self.note(&run, Some(pass.at.wrapping_add(base)), false);
                }
                index += 1;
                continue;
            }
            let open = &mut self.common;
            let mut unknown = 0;
            while let Some(pass) = list.get(index).filter(|pass| self.ways.look(pass.exit) == Look::Together)
            {
                let size = passes.size(pass.exit);
                unknown += u64::from(size.unknown_loads);
                open.passes.push(pass.exit, pass.at.wrapping_add(base), size.refs, 0);
                index += 1;
            }
            self.missing.without_value += unknown;
        }
    }

    /// Notes one pass by itself.
    fn note_alone(&mut self, run: &Run<'_>, weighted: bool) {
        if weighted {
            self.turn_to(run.tid);
        } else if self.common.passes.fs_base != run.fs_base {
            self.hand_on();
        }
        self.note(run, None, weighted);
        if let Some((_, open)) = self.current.as_mut().filter(|_| weighted) {
            open.thin_out(self.cap, &self.ways, &mut self.random);
        } else if self.common.is_full() {
            self.hand_on();
        }
    }
}

/// The burst under way, or what counts as it is.
#[inline(always)]
fn open<'a>(current: &'a mut Option<(i32, Open)>, common: &'a mut Open, weighted: bool) -> &'a mut Open {
    match current {
        Some((_, open)) if weighted => open,
        _ => common,
    }
}

impl Reader for Summaries {
    fn begin(&mut self, begin: &Begin) {
        self.count.begin(begin);
        self.bursts.count += 1;
        if self.config.burst_time.is_some() {
            // An older burst of the thread whose end was lost.
            self.end_burst(begin.tid);
            let began = if begin.kernel.is_some() { Began::Kernel } else { Began::At(begin.pc) };
            self.turn_to(begin.tid).restart(began);
        } else if self.config.in_parts && self.wants.misses {
            self.hand_on();
            self.batch.after_gap = true;
        }
    }

    fn pace(&mut self, tid: i32, period_ns: u64) {
        if self.config.burst_time.is_some() {
            self.turn_to(tid).picoseconds = Some(period_ns.saturating_mul(1000));
        }
    }

    fn run(&mut self, run: &Run<'_>) {
        self.count.run(run);
        let weighted = self.config.burst_time.is_some();
        if weighted {
            self.turn_to(run.tid).recorded = true;
        }
        self.note_alone(run, weighted);
    }

    fn passes(&mut self, passes: &sonde_event::Passes<'_>) {
        self.count.passes(passes);
        match self.config.burst_time {
            Some(_) => self.note_burst(passes),
            None => self.note_all(passes),
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
        self.samples.retry(&mut self.places);
        self.pending.news();
    }

    fn wants_mappings(&self) -> bool {
        self.pending.is_waiting() || self.samples.are_waiting()
    }

    fn gap(&mut self) {
        self.missing.gaps += 1;
    }
}
