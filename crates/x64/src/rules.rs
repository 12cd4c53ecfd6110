//! Facts about single instructions that planning rests on: which are not copied, where control goes, what they compute.

use crate::asm::Gpr;
use crate::plan::ExitKind;
use crate::planner::Step;
use crate::symbolic::{Known, Registers, gpr};
use iced_x86::{Code as Op, FlowControl, Instruction, Mnemonic, OpKind, Register};

/// Instructions whose result is a known register plus a constant.
pub(crate) fn computed(insn: &Instruction, before: &Registers) -> Option<(Gpr, Known)> {
    let wide = insn.op_count() > 0 && insn.op0_kind() == OpKind::Register && insn.op0_register().is_gpr64();
    let dst = if wide { gpr(insn.op0_register())? } else { return constant32(insn) };
    let known = match insn.code() {
        Op::Mov_r64_rm64 | Op::Mov_rm64_r64 if insn.op1_kind() == OpKind::Register => {
            before.get(gpr(insn.op1_register())?)
        }
        Op::Mov_r64_imm64 | Op::Mov_rm64_imm32 => Known::Const(insn.immediate(1)),
        Op::Add_rm64_imm8 | Op::Add_rm64_imm32 | Op::Add_RAX_imm32 => before.get(dst).plus(insn.immediate(1)),
        Op::Sub_rm64_imm8 | Op::Sub_rm64_imm32 | Op::Sub_RAX_imm32 => {
            before.get(dst).plus(insn.immediate(1).wrapping_neg())
        }
        Op::Inc_rm64 => before.get(dst).plus(1),
        Op::Dec_rm64 => before.get(dst).plus(u64::MAX),
        Op::Lea_r64_m if insn.memory_index() == Register::None => match insn.memory_base() {
            Register::RIP => Known::Const(insn.memory_displacement64()),
            base if base.is_gpr64() => before.get(gpr(base)?).plus(insn.memory_displacement64()),
            _ => return None,
        },
        _ => return None,
    };
    Some((dst, known))
}

fn constant32(insn: &Instruction) -> Option<(Gpr, Known)> {
    if insn.op_count() < 2 || insn.op0_kind() != OpKind::Register || !insn.op0_register().is_gpr32() {
        return None;
    }
    let dst = gpr(insn.op0_register())?;
    match insn.code() {
        Op::Mov_r32_imm32 => Some((dst, Known::Const(u64::from(insn.immediate32())))),
        Op::Xor_r32_rm32 | Op::Xor_rm32_r32
            if insn.op1_kind() == OpKind::Register && insn.op0_register() == insn.op1_register() =>
        {
            Some((dst, Known::Const(0)))
        }
        _ => None,
    }
}

/// The general register that operand `op` is, unless it is a high byte.
pub(crate) fn low_gpr(insn: &Instruction, op: u32) -> Option<Gpr> {
    if insn.op_kind(op) != OpKind::Register {
        return None;
    }
    let r = insn.op_register(op);
    if matches!(r, Register::AH | Register::BH | Register::CH | Register::DH) { None } else { gpr(r) }
}

pub(crate) fn is_vector_move(m: Mnemonic) -> bool {
    matches!(
        m,
        Mnemonic::Movups
            | Mnemonic::Movaps
            | Mnemonic::Movupd
            | Mnemonic::Movapd
            | Mnemonic::Movdqu
            | Mnemonic::Movdqa
            | Mnemonic::Lddqu
            | Mnemonic::Movntdq
            | Mnemonic::Movntps
            | Mnemonic::Movntpd
            | Mnemonic::Movss
            | Mnemonic::Movsd
            | Mnemonic::Movq
            | Mnemonic::Movd
            | Mnemonic::Vmovups
            | Mnemonic::Vmovaps
            | Mnemonic::Vmovupd
            | Mnemonic::Vmovapd
            | Mnemonic::Vmovdqu
            | Mnemonic::Vmovdqa
            | Mnemonic::Vlddqu
            | Mnemonic::Vmovntdq
            | Mnemonic::Vmovntps
            | Mnemonic::Vmovntpd
    )
}

/// Instructions before which a superblock ends.
pub(crate) fn refused(insn: &Instruction) -> Option<ExitKind> {
    if insn.mnemonic() == Mnemonic::Syscall {
        return Some(ExitKind::Syscall);
    }
    let native = match insn.flow_control() {
        FlowControl::Interrupt | FlowControl::XbeginXabortXend | FlowControl::Exception => true,
        FlowControl::Return => !matches!(insn.code(), Op::Retnq | Op::Retnq_imm16),
        FlowControl::IndirectBranch => !matches!(insn.code(), Op::Jmp_rm64),
        FlowControl::IndirectCall => !matches!(insn.code(), Op::Call_rm64),
        FlowControl::Call => insn.code() != Op::Call_rel32_64,
        FlowControl::UnconditionalBranch => !matches!(insn.code(), Op::Jmp_rel8_64 | Op::Jmp_rel32_64),
        FlowControl::ConditionalBranch => insn.op0_kind() != OpKind::NearBranch64 || is_narrow_loop(insn),
        FlowControl::Next => changes_segments(insn),
    };
    if native { Some(ExitKind::Native) } else { None }
}

/// `loop` and `jecxz` with a 32-bit counter: one in a billion, not worth a second form.
fn is_narrow_loop(insn: &Instruction) -> bool {
    matches!(
        insn.code(),
        Op::Jecxz_rel8_64
            | Op::Loop_rel8_64_ECX
            | Op::Loope_rel8_64_ECX
            | Op::Loopne_rel8_64_ECX
            | Op::Jecxz_rel8_16
    )
}

fn changes_segments(insn: &Instruction) -> bool {
    matches!(
        insn.mnemonic(),
        Mnemonic::Wrgsbase
            | Mnemonic::Rdgsbase
            | Mnemonic::Wrfsbase
            | Mnemonic::Swapgs
            | Mnemonic::Lfs
            | Mnemonic::Lgs
            | Mnemonic::Lss
            | Mnemonic::Popfq
            | Mnemonic::Popf
            | Mnemonic::Sysenter
            | Mnemonic::Hlt
            | Mnemonic::Wrpkru
    ) || insn.mnemonic() == Mnemonic::Mov
        && insn.op0_kind() == OpKind::Register
        && insn.op0_register().is_segment_register()
        || insn.mnemonic() == Mnemonic::Pop
            && insn.op0_kind() == OpKind::Register
            && insn.op0_register().is_segment_register()
        || insn.is_privileged()
}

pub(crate) fn flow(insn: &Instruction) -> Step {
    match insn.flow_control() {
        FlowControl::ConditionalBranch => Step::Side(insn.near_branch_target()),
        FlowControl::UnconditionalBranch => Step::Follow(insn.near_branch_target()),
        FlowControl::Call => Step::Last(ExitKind::Call, insn.near_branch_target()),
        FlowControl::Return => Step::Last(ExitKind::Return, 0),
        FlowControl::IndirectBranch => Step::Last(ExitKind::IndirectJump, 0),
        FlowControl::IndirectCall => Step::Last(ExitKind::IndirectCall, 0),
        _ => Step::Next,
    }
}

/// The hardware condition code of a conditional jump.
pub(crate) fn condition(insn: &Instruction) -> u8 {
    use iced_x86::ConditionCode as C;
    match insn.condition_code() {
        C::o => 0,
        C::no => 1,
        C::b => 2,
        C::ae => 3,
        C::e => 4,
        C::ne => 5,
        C::be => 6,
        C::a => 7,
        C::s => 8,
        C::ns => 9,
        C::p => 10,
        C::np => 11,
        C::l => 12,
        C::ge => 13,
        C::le => 14,
        _ => 15,
    }
}
