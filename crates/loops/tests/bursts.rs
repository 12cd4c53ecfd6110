//! Bursts that begin and end anywhere: whatever of a program they show, and in whatever order, only executions that
//! began and ended in one are counted as whole, with the iterations that they had.

mod machine;

use machine::Op::{self, Add, Call, Dec, Je, Jmp, Jne, Label, Mov, Ret, Test};
use machine::{Machine, Teller};
use sonde_loops::{Cut, ExactConfig, ExactReader, LoopsProfile, Weight};

/// A loop as it was written: its header, its body from label to label, iterations of every execution.
struct Written {
    header: &'static str,
    body: &'static [(&'static str, &'static str)],
    iterations: u64,
}

const fn written(
    header: &'static str,
    body: &'static [(&'static str, &'static str)],
    iterations: u64,
) -> Written {
    Written { header, body, iterations }
}

struct Program {
    name: &'static str,
    ops: Vec<Op>,
    loops: Vec<Written>,
}

const CX: u8 = 1;
const DX: u8 = 2;
const SI: u8 = 6;

fn programs() -> Vec<Program> {
    vec![simple(), nested(), tested_first(), calling(), entered_at_the_entry()]
}

/// The code before the loop falls into its header, so that its first block begins before it.
fn simple() -> Program {
    let ops = vec![
        Call("main"),
        Ret,
        Label("main"),
        Mov(DX, 12),
        Label("round"),
        Call("work"),
        Dec(DX),
        Jne("round"),
        Label("rounds"),
        Ret,
        Label("work"),
        Mov(CX, 9),
        Add,
        Label("loop"),
        Add,
        Add,
        Dec(CX),
        Jne("loop"),
        Label("done"),
        Add,
        Ret,
    ];
    let loops = vec![written("loop", &[("loop", "done")], 9), written("round", &[("round", "rounds")], 12)];
    Program { name: "simple", ops, loops }
}

/// Three levels in one activation, two loops in a row.
fn nested() -> Program {
    let ops = vec![
        Call("main"),
        Ret,
        Label("main"),
        Mov(DX, 6),
        Add,
        Label("outer"),
        Add,
        Mov(SI, 5),
        Label("middle"),
        Mov(CX, 7),
        Label("first"),
        Add,
        Dec(CX),
        Jne("first"),
        Label("between"),
        Mov(CX, 4),
        Add,
        Label("second"),
        Add,
        Add,
        Dec(CX),
        Jne("second"),
        Label("behind"),
        Dec(SI),
        Jne("middle"),
        Label("last"),
        Add,
        Dec(DX),
        Jne("outer"),
        Label("end"),
        Add,
        Ret,
    ];
    let loops = vec![
        written("first", &[("first", "between")], 7),
        written("second", &[("second", "behind")], 4),
        written("middle", &[("middle", "last")], 5),
        written("outer", &[("outer", "end")], 6),
    ];
    Program { name: "nested", ops, loops }
}

/// As compilers lay out loops without optimization: entered by a jump to the test, which lies below the body. The
/// last pass through a test is no iteration.
fn tested_first() -> Program {
    let ops = vec![
        Call("main"),
        Ret,
        Label("main"),
        Mov(DX, 9),
        Jmp("outer test"),
        Label("outer body"),
        Mov(CX, 6),
        Jmp("test"),
        Label("body"),
        Add,
        Add,
        Label("test"),
        Add,
        Dec(CX),
        Jne("body"),
        Label("out"),
        Add,
        Label("outer test"),
        Dec(DX),
        Jne("outer body"),
        Label("end"),
        Add,
        Ret,
    ];
    let loops =
        vec![written("test", &[("body", "out")], 5), written("outer test", &[("outer body", "end")], 8)];
    Program { name: "tested first", ops, loops }
}

/// Calls, a rare way out of line, and a way round the call.
fn calling() -> Program {
    let ops = vec![
        Call("main"),
        Ret,
        Label("rare"),
        Add,
        Add,
        Jmp("common"),
        Label("main"),
        Mov(SI, 4),
        Label("outer"),
        Mov(DX, 20),
        Label("inner"),
        Test(DX, 7),
        Je("rare"),
        Label("common"),
        Test(DX, 3),
        Jne("without"),
        Call("leaf"),
        Label("without"),
        Add,
        Dec(DX),
        Jne("inner"),
        Label("left"),
        Add,
        Dec(SI),
        Jne("outer"),
        Label("end"),
        Ret,
        Label("leaf"),
        Mov(CX, 3),
        Label("leaf loop"),
        Add,
        Dec(CX),
        Jne("leaf loop"),
        Label("leaf end"),
        Ret,
    ];
    let loops = vec![
        written("leaf loop", &[("leaf loop", "leaf end")], 3),
        written("inner", &[("inner", "left"), ("rare", "main")], 20),
        written("outer", &[("outer", "end"), ("rare", "main")], 4),
    ];
    Program { name: "calling", ops, loops }
}

/// The loop goes back to the entry of its function.
fn entered_at_the_entry() -> Program {
    let ops = vec![
        Call("main"),
        Ret,
        Label("main"),
        Mov(DX, 10),
        Label("round"),
        Mov(CX, 8),
        Call("work"),
        Dec(DX),
        Jne("round"),
        Label("rounds"),
        Ret,
        Label("work"),
        Add,
        Add,
        Dec(CX),
        Jne("work"),
        Label("end"),
        Add,
        Ret,
    ];
    let loops = vec![written("work", &[("work", "end")], 8), written("round", &[("round", "rounds")], 10)];
    Program { name: "entered at the entry", ops, loops }
}

/// Executions of a loop: numbers of the first instruction and of the first one behind.
fn executions(machine: &Machine, l: &Written) -> Vec<(usize, usize)> {
    let holds = |pc| l.body.iter().any(|(a, b)| (machine.label(a)..machine.label(b)).contains(&pc));
    let mut all = Vec::new();
    let mut active: Option<(usize, u32)> = None;
    for (i, done) in machine.done.iter().enumerate() {
        if let Some((from, depth)) = active {
            if done.depth < depth || (done.depth == depth && !holds(done.pc)) {
                all.push((from, i));
                active = None;
            }
        } else if holds(done.pc) {
            assert_eq!(done.pc, machine.label(l.header));
            active = Some((i, done.depth));
        }
    }
    all
}

/// What bursts showed: each from one instruction up to before another.
struct Shown<'a> {
    program: &'a Program,
    machine: &'a Machine,
    bursts: Vec<(usize, usize)>,
    profile: LoopsProfile,
}

impl Shown<'_> {
    /// Checks all loops. Gives the executions found whole, and how many could have been.
    fn check(&self, what: &str) -> (u64, u64) {
        let name = self.program.name;
        self.profile.check().unwrap();
        let (mut found, mut possible) = (0, 0);
        for l in &self.program.loops {
            let whole = |burst: &(usize, usize), e: &(usize, usize)| burst.0 < e.0 && e.1 < burst.1;
            let executions = executions(self.machine, l);
            let seen: usize =
                self.bursts.iter().map(|b| executions.iter().filter(|e| whole(b, e)).count()).sum();
            possible += seen as u64;
            let Some(stats) = self.profile.get(self.machine.label(l.header)) else { continue };
            assert!(
                stats.whole.executions <= seen as u64,
                "{name}, {what}: {seen} of {} in {stats:?}",
                l.header
            );
            if stats.whole.executions > 0 {
                let range = (stats.whole.least, stats.whole.most);
                assert_eq!(range, (l.iterations, l.iterations), "{name}, {what}: {} {stats:?}", l.header);
            }
            found += stats.whole.executions;
        }
        // Where no way into a function was seen, its entry is a guess, and loops can have other headers; they say so.
        for l in &self.profile.loops {
            let known = self.program.loops.iter().any(|w| self.machine.label(w.header) == l.header);
            assert!(known || l.guessed || l.whole.executions == 0, "{name}, {what}: {l:?}");
        }
        (found, possible)
    }
}

fn show<'a>(program: &'a Program, machine: &'a Machine, bursts: &[(usize, usize)]) -> Shown<'a> {
    show_with(ExactConfig::default(), program, machine, bursts)
}

fn show_with<'a>(
    config: ExactConfig,
    program: &'a Program,
    machine: &'a Machine,
    bursts: &[(usize, usize)],
) -> Shown<'a> {
    let mut reader = ExactReader::new(config).unwrap();
    let mut teller = Teller::new(machine);
    let bursts =
        bursts.iter().map(|(from, passes)| (*from, teller.burst(*from, *passes, &mut reader))).collect();
    Shown { program, machine, bursts, profile: reader.finish(teller.decoder.catalog()) }
}

#[test]
fn all_of_a_program_is_exact() {
    for program in programs() {
        let machine = Machine::run(&program.ops);
        let shown = show(&program, &machine, &[(0, usize::MAX)]);
        for l in &program.loops {
            let stats = shown.profile.get(machine.label(l.header)).unwrap();
            let expected = executions(&machine, l).len() as u64;
            assert_eq!(stats.whole.executions, expected, "{} {stats:?}", program.name);
            assert_eq!(stats.cut, Cut::default(), "{} {stats:?}", program.name);
        }
        let (found, possible) = shown.check("all of it");
        assert_eq!(found, possible);
    }
}

#[test]
fn a_burst_alone_counts_nothing_that_it_did_not_see_whole() {
    for program in programs() {
        let machine = Machine::run(&program.ops);
        for from in 0..machine.done.len() {
            for passes in [1, 3, 10, 40, 200] {
                show(&program, &machine, &[(from, passes)]).check(&format!("{passes} passes from {from}"));
            }
        }
    }
}

/// Numbers below `n` in an order without pattern, each once; `n` of them.
fn shuffled(n: usize, seed: u64) -> Vec<usize> {
    let mut all: Vec<usize> = (0..n).collect();
    let mut state = seed;
    for i in (1..n).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        all.swap(i, (state >> 33) as usize % (i + 1));
    }
    all
}

#[test]
fn bursts_from_every_instruction_count_nothing_that_they_did_not_see_whole() {
    for program in programs() {
        let machine = Machine::run(&program.ops);
        for seed in 0..6 {
            for passes in [4, 30, 120] {
                // All of them twice: at the second time all code is known.
                let order = shuffled(machine.done.len(), seed).repeat(2);
                let bursts: Vec<(usize, usize)> = order.iter().map(|from| (*from, passes)).collect();
                for count in [2, 5, 20, bursts.len()] {
                    let shown = show(&program, &machine, &bursts[..count]);
                    let (found, possible) = shown.check(&format!("{count} of {passes} passes, {seed}"));
                    let known = count == bursts.len();
                    assert!(!known || found * 2 >= possible, "{}: {found} of {possible}", program.name);
                }
            }
        }
    }
}

#[test]
fn without_room_less_is_known_to_be_whole_but_nothing_wrong() {
    let (mut less, mut left_out) = (0, 0);
    for program in programs() {
        let machine = Machine::run(&program.ops);
        let bursts: Vec<(usize, usize)> =
            shuffled(machine.done.len(), 1).repeat(2).iter().map(|from| (*from, 30)).collect();
        let all = show(&program, &machine, &bursts);
        let config = ExactConfig { max_claims: 64, ..ExactConfig::default() };
        let some = show_with(config, &program, &machine, &bursts);
        let unfollowed = |shown: &Shown<'_>| {
            shown.profile.doubts.unplaced + shown.profile.loops.iter().map(|l| l.cut.passes).sum::<u64>()
        };
        less += all.check("room").0.saturating_sub(some.check("little room").0);
        left_out += unfollowed(&some).saturating_sub(unfollowed(&all));
    }
    // Small programs may fit; of the others less is known, and that is counted.
    assert!(less > 0 && left_out > 0, "{less} {left_out}");
    let config = ExactConfig { max_claims: 1, ..ExactConfig::default() };
    assert!(ExactReader::new(config).is_err());
}

/// Rounds of a small loop, then of more blocks than are kept: so many tests whose ways meet again.
fn beyond(blocks: usize) -> Program {
    let mut ops = vec![
        Call("main"),
        Ret,
        Label("main"),
        Mov(DX, 20),
        Label("round"),
        Mov(CX, 9),
        Label("loop"),
        Add,
        Dec(CX),
        Jne("loop"),
        Label("done"),
    ];
    for i in 0..blocks {
        let meet: &'static str = format!("meet {i}").leak();
        ops.extend([Test(DX, 1), Jne(meet), Add, Label(meet)]);
    }
    ops.extend([Dec(DX), Jne("round"), Label("rounds"), Ret]);
    let loops = vec![written("loop", &[("loop", "done")], 9), written("round", &[("round", "rounds")], 20)];
    Program { name: "beyond the most blocks", ops, loops }
}

#[test]
fn a_burst_stays_one_burst_when_code_beyond_the_limit_interrupts_it() {
    let program = beyond(200);
    let machine = Machine::run(&program.ops);
    let limits = ExactConfig { weight: Weight::Bursts, ..ExactConfig::default() };
    let fed = [(0, usize::MAX), (0, 400), (500, 400), (1500, 2000)];
    let whole = show_with(limits, &program, &machine, &fed);
    let cut = show_with(ExactConfig { max_blocks: 64, ..limits }, &program, &machine, &fed);
    assert_eq!(whole.profile.doubts.beyond_blocks, 0);
    assert!(cut.profile.doubts.beyond_blocks > 0, "{:?}", cut.profile.doubts);
    for shown in [&whole, &cut] {
        shown.profile.check().unwrap();
        assert_eq!((shown.profile.bursts, shown.profile.weight), (4, 4.0));
        let instructions: usize = shown.bursts.iter().map(|(from, to)| to - from).sum();
        assert_eq!(shown.profile.instructions, instructions as u64);
    }
}

#[test]
fn a_bursts_time_belongs_to_the_loops_around_where_it_began() {
    let program = beyond(3);
    let machine = Machine::run(&program.ops);
    let limits = ExactConfig { weight: Weight::Bursts, ..ExactConfig::default() };
    // From everywhere, long enough for all code around to be seen; what a burst does later has no part in its time.
    let fed: Vec<(usize, usize)> = (0..machine.done.len() - 40).step_by(7).map(|from| (from, 300)).collect();
    let shown = show_with(limits, &program, &machine, &fed);
    shown.profile.check().unwrap();
    let within = |from: &str, to: &str| {
        let range = machine.label(from)..machine.label(to);
        fed.iter().filter(|(at, _)| range.contains(&machine.done[*at].pc)).count() as f64
    };
    let (inner, outer) = (within("loop", "done"), within("round", "rounds"));
    let weights = |label: &str| {
        let found = shown.profile.get(machine.label(label)).unwrap();
        (found.own_weight, found.inclusive_weight)
    };
    assert_eq!(weights("loop"), (inner, inner));
    assert_eq!(weights("round"), (outer - inner, outer));
    assert!(inner > 0.0 && outer > inner && shown.profile.weight == fed.len() as f64);
}
