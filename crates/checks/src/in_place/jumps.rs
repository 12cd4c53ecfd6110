//! Where an indirect jump leads, if the few instructions before it tell: switches and computed gotos.

use super::image::Image;
use iced_x86::{
    ConditionCode, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};

/// A table of places in code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// Addresses of eight bytes each.
    Absolute(u64),
    /// Distances from the table itself, of four bytes each.
    Relative(u64),
}

/// Instructions to look back.
const FAR_ENOUGH: usize = 24;

/// Most entries of a table.
pub const MOST: u64 = 1 << 16;

/// What an indirect jump reads where it leads from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Own {
    /// Where the instructions begin that were looked at: the answer is right if control comes from nowhere else.
    pub from: u64,
    pub table: Table,
    /// How many entries it has at most, by the comparison before.
    pub most: u64,
}

impl Table {
    /// Where it lies.
    pub fn address(self) -> u64 {
        match self {
            Table::Absolute(address) | Table::Relative(address) => address,
        }
    }

    /// Where its entries lead: up to the first that leads to no instruction, or lies where another table begins.
    pub fn entries(self, image: &Image<'_>, end: u64, most: u64, starts: impl Fn(u64) -> bool) -> Vec<u64> {
        let entry = |i: u64| match self {
            Table::Absolute(table) => {
                Some(table + 8 * i).filter(|at| *at < end).and_then(|at| image.word(at))
            }
            Table::Relative(table) => {
                let at = Some(table + 4 * i).filter(|at| *at < end)?;
                let distance = i32::from_le_bytes(*image.data_at(at)?.first_chunk::<4>()?);
                Some(table.wrapping_add_signed(i64::from(distance)))
            }
        };
        (0..most).map_while(entry).take_while(|to| starts(*to)).collect()
    }
}

/// The table of the indirect jump that ends `body`, if it is one of the forms of compilers:
///
/// * `jmp [table + i * 8]`, `mov r, [table + i * 8]; jmp r`, where the table may be in a register by `lea`;
/// * `lea b, table; movsxd r, [b + i * 4]; add r, b; jmp r`.
///
/// `joins` tells where control may come from elsewhere: what is before that is not looked at.
pub fn table_of(body: &[Instruction], joins: impl Fn(u64) -> bool) -> Option<Own> {
    let (jump, before) = body.split_last()?;
    let parts = |insn: &Instruction| {
        !matches!(insn.flow_control(), FlowControl::Next | FlowControl::ConditionalBranch)
            || joins(insn.next_ip())
    };
    let from = before.iter().rposition(parts).map_or(0, |last| last + 1);
    let before = &before[from.max(before.len().saturating_sub(FAR_ENOUGH))..];
    let from = before.first().map_or(jump.ip(), |insn| insn.ip());
    let table = own_table(jump, before)?;
    Some(Own { from, table, most: most(jump, before) })
}

/// How many entries a table has by `cmp i, n; ja`, where i is what the table is read with.
fn most(jump: &Instruction, before: &[Instruction]) -> u64 {
    let reads = |insn: &Instruction| {
        insn.memory_index() != Register::None && matches!(insn.memory_index_scale(), 4 | 8)
    };
    let load = if reads(jump) { Some(before.len()) } else { before.iter().rposition(reads) };
    let Some(load) = load else { return MOST };
    let index = before.get(load).unwrap_or(jump).memory_index().full_register();
    let is_index = |register: Register| register.full_register() == index;
    let mut factory = InstructionInfoFactory::new();
    let mut widened = false;
    for (i, insn) in before[..load].iter().enumerate().rev() {
        let compared = insn.mnemonic() == Mnemonic::Cmp
            && insn.op0_kind() == OpKind::Register
            && is_index(insn.op0_register())
            && insn.op1_kind() != OpKind::Register
            && insn.op1_kind() != OpKind::Memory;
        if compared {
            let branch = before[i + 1..load].iter().find(|insn| insn.flow_control() != FlowControl::Next);
            let above = branch.is_some_and(|branch| branch.condition_code() == ConditionCode::a);
            let flags_kept =
                |insn: &Instruction| insn.rflags_modified() == 0 || insn.flow_control() != FlowControl::Next;
            let mut between =
                before[i + 1..load].iter().take_while(|insn| insn.flow_control() == FlowControl::Next);
            let whole = insn.op0_register().size() >= 4 || widened;
            let known = above && whole && between.all(flags_kept);
            return if known { (insn.immediate(1) & 0xffff_ffff).saturating_add(1).min(MOST) } else { MOST };
        }
        // The index may be made wider between comparison and load.
        let widens = matches!(insn.mnemonic(), Mnemonic::Movzx | Mnemonic::Mov)
            && insn.op_count() == 2
            && insn.op1_kind() == OpKind::Register
            && is_index(insn.op0_register())
            && is_index(insn.op1_register())
            && insn.op1_register().size() <= insn.op0_register().size();
        widened |= widens;
        if !widens && writes(&mut factory, insn, index) {
            return MOST;
        }
    }
    MOST
}

fn own_table(jump: &Instruction, before: &[Instruction]) -> Option<Table> {
    if jump.op0_kind() == OpKind::Memory {
        return absolute(jump, before);
    }
    let register = jump.op0_register();
    let (load, before) = last_write(before, register)?;
    match load.mnemonic() {
        Mnemonic::Mov if load.op1_kind() == OpKind::Memory && load.op0_register() == register => {
            absolute(load, before)
        }
        Mnemonic::Add if load.op0_kind() == OpKind::Register && load.op1_kind() == OpKind::Register => {
            let (sum, other) = (load.op0_register(), load.op1_register());
            relative(before, sum, other).or_else(|| relative(before, other, sum))
        }
        _ => None,
    }
}

/// The table that a memory operand reads addresses from.
fn absolute(insn: &Instruction, before: &[Instruction]) -> Option<Table> {
    if insn.memory_index() == Register::None || insn.memory_index_scale() != 8 {
        return None;
    }
    let displacement = insn.memory_displacement64();
    let base = match insn.memory_base() {
        Register::None => 0,
        base => constant(before, base)?,
    };
    Some(Table::Absolute(base.wrapping_add(displacement))).filter(|_| insn.segment_prefix() == Register::None)
}

/// The table whose distances were loaded into one register, while another holds its address.
fn relative(before: &[Instruction], loaded: Register, base: Register) -> Option<Table> {
    let (load, earlier) = last_write(before, loaded)?;
    let reads = load.mnemonic() == Mnemonic::Movsxd
        && load.op0_register() == loaded
        && load.op1_kind() == OpKind::Memory
        && load.memory_base() == base
        && load.memory_index_scale() == 4
        && load.memory_index() != Register::None
        && load.memory_displacement64() == 0;
    let table = constant(before, base).filter(|_| reads)?;
    // The load may overwrite its own index, but the base must be the same before and after.
    (constant(earlier, base) == Some(table)).then_some(Table::Relative(table))
}

/// The address that a register holds behind these instructions.
fn constant(before: &[Instruction], register: Register) -> Option<u64> {
    let (insn, _) = last_write(before, register)?;
    match (insn.mnemonic(), insn.op1_kind()) {
        (Mnemonic::Lea, _) if insn.is_ip_rel_memory_operand() && insn.op0_register() == register => {
            Some(insn.ip_rel_memory_address())
        }
        (Mnemonic::Mov, OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64) => {
            Some(insn.immediate(1))
        }
        _ => None,
    }
}

/// The last of these that writes a register or a part of it, and those before it.
fn last_write(before: &[Instruction], register: Register) -> Option<(&Instruction, &[Instruction])> {
    let mut factory = InstructionInfoFactory::new();
    let last = before.iter().rposition(|insn| writes(&mut factory, insn, register))?;
    Some((&before[last], &before[..last]))
}

/// Whether an instruction writes a register or a part of it.
fn writes(factory: &mut InstructionInfoFactory, insn: &Instruction, register: Register) -> bool {
    factory.info(insn).used_registers().iter().any(|used| {
        used.register().full_register() == register.full_register()
            && !matches!(used.access(), OpAccess::None | OpAccess::Read | OpAccess::CondRead)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn of(code: &[u8]) -> Option<Own> {
        let all: Vec<Instruction> =
            Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE).into_iter().collect();
        table_of(&all, |_| false)
    }

    #[test]
    fn tables_of_distances() {
        // cmp eax, 11; ja; lea rdx, [rip + 0x100]; movsxd rax, [rdx + rax * 4]; add rax, rdx; jmp rax
        let code = [
            0x83, 0xf8, 0x0b, 0x77, 0x40, 0x48, 0x8d, 0x15, 0x00, 0x01, 0x00, 0x00, 0x48, 0x63, 0x04, 0x82,
            0x48, 0x01, 0xd0, 0xff, 0xe0,
        ];
        assert_eq!(of(&code), Some(Own { from: 0x1000, table: Table::Relative(0x110c), most: 12 }));
        assert_eq!(of(&code[5..]).map(|own| own.most), Some(MOST), "no comparison");
        let mut other = code;
        other[3] = 0x74;
        assert_eq!(of(&other).map(|own| own.most), Some(MOST), "je says nothing");
        other[17] = 0x29;
        assert_eq!(of(&other), None, "sub rax, rdx");
        assert_eq!(of(&code[12..]), None, "no base");
    }

    #[test]
    fn tables_of_addresses() {
        // cmp al, 3; ja; movzx eax, al; jmp [rax * 8 + 0x4000]
        let code = [0x3c, 0x03, 0x77, 0x40, 0x0f, 0xb6, 0xc0, 0xff, 0x24, 0xc5, 0x00, 0x40, 0x00, 0x00];
        assert_eq!(of(&code), Some(Own { from: 0x1000, table: Table::Absolute(0x4000), most: 4 }));
        // mov rax, [rax * 8 + 0x4000]; jmp rax
        let load = [0x48, 0x8b, 0x04, 0xc5, 0x00, 0x40, 0x00, 0x00, 0xff, 0xe0];
        assert_eq!(of(&load), Some(Own { from: 0x1000, table: Table::Absolute(0x4000), most: MOST }));
        // mov rax, [rax + 0x40]; jmp rax: a call of what an object holds
        assert_eq!(of(&[0x48, 0x8b, 0x40, 0x40, 0xff, 0xe0]), None);
        assert_eq!(of(&[0xff, 0xe0]), None);
    }
}
