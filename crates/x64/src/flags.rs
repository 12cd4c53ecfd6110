//! Whether flags mean anything where control goes: a check may change those that are overwritten before anything reads them.

use crate::rules::refused;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, RflagsBits};

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
