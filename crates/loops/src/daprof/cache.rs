//! Profile cache and controller: figure 2 of paper 5, with its field widths.

use super::config::{
    Calls, DaprofConfig, MAX_AVERAGE, MAX_CURRENT, MAX_EXECUTIONS, MAX_FRESHNESS, MAX_OFFSET, TAG_BITS,
};
use crate::branch::Branch;

/// One entry. The first seven fields are the hardware's, in its widths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// 30 bits of the branch's address.
    pub tag: u32,
    /// 8 bits: words of four bytes from the target to the branch, rounded up.
    pub offset: u8,
    /// 16 bits.
    pub executions: u16,
    /// 10 bits; stays at its maximum.
    pub current: u16,
    /// 13 bits, 3 of them behind the point.
    pub average: u16,
    /// 1 bit.
    pub in_loop: bool,
    /// 3 bits.
    pub freshness: u8,
    /// Depth of calls that the loop runs at, for the extension (saturating).
    pub depth: u8,
    /// Whether it holds a loop. The paper has no such bit; an address of 0 serves as well there.
    pub valid: bool,
    /// The whole address: not in hardware, where the software that reads the cache adds the rest.
    pub pc: u64,
    /// Distance in bytes, likewise.
    pub distance: u32,
}

impl Entry {
    /// Average iterations as a number.
    pub fn average(&self) -> f64 {
        f64::from(self.average) / 8.0
    }

    /// What decides on replacement: average iterations times executions, in eighths.
    pub fn total(&self) -> u64 {
        u64::from(self.average) * u64::from(self.executions)
    }

    /// Whether all fields are within their widths.
    pub fn fits(&self) -> bool {
        self.tag < 1 << TAG_BITS
            && self.current <= MAX_CURRENT
            && self.average <= MAX_AVERAGE
            && self.freshness <= MAX_FRESHNESS
    }
}

/// The cache with its controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileCache {
    config: DaprofConfig,
    entries: Vec<Entry>,
    /// Loops that had to make room for others.
    pub replaced: u64,
    /// Times that all executions were halved.
    pub halvings: u32,
    /// Branches that met the entry of another one, whose tag is the same.
    pub aliased: u64,
    /// Executions given up since recording was cut.
    pub cut: u64,
}

impl ProfileCache {
    /// An empty cache.
    pub(crate) fn new(config: DaprofConfig) -> ProfileCache {
        let entries = vec![Entry::default(); config.entries];
        ProfileCache { config, entries, replaced: 0, halvings: 0, aliased: 0, cut: 0 }
    }

    /// All entries, by place.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The places that a tag may have.
    fn set(&self, tag: u32) -> std::ops::Range<usize> {
        let sets = self.config.entries / self.config.ways;
        let set = tag as usize & (sets - 1);
        set * self.config.ways..(set + 1) * self.config.ways
    }

    /// `found` and `foundIndex`.
    fn find(&self, tag: u32) -> Option<usize> {
        self.set(tag).find(|i| self.entries[*i].valid && self.entries[*i].tag == tag)
    }

    /// `replaceIndex`: an empty place, else the least total iterations of what is not fresh; the first of equals. With a
    /// maximum freshness of at most half of the ways something is always not fresh.
    fn victim(&self, tag: u32) -> usize {
        let rank = |i: &usize| {
            let e = &self.entries[*i];
            (e.valid, e.freshness > 0, e.total())
        };
        self.set(tag).min_by_key(rank).unwrap_or(0)
    }

    /// Line numbers are those of figure 2.
    pub(crate) fn branch(&mut self, branch: Branch, depth: u32) {
        let shift = self.config.granularity.shift();
        let tag = (branch.pc >> shift) as u32 & ((1 << TAG_BITS) - 1);
        let depth = depth.min(u8::MAX.into()) as u8;
        match self.find(tag) {
            // 1
            Some(found) => {
                self.aliased += u64::from(self.entries[found].pc != branch.pc);
                if self.is_iteration(found, depth) {
                    // 2, 3
                    let current = &mut self.entries[found].current;
                    *current = (*current + 1).min(MAX_CURRENT);
                } else {
                    self.execute(found, depth);
                }
            }
            // 13 to 22
            None => self.replace(tag, branch, depth),
        }
        self.leave(tag, depth);
    }

    /// 2: with calls followed, a loop that is active at another depth is another activation.
    fn is_iteration(&mut self, found: usize, depth: u8) -> bool {
        let entry = self.entries[found];
        if self.config.calls == Calls::Plain || !entry.in_loop || entry.depth == depth {
            return entry.in_loop;
        }
        self.finish(found);
        false
    }

    /// 4 to 12: a new execution of a loop that is known.
    fn execute(&mut self, found: usize, depth: u8) {
        self.age();
        let entry = &mut self.entries[found];
        entry.executions += 1;
        entry.current = 1;
        entry.in_loop = true;
        entry.freshness = self.config.max_freshness;
        entry.depth = depth;
        if entry.executions == MAX_EXECUTIONS {
            self.halvings += 1;
            self.entries.iter_mut().for_each(|e| e.executions >>= 1);
        }
    }

    /// 5 and 14: freshness stays at 0.
    fn age(&mut self) {
        self.entries.iter_mut().for_each(|e| e.freshness = e.freshness.saturating_sub(1));
    }

    fn replace(&mut self, tag: u32, branch: Branch, depth: u8) {
        let index = self.victim(tag);
        self.replaced += u64::from(self.entries[index].valid);
        self.age();
        self.entries[index] = Entry {
            tag,
            // Rounded up, so that the bounds hold the target; the widest distances are cut to what 8 bits hold.
            offset: branch.distance.div_ceil(4).min(MAX_OFFSET.into()) as u8,
            executions: 1,
            current: 1,
            average: 0,
            in_loop: true,
            freshness: self.config.max_freshness,
            depth,
            valid: true,
            pc: branch.pc,
            distance: branch.distance,
        };
    }

    /// 23 to 27: loops whose bounds do not hold the branch are over.
    fn leave(&mut self, tag: u32, depth: u8) {
        let words = 2 - self.config.granularity.shift();
        for i in 0..self.entries.len() {
            let e = &self.entries[i];
            if !e.in_loop {
                continue;
            }
            let low = e.tag.saturating_sub(u32::from(e.offset) << words);
            let inside = (low..=e.tag).contains(&tag);
            let over = match self.config.calls {
                Calls::Plain => !inside,
                Calls::Followed => e.depth > depth || (e.depth == depth && !inside),
            };
            if over {
                self.finish(i);
            }
        }
    }

    /// 25 and 26.
    fn finish(&mut self, index: usize) {
        let entry = &mut self.entries[index];
        entry.in_loop = false;
        entry.average = self.config.average.next(self.config.rounding, entry.average, entry.current);
    }

    /// Recording is cut: what is active is given up, since nobody knows how it went on.
    pub(crate) fn cut(&mut self) {
        for entry in &mut self.entries {
            self.cut += u64::from(std::mem::take(&mut entry.in_loop));
        }
    }

    /// The program is over: what is active ends, so that its iterations are in the average.
    pub(crate) fn conclude(&mut self) {
        for i in 0..self.entries.len() {
            if self.entries[i].in_loop {
                self.finish(i);
            }
        }
    }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
