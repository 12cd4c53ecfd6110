//! The code that counts: stubs beside the module, each of which leads back into it.
//!
//! First come all parts that run for every check, then those that run when a burst begins, so that the former lie dense.

use super::bodies::{Bodies, branch_target};
use super::{InPlace, Layout};
use iced_x86::{ConditionCode, Decoder, DecoderOptions, Instruction};
use sonde_x64::flags::{self, Ahead, BY_DEC};
use std::collections::HashMap;

const RCX: u8 = 1;
const R14: u8 = 14;

/// Where in the stubs the address of the bell lies, which whoever places them fills in.
pub const BELL: usize = 56;
/// Where in the stubs a thread without checks reads the bell.
pub const RINGS_AT: u64 = 16;
/// Bytes before the first stub.
const GATE: usize = 64;

/// Stubs begin at multiples of this: measured, python takes 12 % more time than unchanged, 17 if they follow at once.
const APART: usize = 32;

/// What lies between them: a breakpoint.
const NEVER: u8 = 0xcc;

/// Instructions that are replaced for the jump among them.
pub struct Run<'i> {
    pub before: &'i [Instruction],
    pub jump: &'i Instruction,
    /// Where control goes on if the jump is not taken.
    pub behind: &'i [Instruction],
}

/// Writes stubs.
pub struct Stubs<'b, 'd> {
    bodies: &'b Bodies<'d>,
    layout: Layout,
    /// Stubs that several branches lead through, by where they go on.
    shared: HashMap<u64, u32>,
    /// By place: whether the flags mean nothing there.
    dead: HashMap<u64, bool>,
    /// Begins of bursts that are still to be written.
    begins: Vec<Begin>,
    /// A short jump of the stub being written that has no target yet: where it ends, and where the burst would begin.
    near: Option<(u32, u64)>,
    pub out: InPlace,
}

/// A check that was written: where four bytes are to lead when none is left.
struct Begin {
    field: u32,
    keeps_flags: bool,
    pc: u64,
}

impl<'b, 'd> Stubs<'b, 'd> {
    pub fn new(bodies: &'b Bodies<'d>, layout: Layout) -> Stubs<'b, 'd> {
        let mut stubs = Stubs {
            bodies,
            layout,
            shared: HashMap::new(),
            dead: HashMap::new(),
            begins: Vec::new(),
            near: None,
            out: InPlace::default(),
        };
        stubs.gate();
        stubs
    }

    /// Where all stubs go when no checks are left, with where to go on in r14: reads the bell, which waits for Sonde. If that
    /// is gone, the thread goes on, and has checks for ever.
    fn gate(&mut self) {
        let Layout { checks, app_r14, target, .. } = self.layout;
        self.gs(&[0x4c, 0x89], R14 & 7, target);
        // mov r14, [rip + the rest up to BELL]; mov r14, [r14]
        self.raw(&[0x4c, 0x8b, 0x35, BELL as u8 - RINGS_AT as u8, 0, 0, 0]);
        debug_assert_eq!(u64::from(self.here()), RINGS_AT);
        self.raw(&[0x4d, 0x8b, 0x36]);
        self.raw(&[0x49, 0xbe]);
        self.raw(&i64::MAX.to_le_bytes());
        self.gs(&[0x4c, 0x89], R14 & 7, checks);
        self.gs(&[0x4c, 0x8b], R14 & 7, app_r14);
        // jmp gs:[target]
        self.gs(&[0xff], 4, target);
        self.out.stubs.resize(GATE, 0);
    }

    /// Writes what runs when a burst begins: with where to go on in r14 to the gate. An instruction that was moved is gone on
    /// at in its copy, since it may lie under the jump that leads here.
    pub fn finish(mut self) -> InPlace {
        self.out.moved.sort_unstable();
        for Begin { field, keeps_flags, pc } in std::mem::take(&mut self.begins) {
            let distance = self.here() - (field + 4);
            self.out.stubs[field as usize..field as usize + 4].copy_from_slice(&distance.to_le_bytes());
            if keeps_flags {
                self.gs(&[0x48, 0x8b], RCX, self.layout.save);
            }
            self.gs(&[0x4c, 0x89], R14 & 7, self.layout.app_r14);
            self.raw(&[0x4c, 0x8d, 0x35]);
            match self.out.moved.binary_search_by_key(&pc, |(at, _)| *at) {
                Ok(moved) => self.within(self.out.moved[moved].1),
                Err(_) => self.relative(pc, 0),
            }
            self.raw(&[0xe9]);
            self.within(0);
        }
        self.out.edits.sort_unstable_by_key(|edit| edit.field);
        self.out
    }

    fn raw(&mut self, bytes: &[u8]) {
        self.out.stubs.extend_from_slice(bytes);
    }

    /// Begins a stub.
    fn open(&mut self) -> u32 {
        let end = self.out.stubs.len().next_multiple_of(APART);
        self.out.stubs.resize(end, NEVER);
        self.here()
    }

    fn here(&self) -> u32 {
        self.out.stubs.len() as u32
    }

    /// Four bytes that lead to an address of the module; `behind` more bytes of the instruction follow.
    fn relative(&mut self, target: u64, behind: u32) {
        let at = self.here();
        self.out.relative.push(at);
        let value = target.wrapping_sub(u64::from(at + 4 + behind)) as u32;
        self.raw(&value.to_le_bytes());
    }

    /// Four bytes that lead to a place in the stubs.
    fn within(&mut self, to: u32) {
        let value = to.wrapping_sub(self.here() + 4);
        self.raw(&value.to_le_bytes());
    }

    fn gs(&mut self, opcode: &[u8], register: u8, at: i32) {
        self.raw(&[0x65]);
        self.raw(opcode);
        self.raw(&[register << 3 | 4, 0x25]);
        self.raw(&at.to_le_bytes());
    }

    /// A stub that counts and goes on at an address, where a burst would begin.
    pub fn count_and_go(&mut self, target: u64) -> u32 {
        if let Some(start) = self.shared.get(&target) {
            return *start;
        }
        let start = self.open();
        self.count(target, Some(&[target]));
        self.go(target);
        self.close();
        self.shared.insert(target, start);
        start
    }

    /// A stub that counts, runs instructions of the program, and goes on behind them.
    pub fn count_and_run(&mut self, run: &[Instruction]) -> u32 {
        let start = self.open();
        self.count(run[0].ip(), Some(&[run[0].ip()]));
        for insn in run {
            self.copy(insn);
        }
        let last = &run[run.len() - 1];
        if super::bodies::falls(last) {
            self.go(last.next_ip());
        }
        self.close();
        start
    }

    /// A stub that runs instructions of the program around a back-edge, and counts if that is taken.
    pub fn run_and_count(&mut self, run: &Run<'_>, head: u64) -> u32 {
        let start = self.open();
        run.before.iter().for_each(|insn| self.copy(insn));
        self.note(run.jump);
        let not_taken = self.unless(run);
        self.count(head, Some(&[head]));
        self.go(head);
        self.close();
        if let Some(field) = not_taken {
            let distance = self.here() - (field + 4);
            self.out.stubs[field as usize..field as usize + 4].copy_from_slice(&distance.to_le_bytes());
            run.behind.iter().for_each(|insn| self.copy(insn));
            self.go(run.behind[run.behind.len() - 1].next_ip());
        }
        start
    }

    /// A jump out of the stub, taken where the run's jump is not. If instructions follow in the run, gives where the four
    /// bytes lie that are to lead to them.
    fn unless(&mut self, run: &Run<'_>) -> Option<u32> {
        let condition = run.jump.condition_code();
        if run.jump.is_jmp_short_or_near() {
            return None;
        }
        if run.jump.is_jcc_short_or_near() {
            // The opposite condition differs in the lowest bit.
            self.raw(&[0x0f, 0x80 | condition_number(condition) ^ 1]);
        } else {
            // `loop` and `jrcxz` have no opposite: they skip the jump.
            let bytes = self.bytes_of(run.jump);
            self.raw(&bytes[..bytes.len() - 1]);
            self.raw(&[5, 0xe9]);
        }
        if run.behind.is_empty() {
            self.relative(run.jump.next_ip(), 0);
            return None;
        }
        let field = self.here();
        self.raw(&[0; 4]);
        Some(field)
    }

    /// A stub that runs instructions of the program, the last of which is an indirect jump, and counts before it.
    pub fn run_and_jump(&mut self, run: &Run<'_>) -> u32 {
        let start = self.open();
        run.before.iter().for_each(|insn| self.copy(insn));
        let bodies = self.bodies;
        self.count(run.jump.ip(), bodies.jump(run.jump.ip()));
        self.copy(run.jump);
        self.close();
        start
    }

    /// Counts a check, where control goes on at one of `next` if that is known; a burst begins at `pc`.
    fn count(&mut self, pc: u64, next: Option<&[u64]>) {
        let Layout { checks, save, .. } = self.layout;
        let keeps_flags = !next.is_some_and(|next| next.iter().all(|at| self.flags_are_dead(*at)));
        if keeps_flags {
            self.gs(&[0x48, 0x89], RCX, save);
            self.gs(&[0x48, 0x8b], RCX, checks);
            // lea rcx, [rcx - 1]
            self.raw(&[0x48, 0x8d, 0x49, 0xff]);
            self.gs(&[0x48, 0x89], RCX, checks);
            // jrcxz, which reaches only to the end of the stub
            self.raw(&[0xe3, 0]);
            self.near = Some((self.here(), pc));
            self.gs(&[0x48, 0x8b], RCX, save);
        } else {
            // dec qword gs:[checks]; jz
            self.gs(&[0x48, 0xff], 1, checks);
            self.raw(&[0x0f, 0x84]);
            self.begins.push(Begin { field: self.here(), keeps_flags, pc });
            self.raw(&[0; 4]);
        }
    }

    /// Ends a stub that goes on elsewhere.
    fn close(&mut self) {
        if let Some((from, pc)) = self.near.take() {
            let distance = self.here() - from;
            // A run is at most a jump's length and an instruction long, so that its copy is within reach.
            debug_assert!(distance < 128);
            self.out.stubs[from as usize - 1] = distance as u8;
            self.raw(&[0xe9]);
            self.begins.push(Begin { field: self.here(), keeps_flags: true, pc });
            self.raw(&[0; 4]);
        }
    }

    fn flags_are_dead(&mut self, at: u64) -> bool {
        if let Some(dead) = self.dead.get(&at) {
            return *dead;
        }
        let mut places = Vec::new();
        let dead = flags::are_dead_ahead(at, BY_DEC, self.bodies, &mut places);
        self.dead.extend(places.into_iter().map(|place| (place, true)));
        self.dead.insert(at, dead);
        dead
    }

    fn go(&mut self, target: u64) {
        self.raw(&[0xe9]);
        self.relative(target, 0);
    }

    fn bytes_of(&self, insn: &Instruction) -> &'d [u8] {
        self.bodies.bytes(insn.ip()).and_then(|bytes| bytes.get(..insn.len())).unwrap_or_default()
    }

    /// Remembers where an instruction lies now.
    fn note(&mut self, insn: &Instruction) {
        self.out.moved.push((insn.ip(), self.here()));
    }

    /// An instruction of the program: as it is, or so that it means the same place from here.
    fn copy(&mut self, insn: &Instruction) {
        self.note(insn);
        let bytes = self.bytes_of(insn);
        if let Some(target) = branch_target(insn) {
            if insn.is_jcc_short_or_near() {
                self.raw(&[0x0f, 0x80 | condition_number(insn.condition_code())]);
            } else {
                self.raw(&[0xe9]);
            }
            return self.relative(target, 0);
        }
        if !insn.is_ip_rel_memory_operand() {
            return self.raw(bytes);
        }
        let mut decoder = Decoder::with_ip(64, bytes, insn.ip(), DecoderOptions::NONE);
        let again = decoder.decode();
        let field = decoder.get_constant_offsets(&again).displacement_offset();
        self.raw(&bytes[..field]);
        self.relative(insn.ip_rel_memory_address(), (bytes.len() - field - 4) as u32);
        self.raw(&bytes[field + 4..]);
    }
}

impl Ahead for Bodies<'_> {
    fn code(&self, at: u64) -> Option<&[u8]> {
        self.bytes(at)
    }

    fn jump(&self, at: u64) -> Option<&[u64]> {
        Bodies::jump(self, at)
    }
}

/// The number of a condition in the code of a jump.
fn condition_number(condition: ConditionCode) -> u8 {
    match condition {
        ConditionCode::o => 0,
        ConditionCode::no => 1,
        ConditionCode::b => 2,
        ConditionCode::ae => 3,
        ConditionCode::e => 4,
        ConditionCode::ne => 5,
        ConditionCode::be => 6,
        ConditionCode::a => 7,
        ConditionCode::s => 8,
        ConditionCode::ns => 9,
        ConditionCode::p => 10,
        ConditionCode::np => 11,
        ConditionCode::l => 12,
        ConditionCode::ge => 13,
        ConditionCode::le => 14,
        _ => 15,
    }
}
