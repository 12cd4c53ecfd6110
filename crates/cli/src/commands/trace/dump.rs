//! A trace as text: a line per burst, block and reference.

use std::io::{self, Write};

use sonde_event::{Access, Begin, End, Reader, Run, Signal, Syscall};

/// Prints a stream.
pub struct Dump<'a, W: Write> {
    out: &'a mut W,
    left: u64,
    failed: Option<io::Error>,
}

impl<'a, W: Write> Dump<'a, W> {
    /// Prints at most `lines` lines.
    pub fn new(out: &'a mut W, lines: u64) -> Dump<'a, W> {
        Dump { out, left: lines, failed: None }
    }

    /// The first failure to write, if any.
    pub fn finish(self) -> io::Result<()> {
        self.failed.map_or(Ok(()), Err)
    }

    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        if self.left == 0 || self.failed.is_some() {
            return;
        }
        self.left -= 1;
        self.failed = self.out.write_fmt(format_args!("{text}\n")).err();
    }
}

impl<W: Write + Send> Reader for Dump<'_, W> {
    fn begin(&mut self, begin: &Begin) {
        self.line(format_args!("begin {} time {} pc {:#x}", begin.tid, begin.time, begin.pc));
    }

    fn run(&mut self, run: &Run<'_>) {
        if self.left == 0 {
            return;
        }
        let mut references = run.references().enumerate().peekable();
        for block in run.blocks() {
            let (pc, len, insns) = (block.block.pc, block.block.len, block.insns);
            self.line(format_args!("block {} pc {pc:#x} bytes {len} instructions {insns}", run.tid));
            let last = block.block.first + block.insns;
            let in_block = |index: usize| run.superblock.refs[index].insn < last;
            while let Some((index, r)) = references.next_if(|(index, _)| in_block(*index)) {
                let access = if r.access == Access::Load { "load" } else { "store" };
                let address = r.address.map_or("unknown".into(), |a| format!("{a:#x}"));
                let value = match run.wide_value(index) {
                    [] => r.value.map_or(String::new(), |v| format!(" value {v:#x}")),
                    words => words.iter().rev().fold(" value 0x".into(), |t, w| format!("{t}{w:016x}")),
                };
                let times = if r.count == 1 { String::new() } else { format!(" times {}", r.count) };
                self.line(format_args!(
                    "{access} {} pc {:#x} address {address} bytes {}{times}{value}",
                    run.tid, r.pc, r.size
                ));
            }
        }
    }

    fn end(&mut self, end: &End) {
        self.line(format_args!("end {} time {} pc {:#x} cause {:?}", end.tid, end.time, end.pc, end.cause));
    }

    fn syscall(&mut self, call: &Syscall) {
        self.line(format_args!("syscall {} number {} result {:#x}", call.tid, call.number, call.result));
    }

    fn signal(&mut self, signal: &Signal) {
        self.line(format_args!("signal {} number {} pc {:#x}", signal.tid, signal.signal, signal.pc));
    }

    fn gap(&mut self) {
        self.line(format_args!("gap"));
    }
}
