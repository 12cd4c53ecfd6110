//! What every copy must hold to: no flag is touched, exits are where the plan says, known addresses are not logged twice.

mod common;

use common::layout;
use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use sonde_x64::emit::{Emitter, Mode, Unchecked};
use sonde_x64::memory::{Access, Value};
use sonde_x64::plan::{Detail, ExitKind, Limits, NoSink, Plan, Planner, Watch};

const PC: u64 = 0x40_1000;

fn plan(code: &[u8], detail: Detail) -> Plan {
    let mut plan = Plan::default();
    let mut fetch = |at: u64| code.get((at - PC) as usize..);
    Planner::new(detail, Limits::default()).plan(PC, 48, &mut fetch, &mut plan, &mut NoSink);
    plan
}

/// The copy of a piece of code, decoded.
fn copy(code: &[u8], checks: bool) -> Vec<Instruction> {
    let mut emitter = Emitter::new(layout(), Mode { checks, returns: true, record: true });
    emitter.start(PC, 0x7000_0000, 5);
    let (mut out, mut fetch) = (Plan::default(), |at: u64| code.get((at - PC) as usize..));
    Planner::new(Detail::Values, Limits::default()).plan(PC, 48, &mut fetch, &mut out, &mut emitter);
    Decoder::with_ip(64, &emitter.code.bytes, 0x7000_0000, DecoderOptions::NONE).into_iter().collect()
}

/// Moves, vector moves, stack and stolen registers, rip-relative operands, a conditional branch, a call: none of them
/// changes a flag.
const FLAGLESS: &[&[u8]] = &[
    &[0x48, 0x8b, 0x47, 0x08],                   // mov rax, [rdi+8]
    &[0x48, 0x89, 0x04, 0xce],                   // mov [rsi+rcx*8], rax
    &[0x4d, 0x8b, 0x7e, 0x10],                   // mov r15, [r14+16]
    &[0x4f, 0x89, 0x74, 0x3e, 0x04],             // mov [r14+r15+4], r14
    &[0x48, 0x8b, 0x05, 0x10, 0x00, 0x00, 0x00], // mov rax, [rip+16]
    &[0x41, 0x57],                               // push r15
    &[0x41, 0x5e],                               // pop r14
    &[0x0f, 0x10, 0x07],                         // movups xmm0, [rdi]
    &[0xc5, 0xfc, 0x11, 0x06],                   // vmovups [rsi], ymm0
    &[0xf3, 0xa4],                               // rep movsb
    &[0x74, 0x10],                               // je +16
    &[0xe8, 0x00, 0x01, 0x00, 0x00],             // call +256
];

#[test]
fn no_instruction_of_the_copy_touches_a_flag() {
    let code: Vec<u8> = FLAGLESS.concat();
    for checks in [false, true] {
        let copy = copy(&code, checks);
        assert!(copy.len() > 40, "{} instructions", copy.len());
        for insn in &copy {
            assert!(!insn.is_invalid());
            assert_eq!(insn.rflags_modified(), 0, "{:?} at {:#x}", insn.code(), insn.ip());
        }
    }
}

#[test]
fn the_program_never_sees_the_stolen_registers_used_for_the_log() {
    // Every write of r15 in the copy moves the log on; the program's own r14 and r15 are read from and written to memory.
    for insn in copy(&FLAGLESS.concat(), false) {
        let writes_r15 = insn.op_count() > 0
            && insn.op0_kind() == OpKind::Register
            && insn.op0_register().full_register() == Register::R15
            && !matches!(insn.mnemonic(), Mnemonic::Push | Mnemonic::Cmp | Mnemonic::Test);
        assert!(!writes_r15 || insn.code() == Code::Lea_r64_m, "{:?} at {:#x}", insn.code(), insn.ip());
    }
}

#[test]
fn a_base_is_logged_once_however_often_it_is_used() {
    // mov rax,[rdi]; mov rdx,[rdi+8]; add rdi,16; mov rcx,[rdi]; ret
    let code = [0x48, 0x8b, 0x07, 0x48, 0x8b, 0x57, 0x08, 0x48, 0x83, 0xc7, 0x10, 0x48, 0x8b, 0x0f, 0xc3];
    let addresses = plan(&code, Detail::Addresses);
    // The header, rdi, and rsp for the return.
    assert_eq!(addresses.exits.last().map(|e| e.words), Some(3));
    let offsets: Vec<u64> = addresses.refs[..3].iter().map(|r| r.address.unwrap().offset).collect();
    assert_eq!(offsets, [0, 8, 16]);
    let values = plan(&code, Detail::Values);
    assert_eq!(values.exits.last().map(|e| e.words), Some(6));
    assert_eq!(values.refs.last().map(|r| r.value), Some(Value::NextPc));
    assert_eq!(plan(&code, Detail::Blocks).exits.last().map(|e| e.words), Some(1));
}

#[test]
fn exits_are_where_control_can_leave() {
    // L: dec ecx; jne L; push rbx; syscall
    let code = [0xff, 0xc9, 0x75, 0xfc, 0x53, 0x0f, 0x05];
    let plan = plan(&code, Detail::Values);
    let exits: Vec<(ExitKind, u16, u64, bool)> =
        plan.exits.iter().map(|e| (e.kind, e.insns, e.target, e.check)).collect();
    assert_eq!(exits, [(ExitKind::Taken, 2, PC, true), (ExitKind::Syscall, 3, PC + 5, false)]);
    assert_eq!(plan.refs.iter().map(|r| (r.insn, r.access)).collect::<Vec<_>>(), [(2, Access::Store)]);
}

#[test]
fn no_bytes_are_no_code() {
    let mut plan = Plan::default();
    Planner::new(Detail::Values, Limits::default()).plan(PC, 48, &mut |_| Some(&[]), &mut plan, &mut NoSink);
    assert_eq!((plan.insns.len(), plan.exits.len()), (0, 1));
}

/// A loop that ends in a call and a return: what counts is decided by branch, and by kind for returns.
#[test]
fn checks_are_left_out_where_a_branch_keeps_none() {
    // jne back to the start; call +256. And: ret.
    let (code, ret) = ([0x75, 0xfe, 0xe8, 0x00, 0x01, 0x00, 0x00], [0xc3]);
    let checks = |code: &[u8], returns: bool, offsets: &'static [u32]| {
        let mut emitter = Emitter::new(layout(), Mode { checks: true, returns, record: true });
        emitter.unchecked = Unchecked { base: PC - 0x100, offsets };
        emitter.start(PC, 0x7000_0000, 5);
        let (mut out, mut fetch) = (Plan::default(), |at: u64| code.get((at - PC) as usize..));
        Planner::new(Detail::Values, Limits::default()).plan(PC, 48, &mut fetch, &mut out, &mut emitter);
        let copy = Decoder::with_ip(64, &emitter.code.bytes, 0x7000_0000, DecoderOptions::NONE);
        let counts = |i: &Instruction| i.memory_segment() == Register::GS && i.memory_displacement32() == 96;
        // A load and a store each.
        (copy.into_iter().filter(counts).count() / 2, emitter.left_out)
    };
    assert_eq!(checks(&code, true, &[]), (2, 0));
    assert_eq!(checks(&code, true, &[0x100]), (1, 1));
    assert_eq!(checks(&code, true, &[0x102]), (1, 1));
    assert_eq!(checks(&code, true, &[0x10, 0x100, 0x102, 0x200]), (0, 2));
    assert_eq!(checks(&code, true, &[0x101, 0x103]), (2, 0));
    assert_eq!(checks(&ret, true, &[0x100]), (1, 0), "returns are no branches of the table");
    assert_eq!(checks(&ret, false, &[]), (0, 0));
}

/// mov rax,[rdi]; mov rdx,[rdi+8]; add [rsi],rax; mov [rsi+8],rdx; rep movsb; mov rcx,[rax]; ret
const LOADS: [u8; 20] = [
    0x48, 0x8b, 0x07, 0x48, 0x8b, 0x57, 0x08, 0x48, 0x01, 0x06, 0x48, 0x89, 0x56, 0x08, 0xf3, 0xa4, 0x48,
    0x8b, 0x08, 0xc3,
];

fn watched(watch: Watch<'_>) -> (Plan, Vec<u8>) {
    let mut emitter = Emitter::new(layout(), Mode { checks: true, returns: true, record: true });
    emitter.start(PC, 0x7000_0000, 5);
    let (mut out, mut fetch) = (Plan::default(), |at: u64| LOADS.get((at - PC) as usize..));
    let mut planner = Planner::new(Detail::Values, Limits::default());
    planner.plan_watched(PC, 48, watch, &mut fetch, &mut out, &mut emitter);
    (out, emitter.code.bytes.clone())
}

#[test]
fn what_nobody_wants_is_not_logged_and_still_counted() {
    let (all, code) = watched(Watch::All);
    assert_eq!(all.unrecorded, 0);
    let (none, short) = watched(Watch::Loads(&|_| false));
    assert!(short.len() < code.len());
    let shape = |p: &Plan| p.refs.iter().map(|r| (r.insn, r.access, r.size)).collect::<Vec<_>>();
    assert_eq!(shape(&none), shape(&all), "the references are the same");
    // The header, and what repeats need: addresses and how often.
    let repeated = none.refs.iter().filter(|r| r.recorded).count();
    assert_eq!((repeated, none.unrecorded), (2, 0b110_1111));
    assert!(none.exits[0].words < all.exits[0].words, "{} words", none.exits[0].words);
    for (left_out, recorded) in none.refs.iter().zip(&all.refs).filter(|(r, _)| !r.recorded) {
        assert_eq!(left_out.address, None);
        let logged = matches!(recorded.value, Value::Word { .. } | Value::Words { .. });
        assert_eq!(left_out.value, if logged { Value::Unrecorded } else { recorded.value });
    }
}

#[test]
fn only_wanted_loads_are_recorded_and_the_same_plan_is_made_again_from_the_bits() {
    for wanted in 0..128u32 {
        // A pc per bit: those of the instructions.
        let pcs = [0u64, 3, 7, 10, 14, 16, 19];
        let is_wanted = |pc: u64| pcs.iter().position(|p| PC + p == pc).is_some_and(|i| wanted >> i & 1 != 0);
        let (plan, code) = watched(Watch::Loads(&is_wanted));
        for r in plan.refs.iter().filter(|r| r.insn != 4) {
            let has_load = matches!(r.insn, 0 | 1 | 2 | 5);
            assert_eq!(r.recorded, has_load && wanted >> r.insn & 1 != 0, "{r:?} of {wanted:#b}");
            assert_eq!(r.recorded, plan.unrecorded >> r.insn & 1 == 0);
            assert_eq!(r.recorded, r.address.is_some());
        }
        let (again, same) = watched(Watch::AllBut(plan.unrecorded));
        assert_eq!((&again.refs, &again.exits, again.unrecorded), (&plan.refs, &plan.exits, plan.unrecorded));
        assert_eq!(code, same, "wanted {wanted:#b}");
    }
}
