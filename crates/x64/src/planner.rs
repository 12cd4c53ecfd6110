//! Walks the code and makes the plan: where a superblock goes on, where it can be left, where it ends.

use crate::class::Class;
use crate::memory::{Facts, Reference};
use crate::plan::{Detail, Exit, ExitKind, Insn, Limits, Log, Plan, Sink, Watch};
use crate::rules::{flow, refused};
use crate::symbolic::Registers;
use alloc::vec::Vec;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory};

/// Makes plans; keeps its allocations between them.
pub struct Planner {
    /// Taken out while its answer is in use; never empty between calls.
    pub(crate) factory: Option<InstructionInfoFactory>,
    pub(crate) detail: Detail,
    pub(crate) limits: Limits,
    /// Displacement from the fs base of the field that starts a restartable sequence, where the C library told it.
    pub(crate) rseq_cs: Option<i64>,
    pub(crate) words: u16,
    /// `words` before the instruction at hand, to go back to.
    pub(crate) words_before: u16,
    pub(crate) regs: Registers,
    pub(crate) pre: Vec<Log>,
    pub(crate) post: Vec<Log>,
    pub(crate) refs: Vec<Reference>,
}

/// An instruction of a superblock has a bit in [`Plan::unrecorded`].
const MOST_INSNS: usize = u64::BITS as usize;

/// What an instruction does to the run.
pub(crate) enum Step {
    Next,
    Side(u64),
    Follow(u64),
    Last(ExitKind, u64),
    /// Ends before the instruction.
    Before(ExitKind),
}

/// Tells the sink about the flags where a direct exit leads to, if it wants to know.
fn look_at_flags<'a>(
    pc: u64,
    exit: &Exit,
    fetch: &mut dyn FnMut(u64) -> Option<&'a [u8]>,
    sink: &mut dyn Sink,
) {
    if sink.asks_for_flags(pc, exit) {
        let dead = crate::flags::are_dead(exit.target, crate::flags::BY_DEC, fetch);
        sink.flags_are_dead(dead);
    }
}

impl Planner {
    /// A planner for one level of detail.
    pub fn new(detail: Detail, limits: Limits) -> Planner {
        // The decoder unpacks its tables when it is made first: now rather than in the middle of the first burst.
        let _ = Decoder::new(64, &[], DecoderOptions::NONE);
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
        self.plan_watched(pc, max_insns, Watch::All, fetch, plan, sink);
    }

    /// The same where not all instructions are recorded.
    pub fn plan_watched<'a>(
        &mut self,
        pc: u64,
        max_insns: usize,
        watch: Watch<'_>,
        fetch: &mut dyn FnMut(u64) -> Option<&'a [u8]>,
        plan: &mut Plan,
        sink: &mut dyn Sink,
    ) {
        plan.insns.clear();
        plan.refs.clear();
        plan.exits.clear();
        plan.segments.clear();
        plan.unrecorded = 0;
        self.words = 1;
        self.regs = Registers::default();
        let max_insns = max_insns.min(self.limits.insns).min(MOST_INSNS);
        let mut at = pc;
        let mut jumps = 0;
        'segment: loop {
            // No bytes are no code: without this, an empty answer would be asked for again for ever.
            let Some(bytes) = fetch(at).filter(|b| !b.is_empty()) else {
                return self.stop(plan, sink, ExitKind::Native, at);
            };
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
                let step = self.step(&insn, plan, watch, sink, &raw[..insn.len()]);
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
                        look_at_flags(insn.ip(), &exit, fetch, sink);
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
                            look_at_flags(insn.ip(), &exit, fetch, sink);
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
                        look_at_flags(insn.ip(), &exit, fetch, sink);
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
        // The last instruction may have been taken back.
        plan.unrecorded &= !u64::MAX.checked_shl(plan.insns.len() as u32).unwrap_or(0);
        let exit = self.exit(plan, kind, at, false);
        sink.last_exit(None, &exit);
        plan.exits.push(exit);
    }

    /// Classifies one instruction, plans its references and hands it to the sink. On `Before`, nothing was done.
    fn step(
        &mut self,
        insn: &Instruction,
        plan: &mut Plan,
        watch: Watch<'_>,
        sink: &mut dyn Sink,
        raw: &[u8],
    ) -> Step {
        if let Some(kind) = refused(insn) {
            return Step::Before(kind);
        }
        sink.begin(insn);
        self.words_before = self.words;
        let mut factory = self.factory.take().unwrap_or_else(InstructionInfoFactory::new);
        let facts = Facts::new(factory.info(insn));
        self.pre.clear();
        self.post.clear();
        self.refs.clear();
        let known = self.regs;
        let index = plan.insns.len() as u16;
        let ok = self.references(insn, &facts, index);
        let unrecorded = ok && !self.is_recorded(watch, insn.ip(), index);
        if unrecorded {
            self.leave_out(&known);
        }
        let step = if !ok { Step::Before(ExitKind::Native) } else { flow(insn) };
        let mut done = ok;
        if ok {
            for log in &self.pre {
                sink.log(log);
            }
            if matches!(step, Step::Next) {
                done = sink.insn(insn, raw, &facts);
                for log in &self.post {
                    sink.log(log);
                }
            }
            self.update(insn, &facts);
        }
        self.factory = Some(factory);
        if !done {
            sink.rollback();
            // What is known of registers need not go back: the superblock ends here.
            self.words = self.words_before;
            return Step::Before(ExitKind::Native);
        }
        plan.refs.extend_from_slice(&self.refs);
        plan.unrecorded |= u64::from(unrecorded) << index;
        step
    }
}
