//! Everything that was not recorded, or ended recording early, in words: nothing is lost silently.

use std::collections::BTreeMap;

use sonde_launch::{Counter, Totals};
use sonde_summary::Missing;

/// A counter with its key in the JSON and its words in the report.
struct Named {
    counter: Counter,
    key: &'static str,
    words: &'static str,
}

const fn named(counter: Counter, key: &'static str, words: &'static str) -> Named {
    Named { counter, key, words }
}

/// Why triggers began no burst.
const SKIPPED: [Named; 7] = [
    named(
        Counter::SkippedCode,
        "skipped_code",
        "triggers at code that is not copied (writable, generated, ours)",
    ),
    named(Counter::SkippedBuffers, "skipped_buffers", "triggers while no log buffer was free"),
    named(Counter::SkippedSeccomp, "skipped_seccomp", "triggers in threads under seccomp"),
    named(Counter::SkippedUnanswered, "skipped_unanswered", "triggers to which Sonde came too late"),
    named(Counter::SkippedGs, "skipped_gs", "triggers in threads that use the gs register themselves"),
    named(
        Counter::SkippedState,
        "skipped_state",
        "triggers with a processor state that is too large to save",
    ),
    named(Counter::SkippedThreads, "skipped_threads", "triggers in more threads than there is room for"),
];

/// Why bursts ended.
const ENDED: [Named; 9] = [
    named(Counter::EndedByChecks, "checks", "used up their length"),
    named(Counter::EndedBySyscall, "syscall", "ended at a system call"),
    named(Counter::EndedByInstruction, "instruction", "ended at an instruction that is not copied"),
    named(Counter::EndedByCode, "code", "ended at code that is not copied (writable, generated, unmapped)"),
    named(Counter::EndedByFault, "fault", "ended by a fault of the program"),
    named(Counter::EndedByCacheFull, "cache_full", "ended because the code cache was full"),
    named(Counter::EndedByBuffers, "buffers", "ended because no log buffer was free"),
    named(Counter::EndedByStop, "stop", "ended because Sonde stopped recording"),
    named(Counter::EndedByCold, "cold", "ended early in code that had not run in a burst before"),
];

/// What else can be lost.
const LOST: [Named; 1] =
    [named(Counter::LostBytes, "lost_bytes", "bytes of log lost because no buffer could be had")];

/// What there was none of is left out.
fn nonzero<'a>(totals: &'a Totals, list: &'a [Named]) -> impl Iterator<Item = (&'a Named, u64)> {
    list.iter().map(|n| (n, totals.counter(n.counter))).filter(|(_, count)| *count > 0)
}

/// Events of ours that are no counters of the probe.
fn ours(totals: &Totals) -> [(&'static str, u64, &'static str); 5] {
    [
        ("uncovered_threads", totals.uncovered, "threads that the trigger could not be put on"),
        (
            "let_go",
            totals.let_go,
            "times that a thread was let go because of its many signals; it is traced for moments only (with --in-place not at all), and an exec or a child of \
             it may be missed",
        ),
        ("unreadable_buffers", totals.lost.buffers, "log buffers that could not be read to their end"),
        ("unreadable_words", totals.lost.words, "log words in them"),
        ("mappings", totals.mappings.left_out(), "mappings of the program that were not kept"),
    ]
}

/// What was recorded and is not in the summaries, or not where it belongs: key, count, words. What there was none of is
/// left out.
pub fn missing(missing: &Missing) -> impl Iterator<Item = (&'static str, u64, &'static str)> {
    [
        ("unplaced_code", missing.unplaced_code, "blocks of code that lay in no known mapping"),
        ("unplaced_data", missing.unplaced_data, "references to memory that lay in no known mapping"),
        ("without_address", missing.without_address, "references whose address is not computed"),
        ("without_value", missing.without_value, "loads whose value was not recorded"),
        ("conditional", missing.conditional, "masked references, which may not have happened"),
        ("without_target", missing.without_target, "indirect branches whose target was not recorded"),
        ("gaps", missing.gaps, "parts of the log that could not be read"),
    ]
    .into_iter()
    .filter(|(_, count, _)| *count > 0)
}

/// For the JSON: what was dropped or skipped, by kind.
pub fn drops(totals: &Totals) -> BTreeMap<String, u64> {
    let counters = nonzero(totals, &SKIPPED).chain(nonzero(totals, &LOST));
    let counters = counters.map(|(n, count)| (n.key.to_string(), count));
    let ours = ours(totals).into_iter().filter(|o| o.1 > 0).map(|o| (o.0.to_string(), o.1));
    counters.chain(ours).collect()
}

/// For the report: the same in words.
pub fn in_words(totals: &Totals) -> Vec<(u64, &'static str)> {
    let counters = nonzero(totals, &SKIPPED).chain(nonzero(totals, &LOST));
    let ours = ours(totals).into_iter().filter(|o| o.1 > 0).map(|o| (o.1, o.2));
    counters.map(|(n, count)| (count, n.words)).chain(ours).collect()
}

/// What the key of something that was not seen means.
pub fn loss_in_words(key: &str) -> Option<&'static str> {
    let counters = SKIPPED.iter().chain(&LOST).map(|n| (n.key, n.words));
    let ours = ours(&Totals::default()).map(|(key, _, words)| (key, words));
    let analyses =
        ("inconsistent_analyses", "analyses that were left out: their numbers do not fit together");
    counters.chain(ours).chain([analyses]).find(|(known, _)| *known == key).map(|(_, words)| words)
}

/// For the JSON: why bursts ended.
pub fn ends(totals: &Totals) -> BTreeMap<String, u64> {
    nonzero(totals, &ENDED).map(|(n, count)| (n.key.to_string(), count)).collect()
}

/// For the report: the same in words, the most frequent first.
pub fn ends_in_words(totals: &Totals) -> Vec<(u64, &'static str)> {
    let mut ends: Vec<_> = nonzero(totals, &ENDED).map(|(n, count)| (count, n.words)).collect();
    ends.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    ends
}
