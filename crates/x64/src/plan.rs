//! The plan of a superblock: its instructions, its exits, and what each exit's log record contains.

use crate::asm::{Gpr, RCX};
use crate::class::Class;
use crate::memory::{Access, Address, Operand, Reference, Repeat, Term, Value, directions};
use crate::symbolic::{Known, Registers, gpr};
use alloc::vec::Vec;
use iced_x86::{
    Code as Op, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfo, InstructionInfoFactory,
    Mnemonic, OpKind, Register,
};

/// What is written to the log besides the path taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Blocks only.
    Blocks,
    /// Blocks and addresses of loads and stores.
    Addresses,
    /// Blocks, addresses and values.
    Values,
}

/// Bounds of a superblock.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most instructions.
    pub insns: usize,
    /// No new instruction once the record has this many words.
    pub words: usize,
    /// Direct jumps that may be followed.
    pub jumps: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { insns: 48, words: 96, jumps: 3 }
    }
}

/// Largest record in words that any plan can reach: the word limit plus what one instruction can add.
pub const MAX_RECORD_WORDS: usize = 96 + 64;

/// Something to write to the log at a point of the superblock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Log {
    /// A general register.
    Gpr {
        /// Where.
        word: u16,
        /// Which.
        reg: Gpr,
    },
    /// `base + index * scale`.
    Sum {
        /// Where.
        word: u16,
        /// Base register.
        base: Gpr,
        /// Index register.
        index: Gpr,
        /// Scale of the index.
        scale: u8,
    },
    /// `size` bytes of memory, in words.
    Memory {
        /// Where the first word goes.
        word: u16,
        /// The operand.
        operand: Operand,
        /// 1, 2, 4, or a multiple of 8.
        size: u8,
    },
    /// The low bytes of a vector register.
    Vector {
        /// Where the first word goes.
        word: u16,
        /// Register number, below 16.
        reg: u8,
        /// 4, 8, 16 or 32.
        bytes: u8,
        /// Whether the program's instruction is VEX-encoded.
        vex: bool,
    },
}

/// Why a superblock ends at an exit and where the program goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExitKind {
    /// A conditional branch is taken.
    Taken,
    /// A direct jump.
    Jump,
    /// A direct call; the return address is pushed.
    Call,
    /// A return; the top of the stack is the target.
    Return,
    /// An indirect jump.
    IndirectJump,
    /// An indirect call.
    IndirectCall,
    /// The next instruction is a system call.
    Syscall,
    /// The next instruction is one that the copy does not run.
    Native,
    /// A limit was reached; the program goes on at the target.
    Fall,
}

/// One way out of a superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Why.
    pub kind: ExitKind,
    /// Instructions executed when leaving here.
    pub insns: u16,
    /// References made when leaving here.
    pub refs: u16,
    /// Words of the record, the header included.
    pub words: u16,
    /// Next pc, for direct exits.
    pub target: u64,
    /// Whether a burst counts this edge: function entries, back-edges, indirect branches (paper 4 section 2).
    pub check: bool,
}

/// One instruction of the superblock.
#[derive(Clone, Copy, Debug)]
pub struct Insn {
    /// Where it lies in the program.
    pub pc: u64,
    /// Bytes.
    pub len: u8,
    /// Class.
    pub class: Class,
    /// Whether control can go elsewhere than to the next instruction in memory.
    pub branch: bool,
}

/// The plan of one superblock.
#[derive(Default)]
pub struct Plan {
    /// Instructions in the order of execution.
    pub insns: Vec<Insn>,
    /// References in the order of execution.
    pub refs: Vec<Reference>,
    /// Exits in the order of execution; the last one ends the superblock.
    pub exits: Vec<Exit>,
    /// Distinct stretches of program bytes used: start and length.
    pub segments: Vec<(u64, u32)>,
}

/// Receives the plan while it is made; the emitter is one.
pub trait Sink {
    /// A new instruction begins at the current position; a later [`rollback`](Sink::rollback) returns here.
    fn begin(&mut self, insn: &Instruction);
    /// Forget everything since the last `begin`.
    fn rollback(&mut self);
    /// Write this to the log here.
    fn log(&mut self, log: &Log);
    /// The program's instruction itself; false if it cannot be copied.
    fn insn(&mut self, insn: &Instruction, bytes: &[u8], info: &InstructionInfo) -> bool;
    /// A conditional exit.
    fn side_exit(&mut self, insn: &Instruction, exit: &Exit) -> bool;
    /// The last exit; `insn` is the branch that makes it, if one does. False if it cannot be copied.
    fn last_exit(&mut self, insn: Option<&Instruction>, exit: &Exit) -> bool;
}

/// A sink for readers of the log, who need the plan only.
pub struct NoSink;

impl Sink for NoSink {
    fn begin(&mut self, _: &Instruction) {}
    fn rollback(&mut self) {}
    fn log(&mut self, _: &Log) {}
    fn insn(&mut self, _: &Instruction, _: &[u8], _: &InstructionInfo) -> bool {
        true
    }
    fn side_exit(&mut self, _: &Instruction, _: &Exit) -> bool {
        true
    }
    fn last_exit(&mut self, _: Option<&Instruction>, _: &Exit) -> bool {
        true
    }
}

/// Makes plans; keeps its allocations between them.
pub struct Planner {
    /// Taken out while its answer is in use; never empty between calls.
    factory: Option<InstructionInfoFactory>,
    detail: Detail,
    limits: Limits,
    /// Displacement from the fs base of the field that starts a restartable sequence, where the C library told it.
    rseq_cs: Option<i64>,
    words: u16,
    /// `words` before the instruction at hand, to go back to.
    words_before: u16,
    regs: Registers,
    pre: Vec<Log>,
    post: Vec<Log>,
    refs: Vec<Reference>,
}

/// What an instruction does to the run.
enum Step {
    Next,
    Side(u64),
    Follow(u64),
    Last(ExitKind, u64),
    /// Ends before the instruction.
    Before(ExitKind),
}

impl Planner {
    /// A planner for one level of detail.
    pub fn new(detail: Detail, limits: Limits) -> Planner {
        Planner {
            factory: Some(InstructionInfoFactory::new()),
            detail,
            limits,
            rseq_cs: None,
            words: 1,
            words_before: 1,
            regs: Registers::default(),
            pre: Vec::with_capacity(16),
            post: Vec::with_capacity(16),
            refs: Vec::with_capacity(16),
        }
    }

    /// Tells where the rseq critical-section pointer lies relative to the fs base: a store there ends a superblock,
    /// because the kernel would not recognise the copy as part of the restartable sequence.
    pub fn set_rseq_cs(&mut self, displacement: Option<i64>) {
        self.rseq_cs = displacement;
    }

    /// Plans the superblock at `pc` with at most `max_insns` instructions into `plan`. `fetch` gives the bytes at an
    /// address, as many as there are up to some end (at least one instruction's worth where code goes on), or none
    /// where there is no code to copy.
    pub fn plan<'a>(
        &mut self,
        pc: u64,
        max_insns: usize,
        fetch: &mut dyn FnMut(u64) -> Option<&'a [u8]>,
        plan: &mut Plan,
        sink: &mut dyn Sink,
    ) {
        plan.insns.clear();
        plan.refs.clear();
        plan.exits.clear();
        plan.segments.clear();
        self.words = 1;
        self.regs = Registers::default();
        let max_insns = max_insns.min(self.limits.insns);
        let mut at = pc;
        let mut jumps = 0;
        'segment: loop {
            let Some(bytes) = fetch(at) else { return self.stop(plan, sink, ExitKind::Native, at) };
            let mut decoder = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE);
            let mut insn = Instruction::default();
            plan.segments.push((at, 0));
            let start = at;
            loop {
                if plan.insns.len() >= max_insns || self.words as usize >= self.limits.words {
                    return self.stop(plan, sink, ExitKind::Fall, at);
                }
                if !decoder.can_decode() {
                    continue 'segment;
                }
                decoder.decode_out(&mut insn);
                let raw = &bytes[(at - start) as usize..];
                if insn.is_invalid() {
                    // Either no instruction, or one cut by the end of the bytes; if it was cut, fetching again from
                    // here gives it whole.
                    if at != start && raw.len() < 15 {
                        continue 'segment;
                    }
                    return self.stop(plan, sink, ExitKind::Native, at);
                }
                let step = self.step(&insn, plan, sink, &raw[..insn.len()]);
                if let Step::Before(kind) = step {
                    return self.stop(plan, sink, kind, at);
                }
                let branch = insn.flow_control() != FlowControl::Next;
                plan.insns.push(Insn { pc: at, len: insn.len() as u8, class: Class::of(&insn), branch });
                if let Some(segment) = plan.segments.last_mut() {
                    segment.1 += insn.len() as u32;
                }
                at = insn.next_ip();
                match step {
                    Step::Next | Step::Before(_) => {}
                    Step::Side(target) => {
                        let exit = self.exit(plan, ExitKind::Taken, target, target <= insn.ip());
                        if !sink.side_exit(&insn, &exit) {
                            plan.insns.pop();
                            return self.stop(plan, sink, ExitKind::Native, insn.ip());
                        }
                        plan.exits.push(exit);
                    }
                    Step::Follow(target) => {
                        let seen = plan.insns.iter().any(|i| i.pc == target);
                        let check = target <= insn.ip();
                        if seen || check || jumps == self.limits.jumps {
                            let exit = self.exit(plan, ExitKind::Jump, target, check);
                            sink.last_exit(None, &exit);
                            plan.exits.push(exit);
                            return;
                        }
                        jumps += 1;
                        at = target;
                        continue 'segment;
                    }
                    Step::Last(kind, target) => {
                        let exit = self.exit(plan, kind, target, true);
                        if !sink.last_exit(Some(&insn), &exit) {
                            sink.rollback();
                            plan.insns.pop();
                            plan.refs.truncate(plan.refs.len().saturating_sub(self.refs.len()));
                            self.words = self.words_before;
                            return self.stop(plan, sink, ExitKind::Native, insn.ip());
                        }
                        plan.exits.push(exit);
                        return;
                    }
                }
            }
        }
    }

    fn exit(&self, plan: &Plan, kind: ExitKind, target: u64, check: bool) -> Exit {
        Exit {
            kind,
            insns: plan.insns.len() as u16,
            refs: plan.refs.len() as u16,
            words: self.words,
            target,
            check,
        }
    }

    fn stop(&mut self, plan: &mut Plan, sink: &mut dyn Sink, kind: ExitKind, at: u64) {
        if plan.segments.last().is_some_and(|s| s.1 == 0) {
            plan.segments.pop();
        }
        let exit = self.exit(plan, kind, at, false);
        sink.last_exit(None, &exit);
        plan.exits.push(exit);
    }

    /// Classifies one instruction, plans its references and hands it to the sink. On `Before`, nothing was done.
    fn step(&mut self, insn: &Instruction, plan: &mut Plan, sink: &mut dyn Sink, raw: &[u8]) -> Step {
        if let Some(kind) = refused(insn) {
            return Step::Before(kind);
        }
        sink.begin(insn);
        let regs = self.regs;
        self.words_before = self.words;
        let mut factory = self.factory.take().unwrap_or_else(InstructionInfoFactory::new);
        let info = factory.info(insn);
        self.pre.clear();
        self.post.clear();
        self.refs.clear();
        let ok = self.references(insn, info, plan.insns.len() as u16);
        let step = if !ok { Step::Before(ExitKind::Native) } else { flow(insn) };
        let mut done = ok;
        if ok {
            for log in &self.pre {
                sink.log(log);
            }
            if matches!(step, Step::Next) {
                done = sink.insn(insn, raw, info);
                for log in &self.post {
                    sink.log(log);
                }
            }
            self.update(insn, info);
        }
        self.factory = Some(factory);
        if !done {
            sink.rollback();
            self.words = self.words_before;
            self.regs = regs;
            return Step::Before(ExitKind::Native);
        }
        plan.refs.extend_from_slice(&self.refs);
        step
    }

    fn word(&mut self) -> u16 {
        self.words += 1;
        self.words - 1
    }

    /// Plans all references of an instruction; false if it must not be copied.
    fn references(&mut self, insn: &Instruction, info: &InstructionInfo, index: u16) -> bool {
        let memory = info.used_memory();
        let segment_gs = memory.iter().any(|m| m.segment() == Register::GS);
        if segment_gs {
            return false;
        }
        if self.detail == Detail::Blocks {
            return !self.touches_rseq(insn);
        }
        if self.touches_rseq(insn) {
            return false;
        }
        let repeat = self.repeat(insn);
        for m in memory {
            let (reads, writes, conditional) = directions(m.access());
            if !reads && !writes {
                continue;
            }
            let operand = Operand::of(insn, m);
            let mut reference = Reference {
                insn: index,
                access: Access::Load,
                size: m.memory_size().size() as u16,
                address: self.address(&operand),
                value: Value::Unknown,
                repeat,
                atomic: reads && writes && (insn.has_lock_prefix() || insn.mnemonic() == Mnemonic::Xchg),
                conditional: conditional && repeat == Repeat::Once,
            };
            let plain = repeat == Repeat::Once && !conditional && self.detail == Detail::Values;
            if reads {
                if plain {
                    reference.value = self.loaded(insn, &operand, reference.size);
                }
                self.refs.push(reference);
            }
            if writes {
                reference.access = Access::Store;
                reference.value =
                    if plain { self.stored(insn, info, &operand, reference.size) } else { Value::Unknown };
                self.refs.push(reference);
            }
        }
        true
    }

    /// Whether the instruction may start a restartable sequence (storing zero, which the C library does, ends one).
    fn touches_rseq(&self, insn: &Instruction) -> bool {
        self.rseq_cs.is_some_and(|d| {
            insn.mnemonic() == Mnemonic::Mov
                && insn.op0_kind() == OpKind::Memory
                && insn.memory_segment() == Register::FS
                && insn.memory_displacement64() as i64 == d
                && !(insn.op1_kind() != OpKind::Register && insn.immediate(1) == 0)
        })
    }

    fn repeat(&mut self, insn: &Instruction) -> Repeat {
        let repeated = insn.is_string_instruction() && (insn.has_rep_prefix() || insn.has_repne_prefix());
        if !repeated {
            return Repeat::Once;
        }
        let before = self.log_gpr(RCX);
        let after = self.word();
        self.post.push(Log::Gpr { word: after, reg: RCX });
        Repeat::Counted { before, after }
    }

    /// Logs a register before the instruction, and remembers that it is known now.
    fn log_gpr(&mut self, reg: Gpr) -> u16 {
        let word = self.word();
        self.pre.push(Log::Gpr { word, reg });
        self.regs.learn(reg, Known::Word { index: word, delta: 0 });
        word
    }

    fn address(&mut self, operand: &Operand) -> Option<Address> {
        let mem = match *operand {
            Operand::Unsupported => return None,
            Operand::Absolute { address, fs } => {
                return Some(Address { terms: [None; 2], offset: address, fs });
            }
            Operand::Registers(mem) => mem,
        };
        let mut address = Address { terms: [None; 2], offset: mem.disp as i64 as u64, fs: mem.fs };
        if let (Some(base), Some((index, scale))) = (mem.base, mem.index) {
            let unknown = self.regs.get(base) == Known::No && self.regs.get(index) == Known::No;
            if unknown && base != index && !operand.both_stolen() {
                let word = self.sum(base, index, scale);
                address.terms[0] = Some(Term { word, scale: 1 });
                return Some(address);
            }
        }
        if let Some(base) = mem.base {
            address.terms[0] = self.term(base, 1, &mut address.offset);
        }
        if let Some((index, scale)) = mem.index {
            address.terms[1] = self.term(index, scale, &mut address.offset);
        }
        Some(address)
    }

    fn sum(&mut self, base: Gpr, index: Gpr, scale: u8) -> u16 {
        if let Some(word) = self.regs.sum(base, index, scale) {
            return word;
        }
        let word = self.word();
        self.pre.push(Log::Sum { word, base, index, scale });
        self.regs.learn_sum(base, index, scale, word);
        word
    }

    fn term(&mut self, reg: Gpr, scale: u8, offset: &mut u64) -> Option<Term> {
        let (word, delta) = match self.regs.get(reg) {
            Known::Const(c) => {
                *offset = offset.wrapping_add(c.wrapping_mul(u64::from(scale)));
                return None;
            }
            Known::Word { index, delta } => (index, delta),
            Known::No => (self.log_gpr(reg), 0),
        };
        *offset = offset.wrapping_add(delta.wrapping_mul(u64::from(scale)));
        Some(Term { word, scale })
    }

    /// Where the value of a load is found.
    fn loaded(&mut self, insn: &Instruction, operand: &Operand, size: u16) -> Value {
        match insn.mnemonic() {
            Mnemonic::Ret => return Value::NextPc,
            Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd => {
                if let Some(reg) = low_gpr(insn, 0) {
                    return self.log_after(reg);
                }
            }
            Mnemonic::Pop if insn.op0_kind() == OpKind::Register && size == 8 => {
                if let Some(reg) = low_gpr(insn, 0).filter(|r| *r != 4) {
                    return self.log_after(reg);
                }
            }
            Mnemonic::Leave => return self.log_after(5),
            m if is_vector_move(m) => {
                if let Some(v) = self.log_vector(insn, 0, size, true) {
                    return v;
                }
            }
            _ => {}
        }
        self.log_memory(operand, size, true)
    }

    fn log_after(&mut self, reg: Gpr) -> Value {
        let word = self.word();
        self.post.push(Log::Gpr { word, reg });
        Value::Word { index: word, delta: 0 }
    }

    fn log_vector(&mut self, insn: &Instruction, op: u32, size: u16, after: bool) -> Option<Value> {
        let reg = insn.op_register(op);
        let vex = insn.encoding() == iced_x86::EncodingKind::VEX;
        let legacy = insn.encoding() == iced_x86::EncodingKind::Legacy;
        let fits = matches!(size, 4 | 8 | 16) && reg.is_xmm() && legacy
            || vex && (size == 16 && reg.is_xmm() || size == 32 && reg.is_ymm());
        if insn.op_kind(op) != OpKind::Register || !fits || reg.number() >= 16 {
            return None;
        }
        let first = self.words;
        let count = size.div_ceil(8);
        self.words += count;
        let log = Log::Vector { word: first, reg: reg.number() as u8, bytes: size as u8, vex };
        if after {
            self.post.push(log)
        } else {
            self.pre.push(log)
        }
        Some(if count == 1 {
            Value::Word { index: first, delta: 0 }
        } else {
            Value::Words { first, count: count as u8 }
        })
    }

    /// Copies the operand's memory into the log, before or after the instruction.
    fn log_memory(&mut self, operand: &Operand, size: u16, before: bool) -> Value {
        if !matches!(size, 1 | 2 | 4 | 8 | 16 | 32 | 64)
            || *operand == Operand::Unsupported
            || operand.both_stolen()
        {
            return Value::Unknown;
        }
        let first = self.words;
        let count = size.div_ceil(8);
        self.words += count;
        let log = Log::Memory { word: first, operand: *operand, size: size as u8 };
        if before {
            self.pre.push(log)
        } else {
            self.post.push(log)
        }
        if count == 1 {
            Value::Word { index: first, delta: 0 }
        } else {
            Value::Words { first, count: count as u8 }
        }
    }

    /// Where the value of a store is found.
    fn stored(&mut self, insn: &Instruction, info: &InstructionInfo, operand: &Operand, size: u16) -> Value {
        match insn.mnemonic() {
            Mnemonic::Call => return Value::Const(insn.next_ip()),
            Mnemonic::Mov | Mnemonic::Push => {
                let source = insn.op_count() - 1;
                if let Some(reg) = low_gpr(insn, source) {
                    return self.content(reg);
                }
                match insn.op_kind(source) {
                    OpKind::Register | OpKind::Memory => {}
                    _ => return Value::Const(insn.immediate(source)),
                }
                if insn.op_kind(source) == OpKind::Memory {
                    return self.refs.last().map_or(Value::Unknown, |r| r.value);
                }
            }
            Mnemonic::Stosb | Mnemonic::Stosw | Mnemonic::Stosd | Mnemonic::Stosq => return self.content(0),
            Mnemonic::Movsb | Mnemonic::Movsw | Mnemonic::Movsq => {
                return self.refs.last().map_or(Value::Unknown, |r| r.value);
            }
            m if is_vector_move(m) => {
                if let Some(v) = self.log_vector(insn, 1, size, false) {
                    return v;
                }
            }
            _ => {}
        }
        // Read it back after the instruction, if the address is still there and the instruction goes on to the next.
        let moved = info.used_registers().iter().any(|u| {
            let (_, writes, _) = directions(u.access());
            writes && gpr(u.register()).is_some_and(|r| operand.uses(r))
        });
        if moved || insn.flow_control() != FlowControl::Next || insn.is_stack_instruction() {
            return Value::Unknown;
        }
        self.log_memory(operand, size, false)
    }

    fn content(&mut self, reg: Gpr) -> Value {
        match self.regs.get(reg) {
            Known::Const(c) => Value::Const(c),
            Known::Word { index, delta } => Value::Word { index, delta },
            Known::No => Value::Word { index: self.log_gpr(reg), delta: 0 },
        }
    }

    /// Follows what the instruction does to the registers.
    fn update(&mut self, insn: &Instruction, info: &InstructionInfo) {
        let before = self.regs;
        for used in info.used_registers() {
            let (_, writes, _) = directions(used.access());
            if let (true, Some(r)) = (writes, gpr(used.register())) {
                self.regs.set(r, Known::No);
            }
        }
        let push = insn.stack_pointer_increment();
        let into_rsp = insn.mnemonic() == Mnemonic::Pop && low_gpr(insn, 0) == Some(4);
        let by_constant =
            insn.is_stack_instruction() && !matches!(insn.mnemonic(), Mnemonic::Leave | Mnemonic::Enter);
        if push != 0 && by_constant && !into_rsp {
            self.regs.set(4, before.get(4).plus(push as i64 as u64));
        }
        for log in &self.post {
            if let Log::Gpr { word, reg } = *log {
                self.regs.set(reg, Known::Word { index: word, delta: 0 });
            }
        }
        if let Some((reg, known)) = computed(insn, &before) {
            self.regs.set(reg, known);
        }
    }
}

/// Instructions whose result is a known register plus a constant.
fn computed(insn: &Instruction, before: &Registers) -> Option<(Gpr, Known)> {
    let wide = insn.op_count() > 0 && insn.op0_kind() == OpKind::Register && insn.op0_register().is_gpr64();
    let dst = if wide { gpr(insn.op0_register())? } else { return constant32(insn) };
    let known = match insn.code() {
        Op::Mov_r64_rm64 | Op::Mov_rm64_r64 if insn.op1_kind() == OpKind::Register => {
            before.get(gpr(insn.op1_register())?)
        }
        Op::Mov_r64_imm64 | Op::Mov_rm64_imm32 => Known::Const(insn.immediate(1)),
        Op::Add_rm64_imm8 | Op::Add_rm64_imm32 | Op::Add_RAX_imm32 => before.get(dst).plus(insn.immediate(1)),
        Op::Sub_rm64_imm8 | Op::Sub_rm64_imm32 | Op::Sub_RAX_imm32 => {
            before.get(dst).plus(insn.immediate(1).wrapping_neg())
        }
        Op::Inc_rm64 => before.get(dst).plus(1),
        Op::Dec_rm64 => before.get(dst).plus(u64::MAX),
        Op::Lea_r64_m if insn.memory_index() == Register::None => match insn.memory_base() {
            Register::RIP => Known::Const(insn.memory_displacement64()),
            base if base.is_gpr64() => before.get(gpr(base)?).plus(insn.memory_displacement64()),
            _ => return None,
        },
        _ => return None,
    };
    Some((dst, known))
}

fn constant32(insn: &Instruction) -> Option<(Gpr, Known)> {
    if insn.op_count() < 2 || insn.op0_kind() != OpKind::Register || !insn.op0_register().is_gpr32() {
        return None;
    }
    let dst = gpr(insn.op0_register())?;
    match insn.code() {
        Op::Mov_r32_imm32 => Some((dst, Known::Const(u64::from(insn.immediate32())))),
        Op::Xor_r32_rm32 | Op::Xor_rm32_r32
            if insn.op1_kind() == OpKind::Register && insn.op0_register() == insn.op1_register() =>
        {
            Some((dst, Known::Const(0)))
        }
        _ => None,
    }
}

/// The general register that operand `op` is, unless it is a high byte.
fn low_gpr(insn: &Instruction, op: u32) -> Option<Gpr> {
    if insn.op_kind(op) != OpKind::Register {
        return None;
    }
    let r = insn.op_register(op);
    if matches!(r, Register::AH | Register::BH | Register::CH | Register::DH) { None } else { gpr(r) }
}

fn is_vector_move(m: Mnemonic) -> bool {
    matches!(
        m,
        Mnemonic::Movups
            | Mnemonic::Movaps
            | Mnemonic::Movupd
            | Mnemonic::Movapd
            | Mnemonic::Movdqu
            | Mnemonic::Movdqa
            | Mnemonic::Lddqu
            | Mnemonic::Movntdq
            | Mnemonic::Movntps
            | Mnemonic::Movntpd
            | Mnemonic::Movss
            | Mnemonic::Movsd
            | Mnemonic::Movq
            | Mnemonic::Movd
            | Mnemonic::Vmovups
            | Mnemonic::Vmovaps
            | Mnemonic::Vmovupd
            | Mnemonic::Vmovapd
            | Mnemonic::Vmovdqu
            | Mnemonic::Vmovdqa
            | Mnemonic::Vlddqu
            | Mnemonic::Vmovntdq
            | Mnemonic::Vmovntps
            | Mnemonic::Vmovntpd
    )
}

/// Instructions before which a superblock ends.
fn refused(insn: &Instruction) -> Option<ExitKind> {
    if insn.mnemonic() == Mnemonic::Syscall {
        return Some(ExitKind::Syscall);
    }
    let native = match insn.flow_control() {
        FlowControl::Interrupt | FlowControl::XbeginXabortXend | FlowControl::Exception => true,
        FlowControl::Return => !matches!(insn.code(), Op::Retnq | Op::Retnq_imm16),
        FlowControl::IndirectBranch => !matches!(insn.code(), Op::Jmp_rm64),
        FlowControl::IndirectCall => !matches!(insn.code(), Op::Call_rm64),
        FlowControl::Call => insn.code() != Op::Call_rel32_64,
        FlowControl::UnconditionalBranch => !matches!(insn.code(), Op::Jmp_rel8_64 | Op::Jmp_rel32_64),
        FlowControl::ConditionalBranch => insn.op0_kind() != OpKind::NearBranch64 || is_narrow_loop(insn),
        FlowControl::Next => changes_segments(insn),
    };
    if native { Some(ExitKind::Native) } else { None }
}

/// `loop` and `jecxz` with a 32-bit counter: one in a billion, not worth a second form.
fn is_narrow_loop(insn: &Instruction) -> bool {
    matches!(
        insn.code(),
        Op::Jecxz_rel8_64
            | Op::Loop_rel8_64_ECX
            | Op::Loope_rel8_64_ECX
            | Op::Loopne_rel8_64_ECX
            | Op::Jecxz_rel8_16
    )
}

fn changes_segments(insn: &Instruction) -> bool {
    matches!(
        insn.mnemonic(),
        Mnemonic::Wrgsbase
            | Mnemonic::Rdgsbase
            | Mnemonic::Wrfsbase
            | Mnemonic::Swapgs
            | Mnemonic::Lfs
            | Mnemonic::Lgs
            | Mnemonic::Lss
            | Mnemonic::Popfq
            | Mnemonic::Popf
            | Mnemonic::Sysenter
            | Mnemonic::Hlt
            | Mnemonic::Wrpkru
    ) || insn.mnemonic() == Mnemonic::Mov
        && insn.op0_kind() == OpKind::Register
        && insn.op0_register().is_segment_register()
        || insn.mnemonic() == Mnemonic::Pop
            && insn.op0_kind() == OpKind::Register
            && insn.op0_register().is_segment_register()
        || insn.is_privileged()
}

fn flow(insn: &Instruction) -> Step {
    match insn.flow_control() {
        FlowControl::ConditionalBranch => Step::Side(insn.near_branch_target()),
        FlowControl::UnconditionalBranch => Step::Follow(insn.near_branch_target()),
        FlowControl::Call => Step::Last(ExitKind::Call, insn.near_branch_target()),
        FlowControl::Return => Step::Last(ExitKind::Return, 0),
        FlowControl::IndirectBranch => Step::Last(ExitKind::IndirectJump, 0),
        FlowControl::IndirectCall => Step::Last(ExitKind::IndirectCall, 0),
        _ => Step::Next,
    }
}
