//! What a tree wants of the references of a batch: one pass for each kind, and only for the kinds that are wanted.

use crate::batch::Event;
use crate::kind::Kind;
use crate::reference::is_narrow;

/// Code by data is kept by lines of this size: pairs are many, and hot ones reach over whole lines.
const LINE: u64 = 64;

/// Keys that were picked out of a batch last.
pub(crate) struct Column<K> {
    keys: Vec<K>,
}

impl<K> Default for Column<K> {
    fn default() -> Column<K> {
        Column { keys: Vec::new() }
    }
}

impl<K: Copy + Default> Column<K> {
    /// The keys of the events that belong to a kind. Whether one does cannot be predicted: each key is written, and kept
    /// or not.
    #[inline(always)]
    fn pick(
        &mut self,
        events: &[Event],
        key: impl Fn(&Event) -> K,
        belongs: impl Fn(&Event) -> bool,
    ) -> &mut [K] {
        if self.keys.len() < events.len() {
            self.keys.resize(events.len(), K::default());
        }
        let mut length = 0;
        for event in events {
            self.keys[length] = key(event);
            length += usize::from(belongs(event));
        }
        &mut self.keys[..length]
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        self.keys.capacity() * size_of::<K>()
    }
}

impl Column<u64> {
    /// The keys that a tree of one dimension wants, of events that count once.
    pub fn of(&mut self, kind: Kind, events: &[Event]) -> &mut [u64] {
        let flags = |event: &Event, must: u16, must_not: u16| event.flags & (must | must_not) == must;
        match kind {
            Kind::LoadAddresses => {
                let is = |e: &Event| flags(e, Event::LOAD | Event::ADDRESS, Event::REPEATED);
                self.pick(events, |e| e.data, is)
            }
            Kind::StoreAddresses => {
                let is = |e: &Event| flags(e, Event::ADDRESS, Event::LOAD | Event::REPEATED);
                self.pick(events, |e| e.data, is)
            }
            Kind::LoadValues => {
                let is = |e: &Event| flags(e, Event::LOAD | Event::VALUE, Event::REPEATED);
                self.pick(events, |e| e.value, is)
            }
            Kind::ZeroLoads => self.pick(events, |e| e.data, is_zero_load),
            Kind::NarrowPcs => self.pick(events, |e| e.pc, is_narrow_value),
            _ => &mut [],
        }
    }
}

impl Column<[u64; 2]> {
    /// The pairs of code and data, of events that count once.
    pub fn pairs(&mut self, events: &[Event]) -> &mut [[u64; 2]] {
        let must_not = Event::REPEATED;
        self.pick(events, pair, |e| e.flags & (Event::ADDRESS | must_not) == Event::ADDRESS)
    }
}

#[inline(always)]
fn is_zero_load(event: &Event) -> bool {
    let must = Event::LOAD | Event::VALUE | Event::ADDRESS;
    let must_not = Event::MORE | Event::REPEATED;
    (event.flags & (must | must_not) == must) & (event.value == 0)
}

#[inline(always)]
fn is_narrow_value(event: &Event) -> bool {
    let known = event.flags & (Event::VALUE | Event::REPEATED) == Event::VALUE;
    known & is_narrow(event.value, event.size)
}

/// The key that a tree of one dimension wants of an event that counts more than once, if it wants it. Its values are not
/// known.
pub(crate) fn repeated_key(kind: Kind, event: &Event) -> Option<u64> {
    let wanted = match kind {
        Kind::LoadAddresses => event.is(Event::LOAD | Event::ADDRESS),
        Kind::StoreAddresses => event.is(Event::ADDRESS) && !event.is(Event::LOAD),
        _ => false,
    };
    wanted.then_some(event.data)
}

/// The pair of code and data.
#[inline(always)]
pub(crate) fn pair(event: &Event) -> [u64; 2] {
    [event.pc, event.data / LINE * LINE]
}
