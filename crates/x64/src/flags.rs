//! Whether flags mean anything where control goes: a check may change those that are overwritten before anything reads them.

use crate::rules::refused;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, RflagsBits};

/// What `dec` changes: all but the carry.
pub const BY_DEC: u32 = RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::PF;

/// What `cmp` changes.
pub const BY_CMP: u32 = BY_DEC | RflagsBits::CF;

/// Instructions to look at. Nearly all functions and loops overwrite the flags within a few.
const FAR_ENOUGH: usize = 16;

/// Whether the program overwrites all of the flags `changed` before it reads any of them, when it goes on at `pc`. Follows
/// direct jumps and calls; where it cannot tell, they count as read. `fetch` is as for the planner.
pub fn are_dead<'a>(pc: u64, changed: u32, fetch: &mut dyn FnMut(u64) -> Option<&'a [u8]>) -> bool {
    let mut left = changed;
    let mut seen = 0;
    let mut at = pc;
    'segment: loop {
        let Some(bytes) = fetch(at) else { return false };
        let mut decoder = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE);
        let mut insn = Instruction::default();
        while decoder.can_decode() && seen < FAR_ENOUGH {
            seen += 1;
            decoder.decode_out(&mut insn);
            if insn.is_invalid() || refused(&insn).is_some() || insn.rflags_read() & left != 0 {
                return false;
            }
            match insn.flow_control() {
                FlowControl::Next if !may_keep_flags(&insn) => left &= !insn.rflags_modified(),
                FlowControl::Next => {}
                FlowControl::UnconditionalBranch | FlowControl::Call => {
                    at = insn.near_branch_target();
                    continue 'segment;
                }
                _ => return false,
            }
            if left == 0 {
                return true;
            }
        }
        return false;
    }
}

/// Code that is known ahead of time, and where its indirect jumps lead.
pub trait Ahead {
    /// The code from an address on.
    fn code(&self, at: u64) -> Option<&[u8]>;

    /// Every place that the indirect jump at an address may lead to, if that is known.
    fn jump(&self, at: u64) -> Option<&[u64]>;
}

/// Instructions to look at where there is time.
const FURTHER: usize = 256;

/// As [`are_dead`], for code that is analysed before it runs: looks further, on both sides of branches that read none of
/// the flags, behind jumps through known tables, and takes what the program calls through a pointer for a function of the
/// platform, which expects nothing of them. If they are dead, `dead` gets all places that this was found of.
pub fn are_dead_ahead(pc: u64, changed: u32, ahead: &dyn Ahead, dead: &mut Vec<u64>) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = Vec::from([(pc, changed)]);
    let mut budget = FURTHER;
    while let Some((at, left)) = open.pop() {
        // What was seen already is dead if nothing else reads: flags that go in a circle are never read.
        if seen.insert((at, left)) && !dies_on_way(at, left, ahead, &mut budget, &mut open) {
            return false;
        }
    }
    dead.extend(seen.iter().filter(|(_, left)| *left == changed).map(|(at, _)| *at));
    true
}

/// Follows one way until the flags die, or to where ways part, which `open` gets. False if they are read, or may be.
fn dies_on_way(
    at: u64,
    mut left: u32,
    ahead: &dyn Ahead,
    budget: &mut usize,
    open: &mut Vec<(u64, u32)>,
) -> bool {
    let Some(bytes) = ahead.code(at) else { return false };
    let mut decoder = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE);
    let mut insn = Instruction::default();
    while decoder.can_decode() && *budget > 0 {
        *budget -= 1;
        decoder.decode_out(&mut insn);
        if insn.is_invalid() || refused(&insn).is_some() || insn.rflags_read() & left != 0 {
            return false;
        }
        match insn.flow_control() {
            FlowControl::Next => {
                if !may_keep_flags(&insn) || shifts_surely(&insn) {
                    left &= !insn.rflags_modified();
                }
                if left == 0 {
                    return true;
                }
            }
            FlowControl::UnconditionalBranch | FlowControl::Call => {
                open.push((insn.near_branch_target(), left));
                return true;
            }
            FlowControl::ConditionalBranch => {
                open.extend([(insn.near_branch_target(), left), (insn.next_ip(), left)]);
                return true;
            }
            FlowControl::IndirectCall => return true,
            // A jump of the linkage table.
            FlowControl::IndirectBranch if insn.is_ip_rel_memory_operand() => return true,
            FlowControl::IndirectBranch => {
                let Some(targets) = ahead.jump(insn.ip()) else { return false };
                *budget += targets.len() * FAR_ENOUGH;
                open.extend(targets.iter().map(|target| (*target, left)));
                return true;
            }
            _ => return false,
        }
    }
    false
}

/// Whether it shifts by a constant that is not 0: all flags change, or are undefined.
fn shifts_surely(insn: &Instruction) -> bool {
    let plain = matches!(insn.mnemonic(), Mnemonic::Shl | Mnemonic::Sal | Mnemonic::Shr | Mnemonic::Sar);
    let wide = insn.op0_kind() == OpKind::Register && insn.op0_register().is_gpr64();
    let counted = if wide { 0x3f } else { 0x1f };
    plain && insn.op1_kind() == OpKind::Immediate8 && insn.immediate8() & counted != 0
}

/// Shifts by nothing and repetitions of nothing leave the flags as they are.
fn may_keep_flags(insn: &Instruction) -> bool {
    insn.is_string_instruction()
        || matches!(
            insn.mnemonic(),
            Mnemonic::Shl
                | Mnemonic::Sal
                | Mnemonic::Shr
                | Mnemonic::Sar
                | Mnemonic::Rol
                | Mnemonic::Ror
                | Mnemonic::Rcl
                | Mnemonic::Rcr
                | Mnemonic::Shld
                | Mnemonic::Shrd
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Code<'a> {
        bytes: &'a [u8],
        /// Where the indirect jumps of it lead.
        jumps: Option<&'a [u64]>,
    }

    impl Ahead for Code<'_> {
        fn code(&self, at: u64) -> Option<&[u8]> {
            self.bytes.get(usize::try_from(at.checked_sub(0x1000)?).ok()?..)
        }

        fn jump(&self, _: u64) -> Option<&[u64]> {
            self.jumps
        }
    }

    fn dead(bytes: &[u8], jumps: Option<&[u64]>) -> bool {
        are_dead_ahead(0x1000, BY_DEC, &Code { bytes, jumps }, &mut Vec::new())
    }

    #[test]
    fn shifts_by_a_constant_end_them_and_other_shifts_do_not() {
        assert!(dead(&[0xc1, 0xe0, 0x03, 0x74, 0x00], None), "shl eax, 3; je");
        assert!(dead(&[0x48, 0xc1, 0xe8, 0x20, 0x74, 0x00], None), "shr rax, 32; je");
        assert!(!dead(&[0xc1, 0xe0, 0x20, 0x74, 0x00], None), "shl eax, 32 is by 0; je");
        assert!(!dead(&[0xd3, 0xe0, 0x74, 0x00], None), "shl eax, cl; je");
        assert!(!dead(&[0xc1, 0xc0, 0x03, 0x74, 0x00], None), "rol eax, 3 changes two of them; je");
    }

    #[test]
    fn calls_through_pointers_end_them_and_returns_do_not() {
        assert!(dead(&[0xff, 0xd0], None), "call rax");
        assert!(dead(&[0xff, 0x25, 0, 0, 0, 0], None), "jmp [rip + 0]");
        assert!(!dead(&[0xff, 0xe0], None), "jmp rax");
        assert!(!dead(&[0xc3], None), "ret");
        assert!(!dead(&[0x0f, 0x05], None), "syscall");
    }

    #[test]
    fn jumps_through_a_table_are_followed_to_all_of_it() {
        // jmp rax; xor ecx, ecx; je
        let code = [0xff, 0xe0, 0x31, 0xc9, 0x74, 0x00];
        assert!(dead(&code, Some(&[0x1002])));
        assert!(dead(&code, Some(&[0x1000, 0x1002])), "a jump to itself reads nothing");
        assert!(!dead(&code, Some(&[0x1002, 0x1004])));
    }

    #[test]
    fn both_sides_of_a_branch_that_reads_others_are_followed() {
        // jrcxz over; xor eax, eax; ret; over: je
        let mut code = [0xe3, 0x03, 0x31, 0xc0, 0xc3, 0x74, 0x00, 0x31, 0xc0];
        assert!(!dead(&code, None), "the je reads");
        code[5] = 0x31;
        assert!(dead(&code, None), "xor eax, [rax]");
        // jmp to itself: never read
        assert!(dead(&[0xeb, 0xfe], None));
    }

    #[test]
    fn places_on_the_way_are_told() {
        let mut places = Vec::new();
        // jmp over; pushf; over: xor eax, eax
        let code = Code { bytes: &[0xeb, 0x01, 0x9c, 0x31, 0xc0], jumps: None };
        assert!(are_dead_ahead(0x1000, BY_DEC, &code, &mut places));
        places.sort_unstable();
        assert_eq!(places, [0x1000, 0x1003]);
    }
}
