//! How a superblock is left: records end, checks are counted, jumps are linked or looked up.

use super::{Emitter, Link};
use crate::asm::{Mem, RCX, TEMP};
use crate::plan::{Exit, ExitKind};
use iced_x86::Instruction;

impl Emitter {
    /// The exit of the branch at hand, with its check only if it keeps one.
    pub(super) fn with_its_check(&mut self, exit: &Exit) -> Exit {
        let kept = self.spots.last().is_some_and(|branch| self.keeps_check(branch.pc, exit));
        if exit.check && self.mode.checks && !kept && exit.kind != ExitKind::Return {
            self.left_out += 1;
        }
        Exit { check: kept, ..*exit }
    }

    /// Whether the exit of the branch at `pc` counts a check.
    pub(super) fn keeps_check(&self, pc: u64, exit: &Exit) -> bool {
        let by_kind = exit.kind != ExitKind::Return || self.mode.returns;
        let by_table = exit.kind == ExitKind::Return || !self.unchecked.holds(pc);
        exit.check && self.mode.checks && by_kind && by_table
    }

    pub(super) fn header(&mut self, exit: &Exit, index: usize) {
        self.exit_spots.push((self.code.here(), index));
        if self.mode.record {
            self.code.log_header(self.first_exit + index as u32 + 1);
            self.code.log_advance(exit.words);
        }
    }

    /// Counts a check down without flags: rcx is in its slot afterwards and zero if none is left. Returns the position of
    /// the displacement that leads to where the burst ends.
    pub(super) fn check_with_rcx(&mut self) -> usize {
        let l = self.layout;
        self.save_rcx();
        self.code.gs_load(RCX, l.checks);
        self.code.lea(RCX, &Mem { base: Some(RCX), index: None, disp: -1, fs: false });
        self.code.gs_store(l.checks, RCX);
        self.code.jrcxz()
    }

    pub(super) fn save_rcx(&mut self) {
        self.code.gs_store(self.layout.save_rcx, RCX);
        self.rcx_saved.push((self.code.here(), usize::MAX));
    }

    /// From here on rcx is the program's, or the copy is left.
    pub(super) fn rcx_is_back(&mut self) {
        let here = self.code.here();
        if let Some(last) = self.rcx_saved.last_mut() {
            last.1 = here;
        }
    }

    pub(super) fn restore_rcx(&mut self) {
        self.code.gs_load(RCX, self.layout.save_rcx);
        self.rcx_is_back();
    }

    /// What a check without flags leads to when none is left.
    pub(super) fn none_left(&mut self, jrcxz: usize) {
        let here = self.code.here();
        self.code.bind8(jrcxz, here);
        self.rcx_saved.push((here, here));
        self.restore_rcx();
    }

    pub(super) fn direct_exit(&mut self, exit: &Exit, index: usize) {
        self.header(exit, index);
        let number = self.first_exit + index as u32;
        if matches!(exit.kind, ExitKind::Syscall | ExitKind::Native) {
            self.code.set(TEMP, u64::from(number));
            self.code.gs_jump(self.layout.leave);
            return;
        }
        let l = self.layout;
        let with_flags = core::mem::take(&mut self.dead_flags);
        let mut none_left = None;
        if exit.check && with_flags {
            self.code.gs_dec(l.checks);
            none_left = Some(self.code.jz());
        } else if exit.check {
            none_left = Some(self.check_with_rcx());
            self.restore_rcx();
        }
        let at = self.code.patchable_jump(self.base);
        self.ask_engine(at, index, 0);
        if let Some(none_left) = none_left {
            if with_flags {
                let here = self.code.here();
                self.code.bind8(none_left, here);
            } else {
                self.none_left(none_left);
            }
            self.code.set(TEMP, u64::from(number));
            self.code.gs_jump(l.end_direct);
        }
    }

    /// The code that an exit leads to as long as it is not linked; `away` is the displacement to here.
    pub(super) fn ask_engine(&mut self, link: usize, index: usize, away: i32) {
        self.code.set(TEMP, u64::from(self.first_exit + index as u32));
        self.code.gs_jump(self.layout.resolve);
        self.links.push(Link { at: link, exit: index, away });
    }

    /// Goes where r14 says.
    pub(super) fn indirect_exit(&mut self, exit: &Exit, index: usize) {
        self.header(exit, index);
        let l = self.layout;
        let none_left = exit.check.then(|| self.check_with_rcx());
        if none_left.is_none() {
            self.save_rcx();
        }
        self.code.low16_of_temp_to_rcx();
        self.code.jump_table_rcx(l.table);
        self.rcx_is_back();
        if let Some(none_left) = none_left {
            self.none_left(none_left);
            self.code.gs_jump(l.end_indirect);
        }
    }

    /// Pushes where a call returns to; r14 is used if the address needs it.
    pub(super) fn push_return_address(&mut self, insn: &Instruction) {
        if let Ok(short) = i32::try_from(insn.next_ip()) {
            self.changes_state_here();
            self.code.push_imm(short);
        } else {
            self.code.set(TEMP, insn.next_ip());
            self.changes_state_here();
            self.code.push(TEMP);
        }
    }
}
