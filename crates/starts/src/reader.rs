//! Notes where bursts begin.

use crate::profile::{Start, StartsProfile, Sum};
use sonde_event::{Begin, End, Kernel, Passes, Reader};
use std::collections::HashMap;

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartsConfig {
    /// What a burst stands for, unless it says so itself.
    pub picoseconds: u64,
    /// Most instructions that are kept.
    pub most: usize,
}

impl Default for StartsConfig {
    fn default() -> StartsConfig {
        StartsConfig { picoseconds: 1, most: StartsProfile::MOST }
    }
}

/// Notes where bursts begin.
pub struct StartsReader {
    config: StartsConfig,
    starts: HashMap<u64, Sum>,
    not_kept: Sum,
    behind_calls: Sum,
    in_faults: Sum,
    /// Where the burst of each thread began that may still say what it stands for.
    open: HashMap<i32, Begin>,
}

impl StartsReader {
    /// Nothing seen yet.
    pub fn new(config: StartsConfig) -> StartsReader {
        StartsReader {
            config: StartsConfig { most: config.most.min(StartsProfile::MOST), ..config },
            starts: HashMap::new(),
            not_kept: Sum::default(),
            behind_calls: Sum::default(),
            in_faults: Sum::default(),
            open: HashMap::new(),
        }
    }

    /// Bytes used, roughly.
    pub fn memory_bytes(&self) -> usize {
        self.starts.capacity() * size_of::<(u64, Sum)>() + self.open.capacity() * size_of::<(i32, Begin)>()
    }

    /// What was seen; addresses are those of the run.
    pub fn finish(self) -> StartsProfile {
        let mut starts: Vec<Start> = self.starts.into_iter().map(|(pc, sum)| Start { pc, sum }).collect();
        starts.sort_unstable_by_key(|start| start.pc);
        let StartsReader { not_kept, behind_calls, in_faults, .. } = self;
        StartsProfile { starts, not_kept, behind_calls, in_faults }
    }

    fn sum(&mut self, begin: &Begin) -> &mut Sum {
        let pc = begin.pc;
        match begin.kernel {
            Some(Kernel::Call) => return &mut self.behind_calls,
            Some(Kernel::Fault) => return &mut self.in_faults,
            None => {}
        }
        if self.starts.len() >= self.config.most && !self.starts.contains_key(&pc) {
            return &mut self.not_kept;
        }
        self.starts.entry(pc).or_default()
    }
}

impl Reader for StartsReader {
    fn begin(&mut self, begin: &Begin) {
        let weight = self.config.picoseconds;
        self.sum(begin).add(Sum { count: 1, weight });
        self.open.insert(begin.tid, *begin);
    }

    fn pace(&mut self, tid: i32, period_ns: u64) {
        let Some(begin) = self.open.remove(&tid) else { return };
        let usual = self.config.picoseconds;
        let sum = self.sum(&begin);
        sum.weight = sum.weight.saturating_sub(usual).saturating_add(period_ns.saturating_mul(1000));
    }

    /// Only where bursts begin and end matters.
    fn passes(&mut self, _: &Passes<'_>) {}

    fn end(&mut self, end: &End) {
        self.open.remove(&end.tid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_event::Cause;

    fn begin(reader: &mut StartsReader, tid: i32, pc: u64) {
        reader.begin(&Begin { tid, time: 0, pc, kernel: None });
    }

    fn end(reader: &mut StartsReader, tid: i32, cause: Cause, pc: u64) {
        reader.end(&End { tid, time: 0, cause, pc });
    }

    #[test]
    fn a_burst_weighs_what_it_stands_for() {
        let mut reader = StartsReader::new(StartsConfig { picoseconds: 5_000, ..StartsConfig::default() });
        begin(&mut reader, 1, 0x10);
        begin(&mut reader, 2, 0x20);
        reader.pace(1, 7);
        end(&mut reader, 1, Cause::Checks, 0x99);
        reader.pace(1, 1_000_000);
        begin(&mut reader, 1, 0x10);
        let starts = reader.finish().starts;
        let sums: Vec<_> = starts.iter().map(|s| (s.pc, s.sum.count, s.sum.weight)).collect();
        assert_eq!(sums, [(0x10, 2, 12_000), (0x20, 1, 5_000)]);
    }

    #[test]
    fn beginnings_in_system_calls_and_faults_are_the_kernels_time() {
        let mut reader = StartsReader::new(StartsConfig::default());
        reader.begin(&Begin { tid: 1, time: 0, pc: 0x102, kernel: Some(Kernel::Call) });
        reader.pace(1, 7);
        end(&mut reader, 1, Cause::Checks, 0x100);
        begin(&mut reader, 1, 0x202);
        reader.begin(&Begin { tid: 1, time: 0, pc: 0x300, kernel: Some(Kernel::Fault) });
        reader.pace(1, 5);
        let profile = reader.finish();
        assert_eq!(profile.behind_calls, Sum { count: 1, weight: 7_000 });
        assert_eq!(profile.in_faults, Sum { count: 1, weight: 5_000 });
        assert_eq!(profile.kernel(), Sum { count: 2, weight: 12_000 });
        assert_eq!(profile.starts.iter().map(|s| s.pc).collect::<Vec<_>>(), [0x202]);
    }

    #[test]
    fn what_is_beyond_the_most_is_counted() {
        let mut reader = StartsReader::new(StartsConfig { picoseconds: 3, most: 2 });
        [1, 2, 3, 1, 3].into_iter().for_each(|pc| begin(&mut reader, 1, pc));
        let profile = reader.finish();
        assert_eq!((profile.starts.len(), profile.not_kept), (2, Sum { count: 2, weight: 6 }));
        assert_eq!((profile.all(), profile.check()), (Sum { count: 5, weight: 15 }, Ok(())));
    }
}
