//! Every share follows what the stream says that a burst stands for.

#[path = "../../event/tests/synthetic/mod.rs"]
mod synthetic;

use sonde_analysis::{Analyses, Config, Findings, Wanted};
use sonde_event::maps::Mapping;
use sonde_event::{Cause, Decoder, Detail, ExitKind, Reader};
use sonde_summary::{BurstTime, Kind, Trees};
use sonde_wire::marker;
use std::time::Duration;
use synthetic::{BASE, begin, end, program};

const PERIOD: Duration = Duration::from_millis(2);

/// A burst in the loop, and one in the function, which stand for these times.
fn findings(paces: [Option<Duration>; 2]) -> Findings {
    let program = program(Detail::Values);
    let mut decoder = Decoder::new(Detail::Values);
    program.iter().for_each(|d| decoder.describe(&d.words).unwrap());
    let mut config = Config { wanted: Wanted::parse("code,calls,loops").unwrap(), ..Config::default() };
    config.summary.burst_time = Some(BurstTime::new(PERIOD));
    let mut analyses = Analyses::new(&config).unwrap();
    analyses.mapping(&Mapping::parse("00400000-00410000 r-xp 00000000 fe:01 1 /opt/made-up").unwrap());
    let again = program[0].record(program[0].exit(ExitKind::Taken), |_| 0);
    let back = program[2].record(program[2].exit(ExitKind::Return), |_| 0);
    let passes = [(BASE, again.repeat(5)), (BASE + 0x20, back)];
    for ((tid, (pc, passes)), pace) in (1..).zip(passes).zip(paces) {
        let mut log = begin(tid, 1, pc);
        let marked = |time: Duration| [marker::header(marker::Kind::Pace, 2).into(), time.as_nanos() as u64];
        log.extend(pace.into_iter().flat_map(marked));
        log.extend(passes);
        log.extend(end(100, Cause::Checks, BASE));
        decoder.log(tid, &log, &mut analyses).unwrap();
    }
    analyses.finish(decoder.catalog())
}

/// The part of each result that the first burst has.
fn shares(findings: &Findings) -> [f64; 3] {
    let Trees::One(code) = &findings.summary.of(Kind::Code).unwrap().tree else { panic!() };
    let calls = findings.calls.as_ref().unwrap();
    let loops = findings.loops.as_ref().unwrap();
    let in_loop = |branch: u64| branch & 0xfff < 0x20;
    let region = calls.regions.iter().find(|region| in_loop(region.branch)).expect("the loop's branch");
    let inside = code.nodes.iter().filter(|node| in_loop(node.range.lo)).map(|node| node.own).sum::<u64>();
    [
        inside as f64 / code.events as f64,
        region.weight as f64 / calls.weight as f64,
        loops.share(loops.loops[0].own_weight),
    ]
}

#[test]
fn bursts_weigh_what_they_stand_for() {
    let close = |shares: [f64; 3], to: f64| shares.iter().all(|share| (share - to).abs() < 0.001);
    let [none, one, three] = [None, Some(Duration::from_millis(1)), Some(Duration::from_millis(3))];
    let plain = shares(&findings([none, none]));
    assert!(close(plain, 0.5), "{plain:?}");
    let paced = shares(&findings([one, three]));
    assert!(close(paced, 0.25), "{paced:?}");
    // What is not said is the period.
    let mixed = shares(&findings([three, none]));
    assert!(close(mixed, 0.6), "{mixed:?}");
}
