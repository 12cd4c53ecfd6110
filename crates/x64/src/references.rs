//! Plans the references of one instruction: what has to be logged so that the reader can compute every address and
//! value, and what need not be because it is known already.

use crate::asm::{Gpr, RCX};
use crate::memory::{Access, Address, Facts, Operand, Reference, Repeat, Term, Value, directions};
use crate::plan::{Detail, Log, Watch};
use crate::planner::Planner;
use crate::rules::{computed, is_vector_move, low_gpr};
use crate::symbolic::{Known, Registers};
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};

impl Planner {
    fn word(&mut self) -> u16 {
        self.words += 1;
        self.words - 1
    }

    /// Plans all references of an instruction; false if it must not be copied.
    pub(crate) fn references(&mut self, insn: &Instruction, facts: &Facts<'_>, index: u16) -> bool {
        let memory = facts.info.used_memory();
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
        let first = self.refs.len();
        for m in memory {
            let (reads, writes, conditional) = directions(m.access());
            if !reads && !writes {
                continue;
            }
            let operand = Operand::of(insn, m);
            let mut reference = Reference {
                insn: index,
                access: Access::Load,
                size: if repeat == Repeat::Once { m.memory_size() } else { insn.memory_size() }.size() as u16,
                recorded: true,
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
                    if plain { self.stored(insn, facts, &operand, reference.size) } else { Value::Unknown };
                self.refs.push(reference);
            }
        }
        self.load_before_store(first, insn.is_string_instruction());
        true
    }

    /// Whether the instruction at hand, whose references were just planned, is to be recorded. Repeated ones always are:
    /// how often they happen is known from the log only.
    pub(crate) fn is_recorded(&self, watch: Watch<'_>, pc: u64, index: u16) -> bool {
        if self.refs.is_empty() || self.refs[0].repeat != Repeat::Once {
            return true;
        }
        let logged = |v: &Value| matches!(v, Value::Word { .. } | Value::Words { .. });
        match watch {
            Watch::All => true,
            Watch::AllBut(bits) => bits >> index & 1 == 0,
            Watch::Loads(wanted) => {
                let mut loads = self.refs.iter().filter(|r| r.access == Access::Load);
                loads.any(|r| logged(&r.value)) && wanted(pc)
            }
        }
    }

    /// Takes back what was planned to be logged for the instruction at hand, before which registers were known as here.
    pub(crate) fn leave_out(&mut self, known: &Registers) {
        self.words = self.words_before;
        self.regs = *known;
        self.pre.clear();
        self.post.clear();
        for reference in &mut self.refs {
            reference.recorded = false;
            reference.address = None;
            if let Value::Word { .. } | Value::Words { .. } = reference.value {
                reference.value = Value::Unrecorded;
            }
        }
    }

    /// The decoder names the destination first (movs, pop to memory), but the program loads before it stores. Only the
    /// order of references changes, not that of the words they are made of: traces stay readable.
    fn load_before_store(&mut self, first: usize, copies: bool) {
        let [a, b] = &mut self.refs[first..] else { return };
        if (a.access, b.access) == (Access::Store, Access::Load) {
            core::mem::swap(a, b);
            if copies {
                b.value = a.value;
            }
        }
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
    fn stored(&mut self, insn: &Instruction, facts: &Facts<'_>, operand: &Operand, size: u16) -> Value {
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
            // What was loaded, which is planned after this.
            _ if insn.is_string_instruction() => return Value::Unknown,
            m if is_vector_move(m) => {
                if let Some(v) = self.log_vector(insn, 1, size, false) {
                    return v;
                }
            }
            _ => {}
        }
        // Read it back after the instruction, if the address is still there and the instruction goes on to the next.
        let moved = facts.written & operand.registers() != 0;
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
    pub(crate) fn update(&mut self, insn: &Instruction, facts: &Facts<'_>) {
        let (stack, computed) = (self.regs.get(4), computed(insn, &self.regs));
        let mut written = facts.written;
        while written != 0 {
            self.regs.set(written.trailing_zeros() as u8, Known::No);
            written &= written - 1;
        }
        let push = insn.stack_pointer_increment();
        let into_rsp = insn.mnemonic() == Mnemonic::Pop && low_gpr(insn, 0) == Some(4);
        let by_constant =
            insn.is_stack_instruction() && !matches!(insn.mnemonic(), Mnemonic::Leave | Mnemonic::Enter);
        if push != 0 && by_constant && !into_rsp {
            self.regs.set(4, stack.plus(push as i64 as u64));
        }
        for log in &self.post {
            if let Log::Gpr { word, reg } = *log {
                self.regs.set(reg, Known::Word { index: word, delta: 0 });
            }
        }
        if let Some((reg, known)) = computed {
            self.regs.set(reg, known);
        }
    }
}
