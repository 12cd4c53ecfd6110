//! Trace files: what is written comes back, and no damage does more than it must.

mod synthetic;

use proptest::prelude::*;
use sonde_event::check::Check;
use sonde_event::maps::Mapping;
use sonde_event::trace::{Chunk, End, Item, Meta, TraceError, TraceReader, TraceWriter, replay};
use sonde_event::{Count, Counts, Detail};
use std::io::{self, Read, Write};
use synthetic::{BASE, burst, program, program_watched};

const THREADS: i32 = 3;
const LOGS: u64 = 12;

fn meta() -> Meta {
    Meta { command: vec!["a".into(), "b c".into()], detail: "values".into(), ..Meta::default() }
}

fn mapping() -> Mapping {
    Mapping {
        start: 0x40_0000,
        end: 0x40_2000,
        offset: 0,
        permissions: "r-xp".into(),
        name: "/bin/a".into(),
        build_id: vec![1, 2, 3],
    }
}

/// A trace with several chunks of log.
fn trace() -> Vec<u8> {
    let program = program(Detail::Values);
    let mut writer = TraceWriter::new(Vec::new(), &meta()).unwrap();
    writer.mapping(&mapping());
    for superblock in &program {
        writer.description(&superblock.words);
    }
    for i in 0..LOGS {
        let tid = (i % THREADS as u64) as i32;
        writer.log(tid, &burst(&program, tid, 1000 * i));
    }
    let end = End { status: Some(3), ..End::default() };
    writer.finish(&end).unwrap()
}

fn counts(bytes: &[u8]) -> (Counts, sonde_event::trace::Replayed) {
    let mut count = Count::default();
    let replayed = replay(&mut TraceReader::new(bytes).unwrap(), &mut count).unwrap();
    (count.counts, replayed)
}

#[test]
fn what_is_written_comes_back() {
    let (counts, replayed) = counts(&trace());
    assert!(replayed.is_whole());
    assert_eq!((counts.bursts, counts.runs), (LOGS, 5 * LOGS));
    assert_eq!(replayed.meta, meta());
    assert_eq!(replayed.end.unwrap().status, Some(3));
    assert_eq!(replayed.mappings.all(), [mapping()]);
    let mut check = Check::default();
    replay(&mut TraceReader::new(&trace()[..]).unwrap(), &mut check).unwrap();
    assert!(check.is_clean(), "{:?}", check.violations);
}

#[test]
fn every_truncation_gives_all_whole_chunks_and_is_told() {
    let whole = trace();
    let mut last = 0;
    let mut ends = Vec::new();
    let mut reader = TraceReader::new(&whole[..]).unwrap();
    let mut at = 16;
    while let Some(item) = reader.next().unwrap() {
        let Item::Chunk { stored, .. } = item else { panic!("{item:?}") };
        at += stored as usize;
        ends.push(at);
    }
    assert_eq!(at, whole.len());
    for len in 16..whole.len() {
        let mut reader = TraceReader::new(&whole[..len]).unwrap();
        let (mut chunks, mut truncated) = (0, false);
        while let Some(item) = reader.next().unwrap() {
            match item {
                Item::Chunk { .. } => chunks += 1,
                Item::Truncated { .. } => truncated = true,
                Item::Damaged { .. } => panic!("{len}: {item:?}"),
            }
        }
        let expected = ends.iter().filter(|end| **end <= len).count();
        assert_eq!(chunks, expected, "{len} bytes");
        let at_a_boundary = len == 16 || ends.contains(&len);
        assert_eq!(truncated, !at_a_boundary, "{len} bytes");
        assert!(chunks >= last);
        last = chunks;
    }
}

#[test]
fn every_flipped_bit_is_noticed_and_costs_one_chunk() {
    let whole = trace();
    let read = |bytes: &[u8]| {
        let mut reader = TraceReader::new(bytes).unwrap();
        let (mut good, mut bad) = (Vec::new(), 0);
        while let Some(item) = reader.next().unwrap() {
            match item {
                Item::Chunk { chunk, .. } => good.push(chunk),
                _ => bad += 1,
            }
        }
        (good, bad)
    };
    let (all, _) = read(&whole);
    for at in 16..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        let (good, bad) = read(&bytes);
        assert!(bad >= 1, "byte {at}");
        assert_eq!(good.len(), all.len() - 1, "byte {at}");
        assert!(good.iter().all(|chunk| all.contains(chunk)), "byte {at}");
    }
}

#[test]
fn missing_and_doubled_chunks_are_told() {
    let whole = trace();
    let mut reader = TraceReader::new(&whole[..]).unwrap();
    let mut pieces = vec![whole[..16].to_vec()];
    let mut at = 16;
    while let Some(Item::Chunk { stored, .. }) = reader.next().unwrap() {
        pieces.push(whole[at..at + stored as usize].to_vec());
        at += stored as usize;
    }
    let without: Vec<u8> = [&pieces[..5], &pieces[6..]].concat().concat();
    assert_eq!(counts(&without).1.damages, 1);
    let twice: Vec<u8> = [&pieces[..5], &pieces[4..]].concat().concat();
    assert!(counts(&twice).1.damages >= 1);
}

#[test]
fn a_log_without_its_descriptions_is_an_error_not_a_guess() {
    let mut writer = TraceWriter::new(Vec::new(), &meta()).unwrap();
    writer.log(1, &burst(&program(Detail::Values), 1, 10));
    let bytes = writer.finish(&End::default()).unwrap();
    let (counts, replayed) = counts(&bytes);
    assert_eq!((counts.runs, replayed.errors, replayed.lost.buffers), (0, 1, 1));
    assert!(!replayed.is_whole());
}

#[test]
fn other_files_are_refused() {
    assert!(matches!(TraceReader::new(&b""[..]), Err(TraceError::NotATrace)));
    assert!(matches!(TraceReader::new(&b"SONDETRC"[..]), Err(TraceError::NotATrace)));
    assert!(matches!(TraceReader::new(&[7u8; 100][..]), Err(TraceError::NotATrace)));
    let mut newer = trace();
    newer[8] = 2;
    assert!(matches!(TraceReader::new(&newer[..]), Err(TraceError::Version(2))));
}

/// A disk that is full after some bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.0 {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        self.0 -= bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_told_at_the_end() {
    let mut writer = TraceWriter::new(Full(1000), &meta()).unwrap();
    for _ in 0..10 {
        writer.log(1, &(0..1000u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect::<Vec<_>>());
    }
    let error = writer.finish(&End::default()).err().unwrap();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}

/// Gives one byte at a time, as a slow pipe does.
struct Drops<'a>(&'a [u8]);

impl Read for Drops<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let n = room.len().min(1);
        self.0.read(&mut room[..n])
    }
}

#[test]
fn a_pipe_will_do() {
    let whole = trace();
    let mut count = Count::default();
    let replayed = replay(&mut TraceReader::new(Drops(&whole)).unwrap(), &mut count).unwrap();
    assert!(replayed.is_whole());
}

/// Reads everything there is; whatever it is, it must not panic, hang, or take more memory than chunks may.
fn read_all(bytes: &[u8]) {
    if let Ok(mut reader) = TraceReader::new(bytes) {
        while let Ok(Some(item)) = reader.next() {
            if let Item::Chunk { chunk: Chunk::Log { words, .. }, .. } = &item {
                assert!(words.len() * 8 <= sonde_event::trace::MAX_PLAIN);
            }
        }
    }
    if let Ok(mut reader) = TraceReader::new(bytes) {
        let mut readers = (Count::default(), Check::default());
        let _ = replay(&mut reader, &mut readers);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn mutated_traces_never_panic(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        cut in any::<prop::sample::Index>(),
        insert in prop::collection::vec(any::<u8>(), 0..50),
    ) {
        let mut bytes = trace();
        for (at, with) in edits {
            let at = at.index(bytes.len());
            bytes[at] = with;
        }
        let at = cut.index(bytes.len());
        bytes.splice(at..at, insert);
        read_all(&bytes);
    }

    /// Damage below the checksums: chunks that are well formed but hold nonsense.
    #[test]
    fn well_formed_nonsense_never_panics(
        descriptions in prop::collection::vec(any::<u64>(), 0..60),
        logs in prop::collection::vec(prop::collection::vec(prop_oneof![0u64..40, any::<u64>()], 0..60), 0..4),
        changed in any::<prop::sample::Index>(),
        with in any::<u64>(),
    ) {
        let mut writer = TraceWriter::new(Vec::new(), &meta()).unwrap();
        let mut good: Vec<u64> = program(Detail::Values).iter().flat_map(|s| s.words.clone()).collect();
        let at = changed.index(good.len());
        good[at] = with;
        writer.description(&good);
        writer.description(&descriptions);
        for log in &logs {
            writer.log(1, log);
        }
        read_all(&writer.finish(&End::default()).unwrap());
    }
}

#[test]
fn a_trace_of_which_not_everything_was_recorded_comes_back() {
    let mut writer = TraceWriter::new(Vec::new(), &meta()).unwrap();
    let masked = program_watched(&|pc| pc == BASE);
    masked.iter().for_each(|superblock| writer.description(&superblock.words));
    writer.log(1, &burst(&masked, 1, 1000));
    let bytes = writer.finish(&End::default()).unwrap();
    let mut check = Check::default();
    let replayed = replay(&mut TraceReader::new(&bytes[..]).unwrap(), &mut check).unwrap();
    assert!(replayed.is_whole() && check.is_clean(), "{:?} {:?}", replayed.first_error, check.violations);
    let (masked, _) = counts(&bytes);
    let whole = counts(&trace()).0;
    assert_eq!((masked.runs, masked.instructions), (whole.runs / LOGS, whole.instructions / LOGS));
    assert!(masked.unrecorded > 0 && check.unrecorded == masked.unrecorded && whole.unrecorded == 0);
}
