//! Indirect branches through a table by the whole pc: what is compared, which flags change where, where the pc is kept.

mod common;

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, Register};
use sonde_x64::emit::{Emitter, Kept, Layout, Mode, Way, Whole};
use sonde_x64::plan::{Detail, Limits, Plan, Planner};

const PC: u64 = 0x7f12_0040_1000;
const BASE: u64 = 0x7f12_7000_0000;

fn whole() -> Whole {
    Whole {
        numbers: 0x7ff0_0000,
        entries: [0x1000, 0x2000, 0x3000],
        target: 200,
        missed: 208,
        missed_return: 216,
        none_left: 224,
        stubs: BASE - 0x1000,
    }
}

/// The copy of a piece of code as the checking version has it.
fn copy(code: &[u8], quick_entry: bool, after_call: bool) -> (Emitter, Vec<Instruction>) {
    let layout = Layout { whole: Some(whole()), ..common::layout() };
    let mut emitter = Emitter::new(layout, Mode { checks: true, returns: false, record: false });
    (emitter.quick_entry, emitter.after_call) = (quick_entry, after_call);
    emitter.start(PC, BASE, 5);
    let (mut out, mut fetch) = (Plan::default(), |at: u64| code.get((at - PC) as usize..));
    Planner::new(Detail::Blocks, Limits::default()).plan(PC, 48, &mut fetch, &mut out, &mut emitter);
    let decoder = Decoder::with_ip(64, &emitter.code.bytes, BASE, DecoderOptions::NONE);
    let insns = decoder.into_iter().collect();
    (emitter, insns)
}

fn position(insn: &Instruction) -> usize {
    (insn.ip() - BASE) as usize
}

/// `call rax`, `jmp [rdi+8]`, `jmp r14`, `ret`, `ret 16`, `call rsp`.
const BRANCHES: [&[u8]; 6] =
    [&[0xff, 0xd0], &[0xff, 0x67, 0x08], &[0x41, 0xff, 0xe6], &[0xc3], &[0xc2, 16, 0], &[0xff, 0xd4]];

#[test]
fn flags_change_in_quick_entries_only() {
    for code in BRANCHES {
        for after_call in [false, true] {
            let (_, slow) = copy(code, false, after_call);
            assert!(slow.iter().all(|i| !i.is_invalid() && i.rflags_modified() == 0), "{code:x?}");
            let (emitter, quick) = copy(code, true, after_call);
            let changing = quick.iter().filter(|i| i.rflags_modified() != 0);
            let at: Vec<(Mnemonic, usize)> = changing.map(|i| (i.mnemonic(), position(i))).collect();
            let way = |way: Way| emitter.ways[way as usize];
            assert!(at.contains(&(Mnemonic::Dec, way(Way::Checked))));
            assert!(at.contains(&(Mnemonic::Cmp, way(Way::Plain))));
            assert!(at.contains(&(Mnemonic::Cmp, way(Way::Return))));
            assert!(at.len() == 3 && at.iter().all(|(_, at)| *at < emitter.body), "{at:?}");
        }
    }
}

#[test]
fn entries_compare_the_upper_half_where_the_pc_is_kept() {
    let (emitter, insns) = copy(&[0xc3], true, true);
    let compared = |way: Way| {
        let insn = insns.iter().find(|i| position(i) == emitter.ways[way as usize]).expect("an instruction");
        let size = insn.memory_size().size();
        (insn.memory_base(), insn.memory_displacement64() as i32, insn.immediate(1) as u32, size)
    };
    assert_eq!(compared(Way::Plain), (Register::None, 204, 0x7f12, 4));
    assert_eq!(compared(Way::Return), (Register::RSP, -4, 0x7f12, 4));
    assert_eq!(emitter.kept_at(emitter.ways[Way::Checked as usize]), Kept::InSlot);
    assert_eq!(emitter.kept_at(emitter.ways[Way::Return as usize]), Kept::BelowStack);
    // All ways but the one that goes straight on jump over the other.
    let jumps: Vec<u64> =
        insns.iter().filter(|i| i.code() == Code::Jmp_rel8_64).map(|i| i.near_branch_target()).collect();
    assert_eq!(jumps, [BASE + emitter.body as u64]);
}

#[test]
fn the_pc_is_kept_from_where_r14_has_half_of_it() {
    for (code, way, kept) in [
        (BRANCHES[0], Way::Checked, Kept::InSlot),
        (BRANCHES[1], Way::Checked, Kept::InSlot),
        (BRANCHES[2], Way::Checked, Kept::InSlot),
        (BRANCHES[3], Way::Return, Kept::BelowStack),
        (BRANCHES[4], Way::Plain, Kept::InSlot),
        (BRANCHES[5], Way::Checked, Kept::InSlot),
    ] {
        let (emitter, insns) = copy(code, true, false);
        let body: Vec<&Instruction> = insns.iter().filter(|i| position(i) >= emitter.body).collect();
        let last = body.last().expect("it ends in a jump");
        assert_eq!((last.code(), last.memory_index()), (Code::Jmp_rm64, Register::R14), "{code:x?}");
        assert_eq!(last.memory_displacement64(), u64::from(whole().entries[way as usize]));
        for insn in &body {
            let exit = emitter.exit_at(position(insn)).is_some();
            let half = insn.op0_register() == Register::R14D || position(insn) == position(last);
            // From the exit on, the program's instruction is done, and only the pc tells where it is.
            assert!(!half || exit, "{code:x?}");
            assert_eq!(emitter.kept_at(position(insn)), if exit { kept } else { Kept::InTemp }, "{code:x?}");
        }
    }
}

#[test]
fn what_has_no_copy_leads_to_the_engine_and_counts() {
    let code = whole().stubs(96, 64).bytes;
    let insns: Vec<Instruction> =
        Decoder::with_ip(64, &code, whole().stubs, DecoderOptions::NONE).into_iter().collect();
    assert!(insns.iter().all(|i| !i.is_invalid() && i.rflags_modified() == 0));
    let [plain, checked, back] = whole().without_copy();
    let at = |address: u64| insns.iter().find(|i| i.ip() == address).expect("an instruction begins there");
    assert_eq!(at(plain).memory_displacement64(), 208);
    assert_eq!(at(back).memory_displacement64(), 216);
    // The third counts, and then leads on by one of two ways.
    let rest: Vec<&Instruction> = insns.iter().filter(|i| i.ip() >= checked).collect();
    let of = |m: u64| rest.iter().filter(|i| i.memory_displacement64() == m).count();
    assert_eq!((of(96), of(208), of(224)), (2, 1, 1));
}
