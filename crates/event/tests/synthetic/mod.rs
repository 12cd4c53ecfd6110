//! A made-up program: descriptions as the probe publishes them, and log records with the words that a plan asks for.
#![allow(dead_code, reason = "each test file uses a part of it")]

use sonde_event::Detail;
use sonde_wire::descriptor::{HEAD_WORDS, Head};
use sonde_wire::marker::{self, Cause, Kind};
use sonde_x64::plan::{ExitKind, Limits, NoSink, Plan, Planner, Watch};

/// Where the code lies.
pub const BASE: u64 = 0x40_1000;

/// A loop that adds up an array, then returns: a conditional back-edge, loads, a store, a call and a return.
///
/// ```text
/// 401000 mov rax, [rdi]        load
/// 401003 add [rsi], rax        load, store
/// 401006 add rdi, 8
/// 40100a cmp rdi, rdx
/// 40100d jne 401000
/// 40100f call 401020           store (the return address)
/// 401014 ret                   load
/// ...
/// 401020 rep movsb             load, store, repeated
/// 401022 movzx eax, byte fs:[0x10]
/// 40102b ret
/// ```
pub const CODE: [u8; 0x2c] = [
    0x48, 0x8b, 0x07, 0x48, 0x01, 0x06, 0x48, 0x83, 0xc7, 0x08, 0x48, 0x39, 0xd7, 0x75, 0xf1, 0xe8, 0x0c,
    0x00, 0x00, 0x00, 0xc3, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xf3, 0xa4,
    0x64, 0x0f, 0xb6, 0x04, 0x25, 0x10, 0x00, 0x00, 0x00, 0xc3,
];

/// One superblock of the program with its plan and its description.
pub struct Described {
    pub first_exit: u32,
    pub plan: Plan,
    pub words: Vec<u64>,
}

/// Describes the superblock at `pc`.
pub fn describe(code: &[u8], pc: u64, first_exit: u32, detail: Detail) -> Described {
    describe_watched(code, pc, first_exit, detail, Watch::All)
}

/// The same, recording only what is wanted.
pub fn describe_watched(
    code: &[u8],
    pc: u64,
    first_exit: u32,
    detail: Detail,
    watch: Watch<'_>,
) -> Described {
    let mut plan = Plan::default();
    let mut fetch =
        |at: u64| code.get(usize::try_from(at.checked_sub(BASE)?).ok()?..).filter(|bytes| !bytes.is_empty());
    let mut planner = Planner::new(detail, Limits::default());
    planner.plan_watched(pc, usize::MAX, watch, &mut fetch, &mut plan, &mut NoSink);
    let segments: Vec<(u64, u32)> = plan.segments.iter().copied().filter(|s| s.1 > 0).collect();
    let mut words = vec![0; HEAD_WORDS];
    words.extend((plan.unrecorded != 0).then_some(plan.unrecorded));
    for (start, len) in &segments {
        words.extend([*start, u64::from(*len)]);
    }
    for (start, len) in &segments {
        let from = (start - BASE) as usize;
        for bytes in code[from..from + *len as usize].chunks(8) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            words.push(u64::from_le_bytes(word));
        }
    }
    let head = Head {
        bytes: words.len() as u32 * 8,
        first_exit,
        pc,
        exits: plan.exits.len() as u16,
        insns: plan.insns.len() as u16,
        segments: segments.len() as u16,
        last_kind: plan.exits.last().map_or(0, |exit| kind_code(exit.kind)),
        unrecorded: plan.unrecorded != 0,
        generation: 0,
    };
    words[..HEAD_WORDS].copy_from_slice(&head.encode());
    Described { first_exit, plan, words }
}

fn kind_code(kind: ExitKind) -> u8 {
    use ExitKind::{Call, Fall, IndirectCall, IndirectJump, Jump, Native, Return, Syscall, Taken};
    let kinds = [Taken, Jump, Call, Return, IndirectJump, IndirectCall, Syscall, Native, Fall];
    kinds.iter().position(|k| *k == kind).unwrap() as u8
}

impl Described {
    /// A record that leaves by an exit; word `i` behind the header has the value that `value` gives it.
    pub fn record(&self, exit: usize, value: impl Fn(usize) -> u64) -> Vec<u64> {
        let words = self.plan.exits[exit].words as usize;
        let header = u64::from(self.first_exit + exit as u32 + 1);
        std::iter::once(header).chain((1..words).map(value)).collect()
    }

    /// The exit of a kind.
    pub fn exit(&self, kind: ExitKind) -> usize {
        self.plan.exits.iter().position(|e| e.kind == kind).unwrap()
    }
}

/// The whole program: the loop, what follows the call, the function.
pub fn program(detail: Detail) -> [Described; 3] {
    let body = describe(&CODE, BASE, 0, detail);
    let after = describe(&CODE, BASE + 0x14, 10, detail);
    let function = describe(&CODE, BASE + 0x20, 20, detail);
    [body, after, function]
}

pub fn begin(tid: i32, time: u64, pc: u64) -> Vec<u64> {
    vec![u64::from(marker::header(Kind::Begin, 5)), tid as u64, time, 0x7f00_0000_0000, pc]
}

pub fn end(time: u64, cause: Cause, pc: u64) -> Vec<u64> {
    vec![u64::from(marker::header(Kind::End, 4)), time, cause as u64, pc]
}

/// A true burst: three rounds of the loop, the call, its return, the end.
pub fn burst(program: &[Described; 3], tid: i32, time: u64) -> Vec<u64> {
    let [body, after, function] = program;
    let address = |i: usize| 0x1_0000 + 8 * i as u64;
    let mut log = begin(tid, time, BASE);
    for _ in 0..2 {
        log.extend(body.record(body.exit(ExitKind::Taken), address));
    }
    log.extend(body.record(body.exit(ExitKind::Call), address));
    log.extend(function.record(function.exit(ExitKind::Return), address));
    log.extend(after.record(after.exit(ExitKind::Return), address));
    log.extend(end(time + 100, Cause::Checks, 0x40_2000));
    log
}

/// The whole program, with only wanted loads recorded.
pub fn program_watched(wanted: &dyn Fn(u64) -> bool) -> [Described; 3] {
    let of = |pc, first| describe_watched(&CODE, pc, first, Detail::Values, Watch::Loads(wanted));
    [of(BASE, 0), of(BASE + 0x14, 10), of(BASE + 0x20, 20)]
}
