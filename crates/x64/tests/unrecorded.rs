//! What the copy does where nothing is recorded, and how all copies count checks and reach what lies beside the code.

mod common;

use common::layout;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use sonde_x64::emit::{Emitter, Mode};
use sonde_x64::flags;
use sonde_x64::plan::{Detail, Limits, Plan, Planner};

const CHECKING: Mode = Mode { checks: true, returns: false, record: false };
const RECORDING: Mode = Mode { checks: true, returns: false, record: true };

/// The copy at `base` of code at `pc`, and what it decodes to.
fn copy(code: &[u8], pc: u64, base: u64, mode: Mode) -> (Emitter, Vec<Instruction>) {
    let mut emitter = Emitter::new(layout(), mode);
    emitter.start(pc, base, 5);
    let (mut out, mut fetch) = (Plan::default(), |at: u64| code.get(at.checked_sub(pc)? as usize..));
    Planner::new(Detail::Values, Limits::default()).plan(pc, 48, &mut fetch, &mut out, &mut emitter);
    let decoded = Decoder::with_ip(64, &emitter.code.bytes, base, DecoderOptions::NONE).into_iter().collect();
    (emitter, decoded)
}

fn are_dead(code: &[u8]) -> bool {
    flags::are_dead(0x1000, flags::BY_DEC, &mut |at| code.get(at.checked_sub(0x1000)? as usize..))
}

#[test]
fn flags_are_dead_only_where_all_are_overwritten_unread() {
    let dead: [&[u8]; 5] = [
        &[0x48, 0x83, 0xec, 0x08],                         // sub rsp, 8
        &[0x53, 0x48, 0x89, 0xfb, 0x85, 0xff],             // push rbx; mov rbx, rdi; test edi, edi
        &[0xeb, 0x01, 0x9c, 0x31, 0xc0],                   // jmp over a pushf; xor eax, eax
        &[0xe8, 0x01, 0x00, 0x00, 0x00, 0x9c, 0xff, 0xc0], // call over a pushf; inc eax
        &[0xff, 0xc0, 0x74, 0x00],                         // inc eax leaves what dec leaves; je
    ];
    dead.iter().for_each(|code| assert!(are_dead(code), "{code:x?}"));
    let live: [&[u8]; 10] = [
        &[0x74, 0x02, 0x31, 0xc0],       // je
        &[0x0f, 0x94, 0xc0, 0x31, 0xc0], // sete al; xor eax, eax
        &[0x9c, 0x31, 0xc0],             // pushf; xor eax, eax
        &[0x0f, 0x05, 0x31, 0xc0],       // syscall: r11 gets the flags
        &[0xc3, 0x31, 0xc0],             // ret
        &[0xff, 0xe0, 0x31, 0xc0],       // jmp rax
        &[0xd3, 0xe0, 0x74, 0x00],       // shl eax, cl: nothing changes if cl is 0
        &[0xf3, 0xa6, 0x74, 0x00],       // repe cmpsb: nothing changes if rcx is 0
        &[0x90, 0x90],                   // the code ends
        &[0xeb, 0xfe],                   // for ever
    ];
    live.iter().for_each(|code| assert!(!are_dead(code), "{code:x?}"));
}

#[test]
fn checks_change_flags_only_where_they_are_dead() {
    let decs = |code: &[u8]| {
        let (_, copy) = copy(code, 0x40_1000, 0x7000_0000, CHECKING);
        let changed: Vec<Mnemonic> = copy
            .iter()
            .filter(|i| i.memory_segment() == Register::GS)
            .filter(|i| i.rflags_modified() != 0)
            .map(|i| i.mnemonic())
            .collect();
        assert!(
            copy.iter()
                .any(|i| i.memory_segment() == Register::GS && i.memory_displacement32() == layout().checks)
        );
        changed
    };
    // add eax, 1; jne back
    assert_eq!(decs(&[0x83, 0xc0, 0x01, 0x75, 0xfb]), [Mnemonic::Dec]);
    // adc would read the carry only, which dec keeps; sbb, then a jump that reads the sign
    assert_eq!(decs(&[0x83, 0xd0, 0x01, 0x75, 0xfb]), [Mnemonic::Dec]);
    // js; jmp back: the sign is read
    assert_eq!(decs(&[0x78, 0x10, 0xeb, 0xfc]), []);
}

#[test]
fn without_a_log_conditional_jumps_are_linked_themselves() {
    // test edi, edi; je +16; one byte each to shift it; ret
    for shift in 0..16usize {
        let mut code = vec![0x90; shift];
        code.extend([0x85, 0xff, 0x74, 0x10, 0xc3]);
        let (emitter, copy) = copy(&code, 0x40_1000, 0x7000_0000, CHECKING);
        let link = emitter.links.first().expect("the branch can be linked");
        let at = 0x7000_0000 + link.at as u64;
        assert!(at % 8 <= 4, "one store changes it whole: {at:#x}");
        let jump = copy.iter().find(|i| i.next_ip() == at + 4).expect("the displacement ends an instruction");
        assert_eq!((jump.flow_control(), jump.mnemonic()), (FlowControl::ConditionalBranch, Mnemonic::Je));
        assert_eq!(jump.near_branch_target(), jump.next_ip().wrapping_add_signed(link.away.into()));
        // There the exit is named and the engine asked.
        let stub: Vec<_> = copy.iter().skip_while(|i| i.ip() != jump.near_branch_target()).collect();
        assert_eq!((stub[0].op0_register(), stub[0].immediate32()), (Register::R14D, 5));
        assert_eq!(
            (stub[1].memory_segment(), stub[1].memory_displacement32()),
            (Register::GS, layout().resolve)
        );
    }
}

#[test]
fn without_a_log_r15_is_left_to_the_program() {
    let code = [0x4d, 0x8b, 0x7f, 0x10, 0x49, 0x83, 0xc7, 0x02, 0x41, 0x57, 0xc3]; // mov r15, [r15+16]; add r15, 2; push r15; ret
    let (emitter, _) = copy(&code, 0x40_1000, 0x7000_0000, CHECKING);
    assert!(emitter.code.bytes.windows(10).any(|bytes| bytes == &code[..10]), "copied as it is");
    let (emitter, decoded) = copy(&code, 0x40_1000, 0x7000_0000, RECORDING);
    assert!(!emitter.code.bytes.windows(4).any(|bytes| bytes == &code[..4]));
    let own = |i: &&Instruction| i.memory_segment() == Register::GS && i.memory_displacement32() == 24;
    assert!(decoded.iter().filter(own).count() >= 4, "read and written where it is kept");
}

#[test]
fn what_lies_beside_the_code_is_reached_from_wherever_the_copy_is() {
    // add rax, [rip+0x100]; lea rdx, [rip+0x200]; ret
    let code = [0x48, 0x03, 0x05, 0, 1, 0, 0, 0x48, 0x8d, 0x15, 0, 2, 0, 0, 0xc3];
    let far = 0x7f00_0000_0000;
    // Below 2 GiB, near the copy, far from it.
    for (pc, base, scratch) in
        [(0x40_1000, far, false), (far + 0x1000, far + (1 << 30), false), (0x5500_0000_1000, far, true)]
    {
        let (_, copy) = copy(&code, pc, base, CHECKING);
        let i = copy.iter().position(|i| i.mnemonic() == Mnemonic::Add).expect("the addition is there");
        let add = &copy[i];
        assert_eq!(add.memory_base() == Register::R14, scratch, "{add:?}");
        let address = if scratch { copy[i - 1].immediate64() } else { add.memory_displacement64() };
        assert_eq!(address, pc + 7 + 0x100);
        let set = &copy[i + 1];
        assert_eq!(
            (set.op0_register().full_register(), set.op1_kind() == OpKind::Memory),
            (Register::RDX, false)
        );
        assert_eq!(set.immediate(1), pc + 14 + 0x200);
    }
}

#[test]
fn it_is_known_where_rcx_is_kept_elsewhere() {
    const SLOT: u32 = 64;
    // Without flags to use: js; jmp back. And: a jump, a return, a call, all from addresses of either size.
    let codes: [&[u8]; 4] = [&[0x78, 0x10, 0xeb, 0xfc], &[0xff, 0xe0], &[0xc3], &[0xff, 0xd0]];
    for (code, pc) in codes.into_iter().flat_map(|code| [(code, 0x40_1000), (code, 0x5500_0000_1000)]) {
        let (emitter, decoded) = copy(code, pc, 0x7000_0000, RECORDING);
        let mut kept = 0;
        for insn in &decoded {
            let slot = insn.memory_segment() == Register::GS && insn.memory_displacement32() == SLOT;
            let saves = slot && insn.op0_kind() == OpKind::Memory;
            let at = (insn.ip() - 0x7000_0000) as usize;
            if slot {
                assert_eq!(emitter.rcx_is_saved(at), !saves, "{insn:?} at {at}");
                assert_eq!(emitter.rcx_is_saved(at + insn.len()), saves, "after {insn:?} at {at}");
            } else if insn.op_count() == 2 && insn.op0_register().full_register() == Register::RCX {
                assert!(emitter.rcx_is_saved(at + insn.len()), "{insn:?} at {at}");
                kept += 1;
            }
        }
        assert!(kept >= 2, "the entry and the exit use rcx");
    }
}

#[test]
fn r14_is_loaded_once_where_nothing_else_needs_the_register() {
    const HOME: u32 = 16;
    let own = |code: &[u8], mode: Mode| {
        let (_, decoded) = copy(code, 0x5500_0000_1000, 0x7f00_0000_0000, mode);
        let home = |i: &&Instruction| i.memory_segment() == Register::GS && i.memory_displacement32() == HOME;
        let (loads, stores): (Vec<&Instruction>, Vec<&Instruction>) =
            decoded.iter().filter(home).partition(|i| i.op0_kind() == OpKind::Register);
        (loads.len(), stores.len())
    };
    // mov rax, [r14]; add r14, 8; mov [r14], rax; pop r14; mov rdx, r14; ret
    let uses =
        [0x49, 0x8b, 0x06, 0x49, 0x83, 0xc6, 0x08, 0x49, 0x89, 0x06, 0x41, 0x5e, 0x4c, 0x89, 0xf2, 0xc3];
    assert_eq!(own(&uses, CHECKING), (1, 2), "every write is in memory at once");
    assert!(own(&uses, RECORDING).0 > 1, "the log needs the register in between");
    // mov rax, [r14]; add rax, [rip+0x100] far from the copy; mov rdx, [r14]; ret
    let between = [0x49, 0x8b, 0x06, 0x48, 0x03, 0x05, 0, 1, 0, 0, 0x49, 0x8b, 0x16, 0xc3];
    assert_eq!(own(&between, CHECKING), (2, 0));
}
