//! Rewrites an instruction of the program so that it runs in the copy: the stolen registers and rip-relative
//! operands are replaced by scratch registers.

use crate::asm::{Code, Gpr, LOG, TEMP};
use crate::emit::Layout;
use crate::memory::{Facts, directions};
use crate::symbolic::gpr;
use iced_x86::{Encoder, Instruction, OpKind, Register};

const R64: [Register; 16] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RBX,
    Register::RSP,
    Register::RBP,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
];

/// The part of register `to` that has the same width as `like`.
fn same_width(like: Register, to: Gpr) -> Register {
    let full = R64[to as usize];
    let number = to as u32;
    match like.size() {
        8 => full,
        4 => Register::EAX + number,
        2 => Register::AX + number,
        // The low bytes are AL CL DL BL, then (after AH CH DH BH) SPL BPL SIL DIL R8L ...
        _ if number < 4 => Register::AL + number,
        _ => Register::SPL + (number - 4),
    }
}

/// What stands in for one operand register.
#[derive(Clone, Copy)]
struct Stand {
    /// The program's register; none for a rip-relative address.
    original: Option<Gpr>,
    /// The scratch register.
    scratch: Gpr,
    reads: bool,
    writes: bool,
}

/// Whether an instruction can be copied as it is.
pub fn is_verbatim(stolen: u16, insn: &Instruction, facts: &Facts<'_>) -> bool {
    facts.used & stolen == 0 && !insn.is_ip_rel_memory_operand()
}

/// How the copy gets at what the program addresses relative to its pc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// Nothing to do: the operand is none of these, or the copy lies near enough to address it in the same way.
    AsItIs,
    /// It lies below 2 GiB.
    Absolute,
    /// Its address has to be in a register.
    ByRegister,
}

impl Reach {
    /// For an instruction whose copy comes a little behind `address`.
    fn of(insn: &Instruction, address: u64) -> Reach {
        /// What preparation and the instruction itself can take.
        const BEHIND: u64 = 256;
        if !insn.is_ip_rel_memory_operand() {
            return Reach::AsItIs;
        }
        let target = insn.memory_displacement64();
        let near = target.abs_diff(address) < (1 << 31) - BEHIND;
        match insn.memory_base() {
            Register::RIP if near => Reach::AsItIs,
            Register::RIP if i32::try_from(target).is_ok() => Reach::Absolute,
            _ => Reach::ByRegister,
        }
    }
}

/// The register that an instruction loads with an address that is known: no memory is involved.
fn constant(stolen: u16, insn: &Instruction) -> Option<Gpr> {
    let is_lea = insn.code() == iced_x86::Code::Lea_r64_m && insn.memory_base() == Register::RIP;
    if is_lea { gpr(insn.op0_register()).filter(|r| stolen & 1 << r == 0) } else { None }
}

/// Which stand-ins an instruction needs, at most three.
fn stands(stolen: u16, insn: &Instruction, facts: &Facts<'_>, reach: Reach) -> Option<([Stand; 3], usize)> {
    let none = Stand { original: None, scratch: 0, reads: false, writes: false };
    let mut stands = [none; 3];
    let mut n = 0;
    for r in [LOG, TEMP].into_iter().filter(|r| facts.used & stolen & (1 << r) != 0) {
        let mut stand = Stand { original: Some(r), ..none };
        for used in facts.info.used_registers().iter().filter(|u| gpr(u.register()) == Some(r)) {
            let (reads, writes, conditional) = directions(used.access());
            // A narrow or conditional write keeps the rest of the register, so that it reads too.
            stand.reads |= reads
                || writes && (conditional || used.register().size() < 4 || is_conditional(used.access()));
            stand.writes |= writes;
        }
        if stand.reads || stand.writes {
            stands[n] = stand;
            n += 1;
        }
    }
    if reach == Reach::ByRegister {
        stands[n] = Stand { reads: true, ..none };
        n += 1;
    }
    let mut taken = facts.used | 1 << 4 | 1 << TEMP | 1 << LOG;
    let mut high_byte = false;
    for used in facts.info.used_registers() {
        high_byte |= matches!(used.register(), Register::AH | Register::BH | Register::CH | Register::DH);
    }
    for op in 0..insn.op_count() {
        let r = insn.op_register(op);
        high_byte |= insn.op_kind(op) == OpKind::Register
            && matches!(r, Register::AH | Register::BH | Register::CH | Register::DH);
    }
    for (i, stand) in stands[..n].iter_mut().enumerate() {
        if i == 0 && !high_byte {
            stand.scratch = TEMP;
            continue;
        }
        // High-byte registers cannot be encoded together with r8..r15.
        let free = (0..if high_byte { 8 } else { 14 }).find(|r| taken & (1 << r) == 0)?;
        taken |= 1 << free;
        stand.scratch = free;
    }
    Some((stands, n))
}

fn is_conditional(access: iced_x86::OpAccess) -> bool {
    use iced_x86::OpAccess;
    matches!(access, OpAccess::CondWrite | OpAccess::ReadCondWrite)
}

/// What is the same for all instructions of a copy.
pub struct Setting<'a> {
    /// Where the context keeps things.
    pub layout: &'a Layout,
    /// Address of position 0.
    pub base: u64,
    /// The registers that the copy keeps for itself, a bit each.
    pub stolen: u16,
}

/// Emits the rewritten instruction with its preparation and clean-up. Returns where the instruction itself lies, and the
/// scratch registers besides r14 that it borrows by the slots that hold their content meanwhile: what a fault in its
/// middle has to put back. `at_home` says whether r14 holds the program's own value already, before and afterwards. None
/// if there is no such form.
pub fn rewrite(
    code: &mut Code,
    encoder: &mut Encoder,
    setting: &Setting<'_>,
    at_home: &mut bool,
    insn: &Instruction,
    facts: &Facts<'_>,
) -> Option<(usize, [Option<Gpr>; 3])> {
    let Setting { layout, base, stolen } = *setting;
    if let Some(dst) = constant(stolen, insn) {
        let at = code.here();
        code.set(dst, insn.memory_displacement64());
        return Some((at, [None; 3]));
    }
    let reach = Reach::of(insn, base.wrapping_add(code.here() as u64));
    let (stands, n) = stands(stolen, insn, facts, reach)?;
    let stands = &stands[..n];
    let new = replace(insn, stands, reach);
    let mut spill = 0;
    let mut borrowed = [None; 3];
    for stand in stands {
        if stand.scratch != TEMP {
            code.gs_store(layout.spill[spill], stand.scratch);
            borrowed[spill] = Some(stand.scratch);
            spill += 1;
        }
        match stand.original {
            Some(TEMP) if *at_home && stand.scratch == TEMP => {}
            Some(r) if stand.reads => code.gs_load(stand.scratch, layout.home(r)),
            Some(_) => {}
            None => code.set(stand.scratch, insn.memory_displacement64()),
        }
    }
    encoder.encode(&new, base.wrapping_add(code.here() as u64)).ok()?;
    let bytes = encoder.take_buffer();
    let at = code.here();
    code.raw(&bytes);
    let mut bytes = bytes;
    bytes.clear();
    encoder.set_buffer(bytes);
    spill = 0;
    for stand in stands {
        if let (Some(r), true) = (stand.original, stand.writes) {
            code.gs_store(layout.home(r), stand.scratch);
        }
        if stand.scratch != TEMP {
            code.gs_load(stand.scratch, layout.spill[spill]);
            spill += 1;
        }
    }
    *at_home = match stands.iter().find(|s| s.original == Some(TEMP) || s.scratch == TEMP) {
        Some(stand) => stand.original == Some(TEMP) && stand.scratch == TEMP,
        None => *at_home,
    };
    Some((at, borrowed))
}

/// Puts the scratch registers in place of all originals at once (a scratch register may be another's original).
fn replace(insn: &Instruction, stands: &[Stand], reach: Reach) -> Instruction {
    let mut new = *insn;
    if reach == Reach::Absolute {
        new.set_memory_base(Register::None);
        new.set_memory_displ_size(8);
    }
    let stand_for = |r: Register| stands.iter().find(|s| s.original.is_some() && s.original == gpr(r));
    for op in 0..insn.op_count() {
        if insn.op_kind(op) == OpKind::Register
            && let Some(stand) = stand_for(insn.op_register(op))
        {
            new.set_op_register(op, same_width(insn.op_register(op), stand.scratch));
        }
    }
    if let Some(stand) = stand_for(insn.memory_base()) {
        new.set_memory_base(same_width(insn.memory_base(), stand.scratch));
    }
    if let Some(stand) = stand_for(insn.memory_index()) {
        new.set_memory_index(same_width(insn.memory_index(), stand.scratch));
    }
    if let Some(stand) = stands.iter().find(|s| s.original.is_none()) {
        new.set_memory_base(R64[stand.scratch as usize]);
        new.set_memory_displacement64(0);
        new.set_memory_displ_size(0);
    }
    new
}
