//! From passes to keys: passes that went the same way are looked at together, one reference of all of them after the
//! other. What a reference is made of then stays in registers, and where it touches the same again and again, that is
//! seen before it goes to a tree.

use crate::accesses;
use crate::batch::{Batch, Event};
use crate::code::Code;
use crate::keys::Keys;
use crate::kind::Kind;
use crate::passes::{Pass, Passes};
use crate::pending::Pending;
use crate::sorted::{Group, Sorted};
use crate::summary::Missing;
use crate::ways::Ways;
use crate::window::Window;
use sonde_event::PlainRecipe;
use sonde_place::Places;

/// What a reader knows that keys are made with.
pub(crate) struct Around<'a> {
    pub ways: &'a Ways,
    pub code: &'a mut Code,
    pub places: &'a mut Places,
    pub pending: &'a mut Pending,
    pub missing: &'a mut Missing,
}

/// Makes keys; memory for what is under way is kept.
pub(crate) struct Columns {
    wants: Wants,
    sorted: Sorted,
    addresses: Vec<u64>,
    values: Vec<u64>,
    keys: Keys,
    /// Bytes of a line of the cache model, less one.
    line_mask: u64,
}

/// What the chosen kinds need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wants {
    pub references: bool,
    pub edges: bool,
    pub loads: bool,
    pub stores: bool,
    pub values: bool,
    pub zeros: bool,
    pub narrow: bool,
    pub code_data: bool,
    pub misses: bool,
}

impl Wants {
    /// Of these kinds.
    pub fn of(what: &crate::what::What) -> Wants {
        let of_code = |kind: &Kind| matches!(kind, Kind::Code | Kind::Edges);
        Wants {
            references: !what.kinds().iter().all(of_code),
            edges: what.has(Kind::Edges),
            loads: what.has(Kind::LoadAddresses),
            stores: what.has(Kind::StoreAddresses),
            values: what.has(Kind::LoadValues),
            zeros: what.has(Kind::ZeroLoads),
            narrow: what.has(Kind::NarrowPcs),
            code_data: what.has(Kind::CodeData),
            misses: what.has(Kind::Dl1MissValues) || what.has(Kind::Dl2MissValues),
        }
    }
}

/// How much passes and their references weigh.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weights {
    /// Of a pass, if passes are to be counted.
    pub pass: Option<u64>,
    pub reference: u64,
    /// How many passes one that was kept stands for.
    pub stands_for: u64,
}

/// What is counted of passes, and what only the cache model is to see.
#[derive(Clone, Copy)]
pub(crate) struct Counted<'a> {
    pub weights: Weights,
    /// The code that counts; none for all.
    pub window: Option<&'a Window>,
}

impl Counted<'_> {
    fn has(&self, superblock: u32) -> bool {
        self.window.is_none_or(|window| window.has(superblock))
    }
}

impl Columns {
    /// For these kinds, with so many bytes of rows, and a cache model whose first level has lines of this size.
    pub fn new(wants: Wants, rows: usize, line: u32) -> Columns {
        Columns {
            wants,
            sorted: Sorted::default(),
            addresses: Vec::new(),
            values: Vec::new(),
            keys: Keys::new(wants, rows),
            line_mask: u64::from(line) - 1,
        }
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        self.sorted.memory_bytes()
            + (self.addresses.capacity() + self.values.capacity()) * 8
            + self.keys.memory_bytes()
    }

    /// Adds the keys of some of the passes to a batch; their records are in `words`.
    pub fn fill(
        &mut self,
        batch: &mut Batch,
        words: &[u64],
        passes: &Passes,
        part: &[Pass],
        counted: Counted<'_>,
        around: &mut Around<'_>,
    ) {
        let ways = around.ways;
        self.sorted.sort(part, |exit| ways.of(exit));
        let first = self.fill_sorted(batch, (words, passes.fs_base), counted, around);
        self.add_events(batch, first, &passes.events, counted.weights.reference, around);
    }

    /// The same of passes where the log has them, each of which counts as it is; all of them are plain. `next_pc` tells where one of
    /// them led, for those to which that belongs.
    pub fn fill_logged(
        &mut self,
        batch: &mut Batch,
        passes: &sonde_event::Passes<'_>,
        around: &mut Around<'_>,
        next_pc: impl FnMut(usize) -> u64,
    ) {
        let ways = around.ways;
        self.sorted.sort_log(passes, |exit| ways.of(exit), next_pc);
        let weights = Weights { pass: Some(1), reference: 1, stands_for: 1 };
        let counted = Counted { weights, window: None };
        self.fill_sorted(batch, (passes.words(), passes.fs_base()), counted, around);
    }

    /// Adds branches that count as they are.
    pub fn add_edges(&mut self, batch: &mut Batch, edges: &[[u64; 2]]) {
        self.keys.begin(1);
        edges.iter().for_each(|edge| self.keys.add_edge(batch, *edge));
    }

    /// Adds the keys of those that are sorted; where their accesses begin.
    fn fill_sorted(
        &mut self,
        batch: &mut Batch,
        log: (&[u64], u64),
        counted: Counted<'_>,
        around: &mut Around<'_>,
    ) -> usize {
        let (ways, weights) = (around.ways, counted.weights);
        let first = batch.accesses.more(if self.wants.misses { self.sorted.references() } else { 0 });
        batch.weight = weights.reference;
        self.keys.begin(weights.reference);
        let groups = std::mem::take(&mut self.sorted.groups);
        for same in groups.chunk_by(|a, b| ways.of(a.exit).superblock == ways.of(b.exit).superblock) {
            self.superblock(batch, first, log, same, counted, around);
        }
        self.sorted.groups = groups;
        self.keys.end(batch);
        first
    }

    /// Adds what passes have as events.
    fn add_events(
        &mut self,
        batch: &mut Batch,
        first: usize,
        events: &[Event],
        weight: u64,
        around: &mut Around<'_>,
    ) {
        for &(number, from, count) in &self.sorted.events {
            let at = first + number as usize;
            for (i, event) in events[from as usize..][..count as usize].iter().enumerate() {
                let event = around.pending.place(*event, weight, around.places, around.missing);
                if self.wants.misses {
                    batch.accesses.set(at + i, event.as_ref());
                }
                if let Some(event) = event {
                    add_event(batch, &event, weight, self.wants);
                }
            }
        }
    }

    /// Hands on what was kept back; `send` takes a batch.
    pub fn drain(&mut self, batch: &mut Batch, send: impl FnMut(&mut Batch)) {
        self.keys.drain(batch, send);
    }

    /// All passes through one superblock. An exit further down makes the references of those before it and more.
    fn superblock(
        &mut self,
        batch: &mut Batch,
        first: usize,
        log: (&[u64], u64),
        groups: &[Group],
        counted: Counted<'_>,
        around: &mut Around<'_>,
    ) {
        let (ways, weights) = (around.ways, counted.weights);
        let index = ways.of(groups[0].exit).superblock;
        let counts = counted.has(index);
        let Some(superblock) = ways.superblock(index) else { return };
        let delta = around.code.delta_at(index, superblock.pc, around.places);
        for group in groups {
            let (way, count) = (ways.of(group.exit), u64::from(group.to - group.from));
            let unplaced = if delta.is_none() { count * u64::from(way.blocks) } else { 0 };
            around.missing.unplaced_code += unplaced * weights.stands_for;
            if let Some(weight) = weights.pass.filter(|_| counts) {
                around.code.add(group.exit, count, weight);
            }
        }
        let grows = groups.is_sorted_by_key(|group| ways.of(group.exit).references);
        let parts = if grows { groups.len() } else { 1 };
        for groups in groups.chunks(parts) {
            let mut shorter = 0;
            for (number, recipe) in superblock.recipes.iter().enumerate() {
                let makes = |group: &Group| usize::from(ways.of(group.exit).references) > number;
                shorter += groups[shorter..].iter().take_while(|group| !makes(group)).count();
                let Some(from) = groups.get(shorter) else { break };
                let range = from.from as usize..groups[groups.len() - 1].to as usize;
                let pc = recipe.pc().wrapping_add(delta.unwrap_or(0));
                let at = first + number;
                let site = Site { recipe, pc, range, at, counts };
                self.site(batch, log, site, weights.reference, around);
            }
        }
    }

    /// One reference of many passes.
    fn site(
        &mut self,
        batch: &mut Batch,
        (words, fs_base): (&[u64], u64),
        site: Site<'_>,
        weight: u64,
        around: &mut Around<'_>,
    ) {
        let Site { recipe, pc, range, at, counts } = site;
        let Columns { addresses, values, .. } = self;
        let (starts, next) = (&self.sorted.starts[range.clone()], &self.sorted.next[range.clone()]);
        let only = recipe.addresses(words, starts, fs_base, addresses);
        addresses.extend(only);
        keep_one_of_equal(addresses);
        let mut kind = recipe.kind();
        // The cache model tells nobody of values that it does not know.
        kind.flags &= if counts { u16::MAX } else { !Event::VALUE };
        values.clear();
        if kind.flags & Event::VALUE != 0 && self.keys.wants_values(kind) {
            let only = recipe.values(words, starts, next, values);
            values.extend(only);
            keep_one_of_equal(values);
        }
        if !around.places.place_all(addresses) {
            return self.one_by_one(batch, Site { recipe, pc, range, at, counts }, weight, around);
        }
        let count = starts.len();
        if counts {
            self.keys.add(batch, pc, kind, count, addresses, values);
        }
        if self.wants.misses {
            let site =
                accesses::Site { flags: kind.flags, size: kind.size.into(), line_mask: self.line_mask };
            batch.accesses.set_all(at, &self.sorted.numbers[range], site, addresses, values);
        }
    }

    /// The same, where some addresses have no place yet.
    #[cold]
    fn one_by_one(&mut self, batch: &mut Batch, site: Site<'_>, weight: u64, around: &mut Around<'_>) {
        let Site { recipe, pc, range, at, counts } = site;
        let kind = recipe.kind();
        let silent = if counts { 0 } else { Event::SILENT };
        for (i, place) in range.enumerate() {
            let of = |column: &[u64]| column.get(i).or(column.first()).copied().unwrap_or(0);
            let (data, value) = (of(&self.addresses), of(&self.values));
            let flags = kind.flags | Event::ADDRESS | silent;
            let event = Event { pc, data, value, size: kind.size.into(), times: 1, flags };
            let event = around.pending.place(event, weight, around.places, around.missing);
            if self.wants.misses {
                batch.accesses.set(at + self.sorted.numbers[place] as usize, event.as_ref());
            }
            if let Some(event) = event {
                add_event(batch, &event, weight, self.wants);
            }
        }
    }
}

/// A reference of several passes.
struct Site<'a> {
    recipe: &'a PlainRecipe,
    /// Place of the instruction.
    pc: u64,
    /// Which passes, among those that are sorted.
    range: std::ops::Range<usize>,
    /// Its number in a pass, counted from where the accesses of these passes begin.
    at: usize,
    /// Whether it is counted, and not only seen by the cache model.
    counts: bool,
}

/// One stands for all where all are the same: of slots of the stack, and of what a register points to for long, that is so in
/// many batches.
#[inline]
fn keep_one_of_equal(column: &mut Vec<u64>) {
    if let [first, rest @ ..] = &column[..]
        && rest.iter().all(|number| number == first)
    {
        column.truncate(1);
    }
}

/// Adds the keys of one event that has its place, accesses aside.
pub(crate) fn add_event(batch: &mut Batch, event: &Event, weight: u64, wants: Wants) {
    if event.is(Event::SILENT) {
        return;
    }
    let times = u64::from(event.times);
    let mut add = |wanted: bool, kind: Kind, key: u64| {
        if wanted {
            batch.of_mut(kind).push(key, times, weight);
        }
    };
    let (load, address) = (event.is(Event::LOAD), event.is(Event::ADDRESS));
    // The values of repeated ones are not known.
    let value = event.is(Event::VALUE) && !event.is(Event::REPEATED);
    add(wants.loads && load && address, Kind::LoadAddresses, event.data);
    add(wants.stores && !load && address, Kind::StoreAddresses, event.data);
    add(wants.values && load && value, Kind::LoadValues, event.value);
    let zero = load && value && address && event.value == 0 && !event.is(Event::MORE);
    add(wants.zeros && zero, Kind::ZeroLoads, event.data);
    let narrow = value && crate::reference::is_narrow(event.value, event.size);
    add(wants.narrow && narrow, Kind::NarrowPcs, event.pc);
    if wants.code_data && address {
        batch.code_data.push([event.pc, crate::keys::line(event.data)], times, weight);
    }
}
