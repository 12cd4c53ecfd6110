//! Writes the instrumented copy of a superblock.
//!
//! Register convention of the copy: r15 points at the current log record, r14 is scratch, and the program's own r14
//! and r15 live in the thread context behind gs ([`Layout`]). Where nothing is recorded, r15 stays the program's. Two
//! registers are stolen for good instead of spilled around each use, because then a load costs one store and a loop
//! iteration no bookkeeping at all; r14 and r15 are the ones that compilers allocate last. Flags are touched only where
//! nobody reads them. The record pointer moves only at exits, so that a record that meets the end of its buffer (a guard
//! page) can be moved and the instruction restarted.

mod asked;
mod exits;
mod parts;
mod whole;

use crate::asm::{Code, Gpr, Mem, RCX, TEMP};
use crate::memory::{Facts, Operand, stolen};
use crate::plan::{Exit, ExitKind, Log, Sink};
use crate::rewrite;
use crate::rules::condition;
use alloc::vec::Vec;
use iced_x86::{Encoder, Instruction, Mnemonic, OpKind};

pub use asked::{Layout, Mode, Unchecked};
pub use parts::{Link, Spot};
pub use whole::{Kept, Way, Whole};

struct Pending {
    jump: usize,
    exit: Exit,
    index: usize,
    /// Whether the conditional jump itself is linked: nothing is to be done on the way.
    straight: bool,
    dead_flags: bool,
}

/// Emits one superblock after another; keeps its allocations between them.
pub struct Emitter {
    /// The code of the current superblock.
    pub code: Code,
    /// Its direct exits.
    pub links: Vec<Link>,
    /// Position of the body (the indirect entry comes before it).
    pub body: usize,
    /// Positions of the indirect entries for a table by the whole pc, by [`Way`].
    pub ways: [usize; Way::COUNT],
    /// Whether the next superblock begins behind a call, where returns come.
    pub after_call: bool,
    /// Whether branches that come to the next superblock through a table by the whole pc may change flags.
    pub quick_entry: bool,
    /// Where each instruction lies.
    pub spots: Vec<Spot>,
    /// Where the code of each exit begins, after all effects of its instructions: position and exit index.
    pub exit_spots: Vec<(usize, usize)>,
    /// Which branches of the next superblock keep no check.
    pub unchecked: Unchecked,
    /// Checks left out of the current superblock because of that.
    pub left_out: u32,
    encoder: Encoder,
    layout: Layout,
    mode: Mode,
    base: u64,
    first_exit: u32,
    exits: usize,
    pending: Vec<Pending>,
    /// From where to where rcx is in its slot and the register holds something else.
    rcx_saved: Vec<(usize, usize)>,
    /// From where to where the pc that a branch goes to is elsewhere than in r14.
    kept: Vec<(usize, usize, Kept)>,
    mark: usize,
    in_insn: bool,
    /// Whether the check of the next exit may change flags.
    dead_flags: bool,
    /// Whether r14 holds the program's own value, which it has in memory too: the next instruction need not load it.
    at_home: bool,
}

impl Emitter {
    /// An emitter for one layout and mode.
    pub fn new(layout: Layout, mode: Mode) -> Emitter {
        Emitter {
            code: Code::default(),
            links: Vec::new(),
            body: 0,
            ways: [0; Way::COUNT],
            after_call: false,
            quick_entry: false,
            spots: Vec::new(),
            exit_spots: Vec::new(),
            unchecked: Unchecked::default(),
            left_out: 0,
            encoder: Encoder::new(64),
            layout,
            mode,
            base: 0,
            first_exit: 0,
            exits: 0,
            pending: Vec::new(),
            rcx_saved: Vec::new(),
            kept: Vec::new(),
            mark: 0,
            in_insn: false,
            dead_flags: false,
            at_home: false,
        }
    }

    /// Starts the superblock of `pc`, to be placed at address `base`, whose first exit gets number `first_exit`.
    pub fn start(&mut self, pc: u64, base: u64, first_exit: u32) {
        self.code.bytes.clear();
        self.links.clear();
        self.spots.clear();
        self.exit_spots.clear();
        self.pending.clear();
        self.rcx_saved.clear();
        self.kept.clear();
        self.at_home = false;
        self.left_out = 0;
        self.base = base;
        self.first_exit = first_exit;
        self.exits = 0;
        if let Some(whole) = self.layout.whole {
            return self.whole_entries(&whole, pc);
        }
        // r14 = the pc that was asked for, rcx saved. The table is indexed by the low bits only, so the target compares.
        self.rcx_saved.push((0, usize::MAX));
        self.compare_with_rcx(pc);
        self.rcx_is_back();
        self.body = self.code.here();
    }

    /// Goes to the engine if r14 is another pc, without flags: adds the negative, jumps if zero. rcx is in its slot.
    fn compare_with_rcx(&mut self, pc: u64) {
        if let Ok(low) = i32::try_from(pc) {
            self.code.lea(RCX, &Mem { base: Some(TEMP), index: None, disp: -low, fs: false });
        } else {
            self.code.set(RCX, pc.wrapping_neg());
            self.code.lea(RCX, &Mem { base: Some(RCX), index: Some((TEMP, 1)), disp: 0, fs: false });
        }
        let same = self.code.jrcxz();
        self.code.gs_jump(self.layout.end_indirect + INDIRECT_MISS);
        let here = self.code.here();
        self.code.bind8(same, here);
        self.code.gs_load(RCX, self.layout.save_rcx);
    }

    /// Where the pc that a branch goes to is, at a position of an entry or an exit.
    pub fn kept_at(&self, at: usize) -> Kept {
        let there = self.kept.iter().find(|(from, to, _)| (*from..*to).contains(&at));
        there.map_or(Kept::InTemp, |(_, _, kept)| *kept)
    }

    /// Whether the program's rcx is in its slot at a position.
    pub fn rcx_is_saved(&self, at: usize) -> bool {
        self.rcx_saved.iter().any(|(from, to)| (*from..*to).contains(&at))
    }

    /// The registers that the instruction at a position of the copy has borrowed, with their spill slots.
    pub fn borrowed_at(&self, at: usize) -> impl Iterator<Item = (usize, Gpr)> + '_ {
        let spot = self.spots.iter().find(|s| s.body <= at && at < s.done && s.done != usize::MAX);
        spot.into_iter().flat_map(|s| s.borrowed.iter().enumerate().filter_map(|(i, r)| r.map(|r| (i, r))))
    }

    fn changes_state_here(&mut self) {
        let here = self.code.here();
        if let Some(spot) = self.spots.last_mut() {
            spot.exec = here;
        }
    }

    /// Whether the program's state at a position is that before one of its instructions.
    pub fn is_clean(&self, at: usize) -> bool {
        self.spots.iter().any(|s| s.start <= at && at <= s.exec)
    }

    /// The exit whose code holds a position, if one does.
    pub fn exit_at(&self, at: usize) -> Option<usize> {
        let stub =
            self.exit_spots.iter().filter(|(start, _)| *start <= at).max_by_key(|(start, _)| *start)?;
        Some(stub.1)
    }

    /// Finishes the cold part: the stubs of the side exits.
    pub fn finish(&mut self) {
        for p in core::mem::take(&mut self.pending) {
            let here = self.code.here();
            self.code.bind32(p.jump, here);
            if p.straight {
                self.exit_spots.push((here, p.index));
                let away = (here - p.jump - 4) as i32;
                self.ask_engine(p.jump, p.index, away);
            } else {
                self.dead_flags = p.dead_flags;
                self.direct_exit(&p.exit, p.index);
            }
        }
    }

    /// `operand` with the stolen register replaced by r14, which is loaded first. None if that cannot be done.
    fn reachable(&mut self, operand: &Operand) -> Option<Mem> {
        match *operand {
            Operand::Unsupported => None,
            Operand::Absolute { address, fs } => {
                self.code.set(TEMP, address);
                Some(Mem { base: Some(TEMP), index: None, disp: 0, fs })
            }
            Operand::Registers(mut m) => {
                if let Some(b) = m.base.filter(|b| self.steals(*b)) {
                    self.code.gs_load(TEMP, self.layout.home(b));
                    m.base = Some(TEMP);
                } else if let Some((i, s)) = m.index.filter(|(i, _)| self.steals(*i)) {
                    self.code.gs_load(TEMP, self.layout.home(i));
                    m.index = Some((TEMP, s));
                }
                Some(m)
            }
        }
    }

    fn steals(&self, r: Gpr) -> bool {
        self.mode.stolen() & 1 << r != 0
    }

    /// The target of an indirect jump or call into r14.
    fn target(&mut self, insn: &Instruction) -> bool {
        if insn.op0_kind() == OpKind::Register {
            let Some(r) = crate::symbolic::gpr(insn.op0_register()) else { return false };
            if self.steals(r) {
                self.code.gs_load(TEMP, self.layout.home(r));
            } else {
                self.code.lea(TEMP, &Mem { base: Some(r), index: None, disp: 0, fs: false });
            }
            return true;
        }
        let operand = Operand::explicit(insn);
        if operand.both_stolen() {
            return false;
        }
        let Some(mem) = self.reachable(&operand) else { return false };
        self.code.load(TEMP, &mem, 8);
        true
    }
}

/// The pointer that handles an indirect branch with no copy yet lies right behind the one that ends a burst.
pub const INDIRECT_MISS: u32 = 8;

impl Sink for Emitter {
    fn begin(&mut self, insn: &Instruction) {
        self.mark = self.code.here();
        self.in_insn = true;
        let start = self.code.here();
        self.spots.push(Spot {
            pc: insn.ip(),
            start,
            exec: start,
            done: usize::MAX,
            body: usize::MAX,
            borrowed: [None; 3],
        });
    }

    fn rollback(&mut self) {
        self.code.bytes.truncate(self.mark);
        self.spots.pop();
    }

    fn log(&mut self, log: &Log) {
        if !self.mode.record {
            return;
        }
        self.at_home = false;
        match *log {
            Log::Gpr { word, reg } if stolen(reg) => {
                self.code.gs_load(TEMP, self.layout.home(reg));
                self.code.log_gpr(word, TEMP);
            }
            Log::Gpr { word, reg } => self.code.log_gpr(word, reg),
            Log::Sum { word, base, index, scale } => {
                let sum = Operand::Registers(Mem {
                    base: Some(base),
                    index: Some((index, scale)),
                    disp: 0,
                    fs: false,
                });
                if let Some(m) = self.reachable(&sum) {
                    self.code.lea(TEMP, &m);
                    self.code.log_gpr(word, TEMP);
                }
            }
            Log::Memory { word, operand, size } => {
                for piece in 0..u16::from(size).div_ceil(8) {
                    let Some(mut m) = self.reachable(&operand) else { return };
                    m.disp += i32::from(piece) * 8;
                    self.code.load(TEMP, &m, size.min(8));
                    self.code.log_gpr(word + piece, TEMP);
                }
            }
            Log::Vector { word, reg, bytes, vex: true } => self.code.log_vex(word, reg, bytes),
            Log::Vector { word, reg, bytes, vex: false } => self.code.log_xmm(word, reg, bytes),
        }
    }

    fn insn(&mut self, insn: &Instruction, bytes: &[u8], facts: &Facts<'_>) -> bool {
        let before = self.code.here();
        let (mut exec, mut borrowed) = (before, [None; 3]);
        if rewrite::is_verbatim(self.mode.stolen(), insn, facts) {
            self.code.raw(bytes);
        } else if let Some(done) = rewrite::rewrite(
            &mut self.code,
            &mut self.encoder,
            &rewrite::Setting { layout: &self.layout, base: self.base, stolen: self.mode.stolen() },
            &mut self.at_home,
            insn,
            facts,
        ) {
            (exec, borrowed) = done;
        } else {
            self.code.bytes.truncate(before);
            return false;
        }
        let here = self.code.here();
        if let Some(spot) = self.spots.last_mut() {
            spot.done = here;
            spot.exec = exec;
            spot.body = before;
            spot.borrowed = borrowed;
        }
        true
    }

    fn asks_for_flags(&self, pc: u64, exit: &Exit) -> bool {
        let direct = matches!(exit.kind, ExitKind::Taken | ExitKind::Jump | ExitKind::Call);
        direct && self.keeps_check(pc, exit)
    }

    fn flags_are_dead(&mut self, dead: bool) {
        self.dead_flags = dead;
    }

    fn side_exit(&mut self, insn: &Instruction, exit: &Exit) -> bool {
        let index = self.exits;
        self.exits += 1;
        let exit = self.with_its_check(exit);
        let straight = !self.mode.record && !exit.check && insn.is_jcc_short_or_near();
        if straight {
            self.code.align_for_patch(self.base, 2);
        }
        self.changes_state_here();
        let jump = match insn.mnemonic() {
            Mnemonic::Jrcxz | Mnemonic::Loop | Mnemonic::Loope | Mnemonic::Loopne => {
                // These have a short displacement only: hop over a jump.
                let opcode = match insn.mnemonic() {
                    Mnemonic::Jrcxz => 0xe3,
                    Mnemonic::Loop => 0xe2,
                    Mnemonic::Loope => 0xe1,
                    _ => 0xe0,
                };
                self.code.raw(&[opcode, 2, 0xeb, 5]);
                self.code.jmp()
            }
            _ => self.code.jcc(condition(insn)),
        };
        let dead_flags = core::mem::take(&mut self.dead_flags);
        self.pending.push(Pending { jump, exit, index, straight, dead_flags });
        true
    }

    fn last_exit(&mut self, insn: Option<&Instruction>, exit: &Exit) -> bool {
        let index = self.exits;
        let exit = &self.with_its_check(exit);
        let indirect =
            matches!(exit.kind, ExitKind::Return | ExitKind::IndirectJump | ExitKind::IndirectCall);
        let ok = match (exit.kind, insn) {
            (_, Some(insn)) if let Some(whole) = self.layout.whole.filter(|_| indirect) => {
                self.whole_exit(&whole, insn, exit, index)
            }
            (ExitKind::Call, Some(insn)) => {
                self.push_return_address(insn);
                self.direct_exit(exit, index);
                true
            }
            (ExitKind::Return, Some(insn)) => {
                let pop = insn.stack_pointer_increment();
                self.code.load(TEMP, &Mem { base: Some(4), index: None, disp: 0, fs: false }, 8);
                self.changes_state_here();
                self.code.lea(4, &Mem { base: Some(4), index: None, disp: pop, fs: false });
                self.indirect_exit(exit, index);
                true
            }
            (ExitKind::IndirectJump, Some(insn)) => {
                let ok = self.target(insn);
                if ok {
                    self.indirect_exit(exit, index);
                }
                ok
            }
            (ExitKind::IndirectCall, Some(insn)) => {
                let ok = self.target(insn);
                if ok {
                    let kept = i32::try_from(insn.next_ip()).is_err();
                    if kept {
                        self.code.gs_store(self.layout.spill[0], TEMP);
                    }
                    self.push_return_address(insn);
                    if kept {
                        self.code.gs_load(TEMP, self.layout.spill[0]);
                    }
                    self.indirect_exit(exit, index);
                }
                ok
            }
            _ => {
                self.direct_exit(exit, index);
                true
            }
        };
        if ok {
            self.exits += 1;
            self.finish();
        }
        ok
    }
}
