//! A small machine: runs programs of real x86-64 code instruction by instruction, so that it is known what happened, and
//! tells of any part of it as the probe would, in superblocks that begin wherever a burst does.

#[path = "../../../event/tests/synthetic/mod.rs"]
pub mod synthetic;

use sonde_event::{Cause, Decoder, Detail, ExitKind, Reader};
use std::collections::HashMap;
use synthetic::{BASE, Described};

#[derive(Clone, Copy)]
pub enum Op {
    Label(&'static str),
    Add,
    Mov(u8, u32),
    Dec(u8),
    Test(u8, u8),
    Jne(&'static str),
    Je(&'static str),
    Jmp(&'static str),
    Call(&'static str),
    Ret,
}

impl Op {
    fn len(self) -> u64 {
        match self {
            Op::Label(_) => 0,
            Op::Ret => 1,
            Op::Dec(_) => 2,
            Op::Add => 3,
            Op::Mov(..) | Op::Jmp(_) | Op::Call(_) => 5,
            Op::Test(..) | Op::Jne(_) | Op::Je(_) => 6,
        }
    }

    /// `distance` gives how far behind the instruction a label lies.
    fn encode(self, distance: impl Fn(&str) -> u32) -> Vec<u8> {
        let with = |opcode: &[u8], n: u32| [opcode, &n.to_le_bytes()].concat();
        match self {
            Op::Label(_) => vec![],
            Op::Add => vec![0x83, 0xc0, 1],
            Op::Mov(r, n) => with(&[0xb8 + r], n),
            Op::Dec(r) => vec![0xff, 0xc8 + r],
            Op::Test(r, mask) => with(&[0xf7, 0xc0 + r], mask.into()),
            Op::Jne(to) => with(&[0x0f, 0x85], distance(to)),
            Op::Je(to) => with(&[0x0f, 0x84], distance(to)),
            Op::Jmp(to) => with(&[0xe9], distance(to)),
            Op::Call(to) => with(&[0xe8], distance(to)),
            Op::Ret => vec![0xc3],
        }
    }
}

/// An instruction that was executed, and in which depth of calls.
#[derive(Clone, Copy)]
pub struct Done {
    pub pc: u64,
    pub depth: u32,
}

pub struct Machine {
    code: Vec<u8>,
    labels: HashMap<&'static str, u64>,
    pub done: Vec<Done>,
}

impl Machine {
    /// Assembles and runs a program until its first activation returns.
    pub fn run(ops: &[Op]) -> Machine {
        let mut labels = HashMap::new();
        let mut at = HashMap::new();
        let mut pc = BASE;
        for (i, op) in ops.iter().enumerate() {
            match op {
                Op::Label(name) => drop(labels.insert(*name, pc)),
                _ => drop(at.insert(pc, i)),
            }
            pc += op.len();
        }
        let mut code = Vec::new();
        for op in ops {
            let end = BASE + code.len() as u64 + op.len();
            code.extend(op.encode(|label| labels[label].wrapping_sub(end) as u32));
        }
        let mut machine = Machine { code, labels, done: Vec::new() };
        machine.execute(ops, &at);
        machine
    }

    fn execute(&mut self, ops: &[Op], at: &HashMap<u64, usize>) {
        let (mut pc, mut zero) = (BASE, false);
        let mut registers = [0u32; 8];
        let mut stack: Vec<u64> = Vec::new();
        loop {
            let op = ops[at[&pc]];
            self.done.push(Done { pc, depth: stack.len() as u32 });
            pc += op.len();
            match op {
                Op::Mov(r, n) => registers[r as usize] = n,
                Op::Dec(r) => {
                    registers[r as usize] -= 1;
                    zero = registers[r as usize] == 0;
                }
                Op::Test(r, mask) => zero = registers[r as usize] & u32::from(mask) == 0,
                Op::Jne(to) if !zero => pc = self.labels[to],
                Op::Je(to) if zero => pc = self.labels[to],
                Op::Jmp(to) => pc = self.labels[to],
                Op::Call(to) => {
                    stack.push(pc);
                    pc = self.labels[to];
                }
                Op::Ret => match stack.pop() {
                    Some(back) => pc = back,
                    None => return,
                },
                _ => {}
            }
        }
    }

    pub fn label(&self, name: &str) -> u64 {
        self.labels[name]
    }
}

/// Tells a reader of parts of what a machine did.
pub struct Teller<'a> {
    machine: &'a Machine,
    pub decoder: Decoder,
    described: HashMap<u64, Described>,
    exits: u32,
}

impl<'a> Teller<'a> {
    pub fn new(machine: &'a Machine) -> Teller<'a> {
        Teller { machine, decoder: Decoder::new(Detail::Blocks), described: HashMap::new(), exits: 0 }
    }

    /// A burst from instruction number `from` on, of at most `passes` passes. Gives the number of the instruction that
    /// it ended before.
    pub fn burst(&mut self, from: usize, passes: usize, reader: &mut dyn Reader) -> usize {
        let done = &self.machine.done;
        let mut log = synthetic::begin(1, 5, done[from].pc);
        let mut at = from;
        for _ in 0..passes {
            let pc = done[at].pc;
            if !self.described.contains_key(&pc) {
                let new = synthetic::describe(&self.machine.code, pc, self.exits, Detail::Blocks);
                self.exits += new.plan.exits.len() as u32;
                self.decoder.describe(&new.words).unwrap();
                self.described.insert(pc, new);
            }
            let superblock = &self.described[&pc];
            let Some(exit) = superblock.plan.exits.iter().position(|exit| {
                let next = done.get(at + exit.insns as usize);
                let to = next.is_some_and(|n| exit.kind == ExitKind::Return || n.pc == exit.target);
                let way = superblock.plan.insns[..exit.insns as usize].iter().zip(&done[at..]);
                to && way.into_iter().all(|(insn, done)| insn.pc == done.pc)
            }) else {
                break;
            };
            log.extend(superblock.record(exit, |_| 0));
            at += superblock.plan.exits[exit].insns as usize;
        }
        log.extend(synthetic::end(9, Cause::Checks, done[at].pc));
        self.decoder.log(1, &log, reader).unwrap();
        at
    }
}
