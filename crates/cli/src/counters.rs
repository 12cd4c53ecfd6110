//! Names of the probe's counters, as trace files keep them.

use std::collections::BTreeMap;

use sonde_launch::{Counter, Totals};

const NAMES: [(Counter, &str); 38] = [
    (Counter::Triggers, "triggers"),
    (Counter::Bursts, "bursts"),
    (Counter::EndedByChecks, "ended_by_checks"),
    (Counter::EndedBySyscall, "ended_by_syscall"),
    (Counter::EndedByInstruction, "ended_by_instruction"),
    (Counter::EndedByCode, "ended_by_code"),
    (Counter::EndedByFault, "ended_by_fault"),
    (Counter::EndedByCacheFull, "ended_by_cache_full"),
    (Counter::EndedByBuffers, "ended_by_buffers"),
    (Counter::EndedByStop, "ended_by_stop"),
    (Counter::EndedByCold, "ended_by_cold"),
    (Counter::SkippedGs, "skipped_gs"),
    (Counter::SkippedState, "skipped_state"),
    (Counter::SkippedBuffers, "skipped_buffers"),
    (Counter::SkippedThreads, "skipped_threads"),
    (Counter::SkippedSeccomp, "skipped_seccomp"),
    (Counter::SkippedUnanswered, "skipped_unanswered"),
    (Counter::SkippedCode, "skipped_code"),
    (Counter::Superblocks, "superblocks"),
    (Counter::SuperblockInsns, "superblock_instructions"),
    (Counter::SuperblockBlocks, "superblock_blocks"),
    (Counter::CodeBytes, "code_bytes"),
    (Counter::TranslateTicks, "translate_ticks"),
    (Counter::BurstTicks, "burst_ticks"),
    (Counter::BurstCpuNs, "burst_cpu_ns"),
    (Counter::Flushes, "flushes"),
    (Counter::Waits, "waits"),
    (Counter::Threads, "threads"),
    (Counter::Signals, "signals"),
    (Counter::Syscalls, "syscalls"),
    (Counter::LogBytes, "log_bytes"),
    (Counter::LostBytes, "lost_bytes"),
    (Counter::Children, "children"),
    (Counter::ForwardedFaults, "forwarded_faults"),
    (Counter::ChecksLeftOut, "checks_left_out"),
    (Counter::NotAnalysed, "not_analysed"),
    (Counter::Watched, "watched"),
    (Counter::Rewatched, "rewatched"),
];

/// All counters that are not 0, by name; one without a name goes by its number.
pub fn by_name(totals: &Totals) -> BTreeMap<String, u64> {
    let name = |index: usize| {
        let known = NAMES.iter().find(|(counter, _)| *counter as usize == index);
        known.map_or_else(|| format!("counter_{index}"), |(_, name)| (*name).to_string())
    };
    let counted = totals.counters.iter().enumerate().filter(|(_, count)| **count > 0);
    counted.map(|(index, count)| (name(index), *count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_nothing_is_left_out() {
        let mut names: Vec<&str> = NAMES.iter().map(|(_, name)| *name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), NAMES.len());
        let totals = Totals { counters: vec![1; 64], ..Totals::default() };
        assert_eq!(by_name(&totals).len(), 64);
    }
}
