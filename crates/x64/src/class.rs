//! Opcode classes: the coarse kinds that filters and profiles speak of (paper 2 section 3.1, paper 3 section 3.2).

use iced_x86::{FlowControl, Instruction, Mnemonic};

/// What kind of work an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    /// Integer arithmetic, logic, moves between registers.
    Integer = 0,
    /// Reads memory into a register and does nothing else.
    Load = 1,
    /// Writes a register or constant to memory and does nothing else.
    Store = 2,
    /// Scalar or packed floating point and vector work.
    Vector = 3,
    /// Conditional branch.
    Conditional = 4,
    /// Unconditional direct jump.
    Jump = 5,
    /// Direct or indirect call.
    Call = 6,
    /// Return.
    Return = 7,
    /// Indirect jump.
    IndirectJump = 8,
    /// String instruction, with or without a repeat prefix.
    String = 9,
    /// System call.
    System = 10,
    /// Anything else.
    Other = 11,
}

impl Class {
    /// The class of a decoded instruction.
    pub fn of(insn: &Instruction) -> Class {
        match insn.flow_control() {
            FlowControl::ConditionalBranch => return Class::Conditional,
            FlowControl::UnconditionalBranch => return Class::Jump,
            FlowControl::Call if insn.mnemonic() == Mnemonic::Syscall => return Class::System,
            FlowControl::Call | FlowControl::IndirectCall => return Class::Call,
            FlowControl::Return => return Class::Return,
            FlowControl::IndirectBranch => return Class::IndirectJump,
            FlowControl::Next => {}
            _ => return Class::Other,
        }
        if insn.is_string_instruction() {
            return Class::String;
        }
        let vector = (0..insn.op_count()).any(|i| {
            let r = insn.op_register(i);
            insn.op_kind(i) == iced_x86::OpKind::Register
                && (r.is_vector_register() || r.is_st() || r.is_mm())
        });
        if vector {
            return Class::Vector;
        }
        match insn.mnemonic() {
            Mnemonic::Mov
            | Mnemonic::Movzx
            | Mnemonic::Movsx
            | Mnemonic::Movsxd
            | Mnemonic::Push
            | Mnemonic::Pop => {
                if insn.op_count() > 0 && insn.op0_kind() == iced_x86::OpKind::Memory
                    || insn.mnemonic() == Mnemonic::Push
                {
                    Class::Store
                } else if insn.op_count() > 1 && insn.op1_kind() == iced_x86::OpKind::Memory
                    || insn.mnemonic() == Mnemonic::Pop
                {
                    Class::Load
                } else {
                    Class::Integer
                }
            }
            Mnemonic::Cpuid | Mnemonic::Rdtsc | Mnemonic::Rdtscp | Mnemonic::Xgetbv | Mnemonic::Pause => {
                Class::Other
            }
            _ => Class::Integer,
        }
    }
}
