//! Indirect branches through a table by the whole pc, for counter mode's checking copy, which pays for them most.
//!
//! The low half of the pc indexes a sparse table of numbers, a number three entry points: for branches, for branches that count
//! a check, and for returns. The entry compares the upper half. Where no other known code has the same low half, only a
//! stray jump fails there, and a compare with flags does, if the flags are dead where it leads. Elsewhere rcx tells, as in
//! the small table. A return stores nothing on its way: what it goes by still lies below the stack pointer, in the red
//! zone. What stores cost: docs/design/translation.md.

use super::Emitter;
use crate::asm::{Code, Gpr, Mem, RCX, TEMP};
use crate::plan::{Exit, ExitKind};
use crate::symbolic::gpr;
use iced_x86::{Instruction, OpKind};

/// Where the table and what belongs to it lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole {
    /// Address (below 2 GiB) of a number of 4 bytes for each low half of a pc.
    pub numbers: u32,
    /// Addresses (below 2 GiB) of the entry points by number, 8 bytes each, for each [`Way`].
    pub entries: [u32; Way::COUNT],
    /// Offset from gs where the pc is kept that a branch goes to.
    pub target: u32,
    /// Offset from gs of the pointer to the code that makes the copy of the pc kept there.
    pub missed: u32,
    /// Offset from gs of the same for a return.
    pub missed_return: u32,
    /// Offset from gs of the pointer to the code that ends a burst at the pc kept there.
    pub none_left: u32,
    /// Address of [`Whole::stubs`].
    pub stubs: u64,
}

/// How an indirect branch comes to a superblock. Each way has a table of entry points: those that are used lie together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A jump or call.
    Plain,
    /// One that counts a check.
    Checked,
    /// A return.
    Return,
}

impl Way {
    /// How many there are.
    pub const COUNT: usize = 3;
}

/// Where the pc that an indirect branch goes to is kept on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// In r14.
    InTemp,
    /// In its slot ([`Whole::target`]).
    InSlot,
    /// Right below the stack pointer.
    BelowStack,
}

/// Positions of the stubs.
const MISSED: u64 = 0;
const MISSED_RETURN: u64 = 8;
const NONE_LEFT: u64 = 16;
const MISSED_CHECKED: u64 = 24;

const ZERO: u8 = 4;
const NOT_ZERO: u8 = 5;

/// The stack pointer, which calls change on the way.
const STACK: Gpr = 4;
/// The word that it has just left.
const LEFT: Mem = Mem { base: Some(STACK), index: None, disp: -8, fs: false };

impl Whole {
    /// What entries share, to lie before the first copy.
    pub fn stubs(&self, checks: u32, save_rcx: u32) -> Code {
        let mut code = Code::default();
        code.gs_jump(self.missed);
        code.gs_jump(self.missed_return);
        code.gs_jump(self.none_left);
        code.gs_store(save_rcx, RCX);
        code.gs_load(RCX, checks);
        code.lea(RCX, &Mem { base: Some(RCX), index: None, disp: -1, fs: false });
        code.gs_store(checks, RCX);
        let none_left = code.jrcxz();
        code.gs_load(RCX, save_rcx);
        code.gs_jump(self.missed);
        let here = code.here();
        code.bind8(none_left, here);
        code.gs_load(RCX, save_rcx);
        code.gs_jump(self.none_left);
        code
    }

    /// The entry points of what has no copy.
    pub fn without_copy(&self) -> [u64; Way::COUNT] {
        [MISSED, MISSED_CHECKED, MISSED_RETURN].map(|at| self.stubs + at)
    }
}

impl Emitter {
    /// Where indirect branches come in. What comes most, returns or others, goes straight on.
    pub(super) fn whole_entries(&mut self, whole: &Whole, pc: u64) {
        if self.after_call {
            self.branch_entry(whole, pc);
            let over = self.code.jmp8();
            self.return_entry(whole, pc);
            let here = self.code.here();
            self.code.bind8(over, here);
        } else {
            self.return_entry(whole, pc);
            let over = self.code.jmp8();
            self.branch_entry(whole, pc);
            let here = self.code.here();
            self.code.bind8(over, here);
        }
        self.body = self.code.here();
    }

    fn branch_entry(&mut self, whole: &Whole, pc: u64) {
        let start = self.code.here();
        self.ways[Way::Checked as usize] = start;
        if self.quick_entry {
            self.code.gs_dec(self.layout.checks);
            self.code.jcc_to(ZERO, self.base, whole.stubs + NONE_LEFT);
        } else {
            let none_left = self.check_with_rcx();
            self.restore_rcx();
            let go_on = self.code.jmp8();
            self.none_left(none_left);
            self.code.gs_jump(whole.none_left);
            let here = self.code.here();
            self.code.bind8(go_on, here);
        }
        self.ways[Way::Plain as usize] = self.code.here();
        if self.quick_entry {
            self.code.gs_compare(whole.target + 4, (pc >> 32) as u32);
            self.code.jcc_to(NOT_ZERO, self.base, whole.stubs + MISSED);
        } else {
            self.save_rcx();
            self.code.gs_load(TEMP, whole.target);
            self.compare_with_rcx(pc);
            self.rcx_is_back();
        }
        self.kept.push((start, self.code.here(), Kept::InSlot));
    }

    fn return_entry(&mut self, whole: &Whole, pc: u64) {
        let start = self.code.here();
        self.ways[Way::Return as usize] = start;
        if self.quick_entry {
            self.code.compare(&Mem { disp: LEFT.disp + 4, ..LEFT }, (pc >> 32) as u32);
            self.code.jcc_to(NOT_ZERO, self.base, whole.stubs + MISSED_RETURN);
        } else {
            self.save_rcx();
            self.code.load(TEMP, &LEFT, 8);
            self.compare_with_rcx(pc);
            self.rcx_is_back();
        }
        self.kept.push((start, self.code.here(), Kept::BelowStack));
    }

    /// Ends a superblock with an indirect jump or call, or a return; false if its target cannot be had.
    pub(super) fn whole_exit(
        &mut self,
        whole: &Whole,
        insn: &Instruction,
        exit: &Exit,
        index: usize,
    ) -> bool {
        let way = match exit.kind {
            ExitKind::Return if insn.stack_pointer_increment() == 8 && !exit.check => Way::Return,
            _ if exit.check => Way::Checked,
            _ => Way::Plain,
        };
        if way == Way::Return {
            self.code.pop(TEMP);
            self.header(exit, index);
            let start = self.code.here();
            self.code.low_half_to_temp(TEMP);
            return self.jump_by_number(whole, way, start, Kept::BelowStack);
        }
        let Some(from) = self.target_to_slot(whole, insn, exit.kind) else { return false };
        match exit.kind {
            ExitKind::IndirectCall => {
                self.push_return_address(insn);
                self.header(exit, index);
            }
            ExitKind::Return => {
                self.changes_state_here();
                let disp = insn.stack_pointer_increment();
                self.code.lea(STACK, &Mem { disp, ..LEFT });
                self.header(exit, index);
            }
            _ => self.header(exit, index),
        }
        let start = self.code.here();
        if exit.kind == ExitKind::IndirectCall && from == TEMP && i32::try_from(insn.next_ip()).is_err() {
            // The return address was there meanwhile. Otherwise the load would only have to wait for the store.
            self.code.gs_load_low_half(whole.target);
        } else {
            self.code.low_half_to_temp(from);
        }
        self.jump_by_number(whole, way, start, Kept::InSlot)
    }

    /// The pc that a branch goes to into its slot; returns the register that has it too.
    fn target_to_slot(&mut self, whole: &Whole, insn: &Instruction, kind: ExitKind) -> Option<Gpr> {
        let from = match gpr(insn.op0_register()) {
            Some(r)
                if kind != ExitKind::Return
                    && insn.op0_kind() == OpKind::Register
                    && !self.steals(r)
                    && r != STACK =>
            {
                r
            }
            _ if kind == ExitKind::Return => {
                self.code.load(TEMP, &Mem { disp: 0, ..LEFT }, 8);
                TEMP
            }
            _ if self.target(insn) => TEMP,
            _ => return None,
        };
        self.code.gs_store(whole.target, from);
        Some(from)
    }

    fn jump_by_number(&mut self, whole: &Whole, way: Way, start: usize, kept: Kept) -> bool {
        self.code.number_of_temp(whole.numbers);
        self.code.jump_by_temp(whole.entries[way as usize]);
        self.kept.push((start, self.code.here(), kept));
        true
    }
}
