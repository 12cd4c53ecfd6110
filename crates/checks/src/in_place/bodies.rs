//! The code of a module function by function, and every address in it that control may come to other than by falling.

use super::image::Image;
use super::jumps::{MOST, Own, Table, table_of};
use super::starts::Starts;
use super::{pads, special};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};
use object::{Object, ObjectSection, ObjectSymbol};
use sonde_symbol::unwind::{self, Frame};
use std::collections::HashMap;

/// How much of a function may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trust {
    /// Nothing: its code is not understood, or somebody compares its bytes or addresses.
    Nothing,
    /// Where branches lead, and single instructions: there may be ways into it that are not known.
    Single,
    /// Runs of instructions too.
    Runs,
}

/// A function.
#[derive(Clone, Copy, Debug)]
pub struct Body {
    pub start: u64,
    pub size: u64,
    pub trust: Trust,
}

impl Body {
    pub fn contains(&self, at: u64) -> bool {
        at.wrapping_sub(self.start) < self.size
    }
}

/// The functions of a module.
pub struct Bodies<'d> {
    image: Image<'d>,
    /// Functions in order; none overlaps another.
    pub functions: Vec<Body>,
    /// Where instructions of functions begin.
    starts: Starts,
    /// Where branches, tables, constants, symbols and exceptions lead, in order.
    targets: Vec<u64>,
    /// The part of them that is reached by a value: from tables and constants, where an instruction begins.
    labels: Vec<u64>,
    /// By indirect jump: where it leads, if its own table is known.
    jumps: HashMap<u64, Vec<u64>>,
}

impl<'d> Bodies<'d> {
    pub fn of(file: &object::File<'d>) -> Bodies<'d> {
        let image = Image::of(file);
        let frames = frames(file);
        let starts = Starts::new(&image.code);
        let functions = apart(&frames);
        let mut bodies = Bodies {
            image,
            functions,
            starts,
            targets: Vec::new(),
            labels: Vec::new(),
            jumps: HashMap::new(),
        };
        let mut found = bodies.walk();
        bodies.sweep_rest(&mut found.targets);
        let unread = bodies.pads(&frames, &mut found.targets);
        let symbols = file.symbols().chain(file.dynamic_symbols()).filter(|s| s.is_definition());
        found.targets.extend(symbols.map(|s| s.address()));
        bodies.follow(found);
        bodies.judge(file, &frames, &unread);
        bodies
    }

    /// The code from an address on.
    pub fn bytes(&self, at: u64) -> Option<&'d [u8]> {
        self.image.code_at(at)
    }

    /// The instructions of a function, from begin to end.
    pub fn decode(&self, function: &Body, body: &mut Vec<Instruction>) {
        body.clear();
        let Some(bytes) = self.bytes(function.start) else { return };
        let bytes = &bytes[..bytes.len().min(function.size as usize)];
        let mut decoder = Decoder::with_ip(64, bytes, function.start, DecoderOptions::NONE);
        while decoder.can_decode() {
            body.push(decoder.decode());
        }
    }

    /// Whether control may come to an address other than by falling into it.
    pub fn is_target(&self, address: u64) -> bool {
        self.targets.binary_search(&address).is_ok()
    }

    /// Places of a function that are known to lie in a table, or to be a constant of the program.
    pub fn labels(&self, function: &Body) -> &[u64] {
        within(&self.labels, function)
    }

    /// Where an indirect jump leads, if its own table is known.
    pub fn jump(&self, at: u64) -> Option<&[u64]> {
        self.jumps.get(&at).map(Vec::as_slice)
    }

    /// Goes through all functions: what leads where, by the instructions alone.
    fn walk(&mut self) -> Found {
        let mut found = Found::default();
        let mut body = Vec::new();
        for function in self.functions.clone() {
            self.decode(&function, &mut body);
            let mut targets: Vec<u64> = body.iter().filter_map(branch_target).collect();
            targets.sort_unstable();
            let joins = |at: u64| targets.binary_search(&at).is_ok();
            for (i, insn) in body.iter().enumerate() {
                self.starts.insert(insn.ip());
                found.targets.extend(constant(insn));
                found.values.extend(value(insn));
                if insn.flow_control() == FlowControl::IndirectBranch
                    && let Some(own) = table_of(&body[..=i], joins)
                {
                    found.tables.push((insn.ip(), own));
                }
            }
            found.targets.extend_from_slice(&targets);
        }
        found
    }

    /// Branches of code that belongs to no function: whatever it is, nothing is changed where it may lead.
    fn sweep_rest(&self, targets: &mut Vec<u64>) {
        let mut sweep = |mut from: u64, to: u64| {
            while let Some(bytes) = self.bytes(from).filter(|_| from < to) {
                let bytes = &bytes[..bytes.len().min((to - from) as usize)];
                let decoder = Decoder::with_ip(64, bytes, from, DecoderOptions::NONE);
                targets.extend(decoder.into_iter().filter_map(|insn| branch_target(&insn)));
                from += bytes.len() as u64;
            }
        };
        for section in &self.image.code {
            let (mut at, end) = (section.address, section.address + section.bytes.len() as u64);
            let first = self.functions.partition_point(|f| f.start < at);
            for function in self.functions[first..].iter().take_while(|f| f.start < end) {
                sweep(at, function.start);
                at = function.start + function.size;
            }
            sweep(at, end);
        }
    }

    /// Landing pads become targets. Gives the functions whose table cannot be read.
    fn pads(&self, frames: &[Frame], targets: &mut Vec<u64>) -> Vec<u64> {
        let mut unread = Vec::new();
        for frame in frames {
            let Some(at) = frame.exceptions else { continue };
            match self.image.data_at(at).and_then(|table| pads::landing_pads(table, at, frame.start)) {
                Some(pads) => targets.extend(pads),
                None => unread.push(frame.start),
            }
        }
        unread
    }

    /// Reads tables, and sorts out what are targets and labels.
    fn follow(&mut self, found: Found) {
        let Found { mut targets, mut values, tables } = found;
        let mut begins: Vec<u64> = tables.iter().map(|(_, own)| own.table.address()).collect();
        begins.sort_unstable();
        begins.dedup();
        let end =
            |table: u64| begins.get(begins.partition_point(|b| *b <= table)).copied().unwrap_or(u64::MAX);
        let mut read: HashMap<(Table, u64), Vec<u64>> = HashMap::new();
        for (_, Own { table, most, .. }) in &tables {
            read.entry((*table, *most)).or_insert_with(|| {
                table.entries(&self.image, end(table.address()), *most, |at| self.starts.contains(at))
            });
        }
        values.sort_unstable();
        values.dedup();
        let mut labels: Vec<u64> = read.values().flatten().copied().collect();
        for value in values {
            if self.image.code_at(value).is_some() {
                labels.push(value);
            } else {
                // Any table whose address is a value may be one of distances.
                let table = Table::Relative(value);
                labels.extend(
                    table.entries(&self.image, end(value), MOST, |at| self.image.code_at(at).is_some()),
                );
            }
        }
        labels.extend(self.image.words().filter(|word| self.image.code_at(*word).is_some()));
        labels.sort_unstable();
        labels.dedup();
        targets.retain(|target| self.image.code_at(*target).is_some());
        targets.extend_from_slice(&labels);
        targets.sort_unstable();
        targets.dedup();
        labels.retain(|label| self.starts.contains(*label));
        for (jump, Own { from, table, most }) in tables {
            let entered = targets.partition_point(|t| *t <= from) != targets.partition_point(|t| *t <= jump);
            // A table that has fewer entries than are compared with is none.
            let entries = &read[&(table, most)];
            let whole = most == MOST || entries.len() as u64 == most;
            if !entered && whole && !entries.is_empty() {
                self.jumps.insert(jump, entries.clone());
            }
        }
        (self.targets, self.labels) = (targets, labels);
    }

    /// Decides how much of each function may be changed.
    fn judge(&mut self, file: &object::File<'_>, frames: &[Frame], unread: &[u64]) {
        let (special, made) = (special::addresses(file, &self.image), special::sections(file));
        let loader = special::is_loader(file);
        let signals: Vec<u64> = frames.iter().filter(|f| f.signal).map(|f| f.start).collect();
        let mut body = Vec::new();
        let mut functions = std::mem::take(&mut self.functions);
        for function in &mut functions {
            self.decode(function, &mut body);
            let left_alone = loader
                || !within(&special, function).is_empty()
                || made.iter().any(|(start, size)| function.start.wrapping_sub(*start) < *size)
                || signals.binary_search(&function.start).is_ok()
                || special::is_system_call(&body);
            let trust = if left_alone { Trust::Nothing } else { self.trust(function, &body) };
            let known =
                if unread.binary_search(&function.start).is_ok() { Trust::Single } else { Trust::Runs };
            function.trust = trust.min(known).min(function.trust);
        }
        self.functions = functions;
    }

    fn trust(&self, function: &Body, body: &[Instruction]) -> Trust {
        let own_targets = || body.iter().filter_map(branch_target).filter(|t| function.contains(*t));
        if body.is_empty()
            || body.iter().any(|insn| insn.is_invalid())
            || !own_targets().all(|t| self.starts.contains(t))
        {
            return Trust::Nothing;
        }
        let reached = self.reached(function, body);
        let all = body.iter().zip(&reached).all(|(insn, reached)| *reached || is_padding(insn));
        if all { Trust::Runs } else { Trust::Single }
    }

    /// By instruction of a function: whether anything known leads there. What nothing leads to may be data.
    pub fn reached(&self, function: &Body, body: &[Instruction]) -> Vec<bool> {
        let number = |at: u64| body.binary_search_by_key(&at, |insn| insn.ip()).ok();
        let mut reached = vec![false; body.len()];
        let mut open: Vec<usize> =
            within(&self.targets, function).iter().filter_map(|at| number(*at)).collect();
        open.push(0);
        while let Some(mut i) = open.pop() {
            while i < body.len() && !reached[i] {
                reached[i] = true;
                let insn = &body[i];
                open.extend(branch_target(insn).filter(|t| function.contains(*t)).and_then(number));
                if !falls(insn) {
                    break;
                }
                i += 1;
            }
        }
        reached
    }
}

/// What instructions tell of other places.
#[derive(Default)]
struct Found {
    /// Where branches and operands lead.
    targets: Vec<u64>,
    /// Addresses that become values.
    values: Vec<u64>,
    /// Indirect jumps and their tables.
    tables: Vec<(u64, Own)>,
}

fn frames(file: &object::File<'_>) -> Vec<Frame> {
    let Some(section) = file.section_by_name(".eh_frame") else { return Vec::new() };
    section.data().map(|data| unwind::frames(data, section.address())).unwrap_or_default()
}

/// Functions by the tables for unwinding. Those that overlap are one function, of which nothing is known.
fn apart(frames: &[Frame]) -> Vec<Body> {
    let mut all: Vec<Body> = Vec::new();
    for frame in frames.iter().filter(|f| f.size > 0 && f.start.checked_add(f.size).is_some()) {
        match all.last_mut() {
            Some(last) if frame.start < last.start + last.size => {
                last.size = last.size.max(frame.start + frame.size - last.start);
                last.trust = Trust::Nothing;
            }
            _ => all.push(Body { start: frame.start, size: frame.size, trust: Trust::Runs }),
        }
    }
    all
}

/// The part of sorted addresses that lies in a function.
fn within<'a>(all: &'a [u64], function: &Body) -> &'a [u64] {
    let from = all.partition_point(|at| *at < function.start);
    let to = all.partition_point(|at| *at < function.start + function.size);
    &all[from..to]
}

/// Where a direct branch leads.
pub fn branch_target(insn: &Instruction) -> Option<u64> {
    (insn.op_count() == 1 && insn.op0_kind() == OpKind::NearBranch64).then(|| insn.near_branch64())
}

/// Whether control may go on behind an instruction.
pub fn falls(insn: &Instruction) -> bool {
    !matches!(
        insn.flow_control(),
        FlowControl::UnconditionalBranch
            | FlowControl::IndirectBranch
            | FlowControl::Return
            | FlowControl::Exception
    )
}

/// What fills the room between pieces of code.
pub fn is_padding(insn: &Instruction) -> bool {
    // xchg ax, ax with prefixes is a nop to the decoder too.
    matches!(insn.mnemonic(), Mnemonic::Nop | Mnemonic::Int3 | Mnemonic::Ud2) || is_idle_move(insn)
}

/// `lea rsi, [rsi]` and the like, which older assemblers fill with.
fn is_idle_move(insn: &Instruction) -> bool {
    insn.mnemonic() == Mnemonic::Lea
        && insn.memory_base() == insn.op0_register()
        && insn.memory_displacement64() == 0
        && matches!(insn.memory_index(), iced_x86::Register::None)
}

/// An address that an instruction makes a value.
fn value(insn: &Instruction) -> Option<u64> {
    match insn.mnemonic() {
        Mnemonic::Lea => insn.is_ip_rel_memory_operand().then(|| insn.ip_rel_memory_address()),
        Mnemonic::Mov => immediate(insn),
        Mnemonic::Push => immediate(insn),
        _ => None,
    }
}

/// An address that an instruction makes a value, reads from, or compares with.
fn constant(insn: &Instruction) -> Option<u64> {
    if insn.is_ip_rel_memory_operand() {
        return Some(insn.ip_rel_memory_address());
    }
    immediate(insn).or_else(|| (insn.memory_displ_size() >= 4).then(|| insn.memory_displacement64()))
}

fn immediate(insn: &Instruction) -> Option<u64> {
    (0..insn.op_count()).find_map(|i| match insn.op_kind(i) {
        OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64 => Some(insn.immediate(i)),
        _ => None,
    })
}
