//! Memory references of one instruction: where they lie, how large they are, what can be said of their values.

use crate::asm::{Gpr, LOG, Mem, TEMP};
use crate::symbolic::gpr;
use iced_x86::{
    CodeSize, Decoder, DecoderOptions, Instruction, InstructionInfo, InstructionInfoFactory, OpAccess,
    Register, UsedMemory,
};

/// Direction of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// The program reads.
    Load,
    /// The program writes.
    Store,
}

/// A scaled log word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// Index of the word in the record.
    pub word: u16,
    /// Factor.
    pub scale: u8,
}

/// How the reader computes an address: the sum of the terms and the offset, plus the thread's fs base if `fs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Address {
    /// Scaled words.
    pub terms: [Option<Term>; 2],
    /// Constant part.
    pub offset: u64,
    /// Whether the address is relative to the thread's fs base.
    pub fs: bool,
}

/// How the reader finds the value that was loaded or stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// It cannot be recorded.
    Unknown,
    /// It could have been recorded, but nobody wanted it ([`Reference::recorded`]).
    Unrecorded,
    /// It is the same every time.
    Const(u64),
    /// A word plus a constant; the low bytes count.
    Word {
        /// Index of the word in the record.
        index: u16,
        /// Constant to add.
        delta: u64,
    },
    /// Several words, least significant first (vector operands).
    Words {
        /// Index of the first word.
        first: u16,
        /// Number of words.
        count: u8,
    },
    /// It is the pc that the program went to next (the return address that a return loads).
    NextPc,
}

/// How often a reference happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// Once.
    Once,
    /// A repeated string instruction: rcx before minus rcx after times, at consecutive places.
    Counted {
        /// Word that holds rcx before.
        before: u16,
        /// Word that holds rcx after.
        after: u16,
    },
}

/// One reference of the superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Index of its instruction in the plan.
    pub insn: u16,
    /// Direction.
    pub access: Access,
    /// Bytes per repetition; 0 when the architecture does not say (xsave).
    pub size: u16,
    /// Whether it is recorded. If nobody wants its instruction recorded, it still happens, and is counted, but has neither
    /// address nor value, except for values that need no log.
    pub recorded: bool,
    /// Address, unless the form is not supported (vector gathers, 32-bit addressing) or it is not recorded.
    pub address: Option<Address>,
    /// Value.
    pub value: Value,
    /// Repetitions.
    pub repeat: Repeat,
    /// Part of an atomic read-modify-write: the value was read before or after it, so it is racy.
    pub atomic: bool,
    /// The access may not happen (masked vector moves, conditional forms).
    pub conditional: bool,
}

/// A memory operand in the terms of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// Relative to registers.
    Registers(Mem),
    /// At a constant address (rip-relative or absolute), `fs` as in [`Mem`].
    Absolute {
        /// The address.
        address: u64,
        /// Whether the fs base is added.
        fs: bool,
    },
    /// A form whose address we do not compute.
    Unsupported,
}

impl Operand {
    /// Translates what iced-x86 says about a used memory location.
    pub fn of(insn: &Instruction, m: &UsedMemory) -> Operand {
        let index = m.index();
        let narrow = m.address_size() != CodeSize::Code64 && m.address_size() != CodeSize::Unknown;
        if narrow || index.is_vector_register() || uses_narrow_base(insn, m) {
            return Operand::Unsupported;
        }
        let fs = m.segment() == Register::FS;
        if matches!(m.base(), Register::None | Register::RIP) && index == Register::None {
            return Operand::Absolute { address: m.displacement(), fs };
        }
        let Ok(disp) = i32::try_from(m.displacement() as i64) else { return Operand::Unsupported };
        Operand::Registers(Mem {
            base: gpr(m.base()),
            index: gpr(index).map(|i| (i, m.scale() as u8)),
            disp,
            fs,
        })
    }

    /// The explicit memory operand of an instruction.
    pub fn explicit(insn: &Instruction) -> Operand {
        let (base, index) = (insn.memory_base(), insn.memory_index());
        let wide = |r: Register| r == Register::None || r.is_gpr64();
        let fs = insn.memory_segment() == Register::FS;
        if base == Register::RIP || base == Register::None && index == Register::None {
            return Operand::Absolute { address: insn.memory_displacement64(), fs };
        }
        let Ok(disp) = i32::try_from(insn.memory_displacement64() as i64) else {
            return Operand::Unsupported;
        };
        if !wide(base) || !wide(index) || insn.memory_segment() == Register::GS {
            return Operand::Unsupported;
        }
        let index = gpr(index).map(|i| (i, insn.memory_index_scale() as u8));
        Operand::Registers(Mem { base: gpr(base), index, disp, fs })
    }

    /// Whether both registers of the operand are ones that the copy keeps in memory: then it has no address that
    /// one scratch register could form.
    pub fn both_stolen(&self) -> bool {
        matches!(self, Operand::Registers(Mem { base: Some(b), index: Some((i, _)), .. }) if stolen(*b) && stolen(*i))
    }

    /// The registers that the address depends on, a bit each.
    pub fn registers(&self) -> u16 {
        match self {
            Operand::Registers(m) => m.base.map_or(0, |b| 1 << b) | m.index.map_or(0, |(i, _)| 1 << i),
            _ => 0,
        }
    }
}

fn uses_narrow_base(insn: &Instruction, m: &UsedMemory) -> bool {
    insn.memory_base() == Register::EIP || m.base().is_gpr32() || m.index().is_gpr32()
}

/// What iced-x86 says of an instruction, and which general registers it uses: asked for once, needed by all.
pub struct Facts<'a> {
    /// All of it.
    pub info: &'a InstructionInfo,
    /// The general registers that it reads or writes, a bit each.
    pub used: u16,
    /// Those that it writes, or may write.
    pub written: u16,
}

impl<'a> Facts<'a> {
    /// Sums up the registers.
    pub fn new(info: &'a InstructionInfo) -> Facts<'a> {
        let mut facts = Facts { info, used: 0, written: 0 };
        for register in info.used_registers() {
            if let Some(r) = gpr(register.register()) {
                facts.used |= 1 << r;
                let (_, writes, _) = directions(register.access());
                facts.written |= u16::from(writes) << r;
            }
        }
        facts
    }
}

/// Whether the instruction at the start of these bytes, which lies at `pc`, reads or writes memory, the stack included.
pub fn is_touched_by(bytes: &[u8], pc: u64) -> bool {
    let insn = Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE).decode();
    let mut factory = InstructionInfoFactory::new();
    let touches = |m: &UsedMemory| !matches!(m.access(), OpAccess::None | OpAccess::NoMemAccess);
    !insn.is_invalid() && factory.info(&insn).used_memory().iter().any(touches)
}

/// Whether the copy keeps this register of the program in memory.
pub fn stolen(r: Gpr) -> bool {
    r == TEMP || r == LOG
}

/// Splits an access kind of iced-x86 into (reads, writes, conditional).
pub fn directions(access: OpAccess) -> (bool, bool, bool) {
    match access {
        OpAccess::Read => (true, false, false),
        OpAccess::CondRead => (true, false, true),
        OpAccess::Write => (false, true, false),
        OpAccess::CondWrite => (false, true, true),
        OpAccess::ReadWrite => (true, true, false),
        OpAccess::ReadCondWrite => (true, true, false),
        _ => (false, false, false),
    }
}
