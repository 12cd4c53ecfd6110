//! Functions, calls and loops of a program or library, from its file.

use crate::graph::{Function, Graph};
use crate::loops::{self, Loop, Step};
use crate::sweep::Sweep;
use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind};
use object::{
    Object, ObjectSection, ObjectSegment, ObjectSymbol, RelocationTarget, SectionFlags, SymbolKind, elf,
};
use sonde_symbol::unwind;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a file cannot be analysed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ModuleError {
    /// It cannot be read.
    #[error("cannot read {path}: {cause}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// It is not an ELF file that makes sense.
    #[error("{path} is not an ELF file of x86-64: {cause}")]
    Format {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: String,
    },
}

/// What is known of a module.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// First address of each function, in order; numbers of the graph are indices here.
    pub starts: Vec<u64>,
    /// The call graph.
    pub graph: Graph,
    /// Direct calls and backward tail calls: address of the instruction, number of the function called.
    pub calls: Vec<(u64, usize)>,
    /// Indirect calls, and jumps of linkage tables: entries of functions that are not known.
    pub indirect: Vec<u64>,
    /// Loops of all functions.
    pub loops: Vec<Loop>,
    /// Stretches of the file and where they are to be in memory: address, file offset, length.
    pub segments: Vec<(u64, u64, u64)>,
    /// Instructions decoded.
    pub instructions: u64,
    /// Bytes that are no instruction, or lie in no function.
    pub not_code: u64,
}

/// A stretch of code.
pub(crate) struct Code<'a> {
    pub address: u64,
    pub bytes: &'a [u8],
}

impl Module {
    /// Analyses a file.
    pub fn open(path: &Path) -> Result<Module, ModuleError> {
        let bytes = Module::read(path)?;
        Ok(Module::of(&Module::parse(path, &bytes)?))
    }

    /// The bytes of a file.
    pub(crate) fn read(path: &Path) -> Result<Vec<u8>, ModuleError> {
        std::fs::read(path).map_err(|cause| ModuleError::Read { path: path.to_owned(), cause })
    }

    /// What they are, if they are a program or library for this processor.
    pub(crate) fn parse<'d>(path: &Path, bytes: &'d [u8]) -> Result<object::File<'d>, ModuleError> {
        let format = |cause: String| ModuleError::Format { path: path.to_owned(), cause };
        let file = object::File::parse(bytes).map_err(|e| format(e.to_string()))?;
        if file.architecture() != object::Architecture::X86_64 {
            return Err(format("it is of another processor".into()));
        }
        Ok(file)
    }

    fn of(file: &object::File<'_>) -> Module {
        let code = code_of(file);
        let mut starts = symbols(file);
        let mut sure = unwind_starts(file);
        sure.sort_unstable();
        starts.extend(&sure);
        starts.insert(file.entry());
        starts.extend(initializers(file));
        let inside = |at: &u64| code.iter().any(|c| at.wrapping_sub(c.address) < c.bytes.len() as u64);
        starts.retain(inside);
        let direct = direct_targets(&code, &sure);
        starts.extend(direct.into_iter().filter(inside));
        let mut module = Module {
            starts: starts.into_iter().collect(),
            segments: file.segments().map(|s| (s.address(), s.file_range().0, s.file_range().1)).collect(),
            ..Module::default()
        };
        module.graph.functions = vec![Function::default(); module.starts.len()];
        let mut edges = Vec::new();
        for stretch in &code {
            module.walk(stretch, &sure, &mut edges);
        }
        module.graph.go_on_into(&edges);
        module.take_addresses(file);
        module
    }

    /// The number of the function that an address lies in.
    pub fn function(&self, address: u64) -> Option<usize> {
        self.starts.partition_point(|start| *start <= address).checked_sub(1)
    }

    fn starts_at(&self, address: u64) -> Option<usize> {
        self.starts.binary_search(&address).ok()
    }

    /// The place in the file of an address.
    pub fn file_offset(&self, address: u64) -> Option<u64> {
        let inside = |(start, _, len): &&(u64, u64, u64)| address.wrapping_sub(*start) < *len;
        self.segments.iter().find(inside).map(|(start, offset, _)| address - start + offset)
    }

    /// Goes through a stretch of code; `edges` gets where functions go on into others.
    fn walk(&mut self, code: &Code<'_>, sure: &[u64], edges: &mut Vec<(usize, usize)>) {
        let mut sweep = Sweep::new(code, sure);
        let mut factory = InstructionInfoFactory::new();
        let mut insn = Instruction::default();
        let mut steps: Vec<Step> = Vec::new();
        let mut current = None;
        let mut open = false;
        while let Some(at) = sweep.at() {
            // What follows a stretch of data must begin at a function again.
            if let Some(next) = self.starts_at(at) {
                self.end_function(&mut steps);
                edges.extend(current.filter(|_| open).map(|last: usize| (last, next)));
                current = Some(next);
            }
            let bytes = sweep.decode(&mut insn);
            let Some(function) = current.filter(|_| !insn.is_invalid()) else {
                self.not_code += bytes;
                continue;
            };
            self.instructions += 1;
            let end = self.starts.get(function + 1).copied().unwrap_or(u64::MAX);
            let step = self.step(&insn, function, end, &mut factory);
            let forward = jump_target(&insn).filter(|target| *target >= end);
            edges.extend(forward.and_then(|target| self.function(target)).map(|into| (function, into)));
            // Padding is reached only by falling into it.
            open = if is_padding(&insn) { open } else { step.falls };
            steps.push(step);
        }
        self.end_function(&mut steps);
    }

    fn end_function(&mut self, steps: &mut Vec<Step>) {
        self.loops.extend(loops::loops(steps));
        steps.clear();
    }

    fn step(
        &mut self,
        insn: &Instruction,
        function: usize,
        end: u64,
        factory: &mut InstructionInfoFactory,
    ) -> Step {
        let references = factory.info(insn).used_memory().iter().filter(|m| is_access(m.access())).count();
        let mut step = Step { at: insn.ip(), references: references as u32, falls: true, ..Step::default() };
        let target = direct_target(insn);
        let within = target.filter(|t| (self.starts[function]..end).contains(t));
        match insn.flow_control() {
            FlowControl::Call | FlowControl::IndirectCall | FlowControl::Interrupt => step.calls = true,
            FlowControl::ConditionalBranch => {
                step.jump = within;
                step.calls = within.is_none();
            }
            FlowControl::UnconditionalBranch => {
                step.jump = within;
                step.calls = within.is_none();
                step.falls = false;
            }
            FlowControl::IndirectBranch => {
                step.anywhere = !insn.is_ip_rel_memory_operand();
                step.calls = true;
                step.falls = false;
            }
            FlowControl::Return | FlowControl::Exception => step.falls = false,
            _ => {}
        }
        if step.calls {
            self.call(insn, function, target);
        }
        self.lea(insn);
        step
    }

    fn call(&mut self, insn: &Instruction, function: usize, target: Option<u64>) {
        let to_table = insn.is_jmp_near_indirect() && insn.is_ip_rel_memory_operand();
        if insn.is_call_near_indirect() || to_table {
            self.indirect.push(insn.ip());
        }
        let end = self.starts.get(function + 1).copied().unwrap_or(u64::MAX);
        if jump_target(insn).is_some_and(|t| t >= end) {
            return;
        }
        let callee = target.and_then(|t| self.starts_at(t));
        let f = &mut self.graph.functions[function];
        match callee {
            Some(callee) => {
                if !f.calls.contains(&callee) {
                    f.calls.push(callee);
                }
                self.calls.push((insn.ip(), callee));
            }
            None => f.calls_unknown = true,
        }
    }

    /// An instruction that makes the address of a function a value.
    fn lea(&mut self, insn: &Instruction) {
        let relative = insn.is_ip_rel_memory_operand().then(|| insn.ip_rel_memory_address());
        let immediate = (0..insn.op_count()).find_map(|i| match insn.op_kind(i) {
            OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64 => Some(insn.immediate(i)),
            _ => None,
        });
        for address in [relative, immediate].into_iter().flatten() {
            self.take(address);
        }
    }

    fn take(&mut self, address: u64) {
        if let Some(f) = self.starts_at(address) {
            self.graph.functions[f].address_taken = true;
        }
    }

    /// Addresses in data, and functions that others can call.
    fn take_addresses(&mut self, file: &object::File<'_>) {
        self.take(file.entry());
        for symbol in file.dynamic_symbols().filter(|s| s.is_definition()) {
            self.take(symbol.address());
        }
        for (_, relocation) in file.dynamic_relocations().into_iter().flatten() {
            if let RelocationTarget::Symbol(_) = relocation.target() {
                continue;
            }
            self.take(relocation.addend() as u64);
        }
        // Without relocations (programs that lie where they want to be) any word of data may be an address.
        for section in file.sections().filter(|s| !is_code(s) && s.address() != 0) {
            let Ok(data) = section.data() else { continue };
            for word in data.chunks_exact(8) {
                self.take(u64::from_le_bytes(word.try_into().unwrap_or_default()));
            }
        }
    }
}

/// Where a direct branch goes.
fn direct_target(insn: &Instruction) -> Option<u64> {
    (insn.op_count() == 1 && insn.op0_kind() == OpKind::NearBranch64).then(|| insn.near_branch64())
}

/// Where a direct jump goes.
fn jump_target(insn: &Instruction) -> Option<u64> {
    let jumps =
        matches!(insn.flow_control(), FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch);
    direct_target(insn).filter(|_| jumps)
}

fn is_padding(insn: &Instruction) -> bool {
    matches!(insn.mnemonic(), Mnemonic::Nop | Mnemonic::Int3)
}

fn is_access(access: OpAccess) -> bool {
    !matches!(access, OpAccess::None | OpAccess::NoMemAccess)
}

pub(crate) fn is_code<'d>(section: &impl ObjectSection<'d>) -> bool {
    match section.flags() {
        SectionFlags::Elf { sh_flags, .. } => sh_flags.0 & elf::SHF_EXECINSTR.0 != 0,
        _ => false,
    }
}

pub(crate) fn code_of<'d>(file: &object::File<'d>) -> Vec<Code<'d>> {
    let sections = file.sections().filter(is_code);
    sections.filter_map(|s| Some(Code { address: s.address(), bytes: s.data().ok()? })).collect()
}

fn symbols(file: &object::File<'_>) -> BTreeSet<u64> {
    let all = file.symbols().chain(file.dynamic_symbols());
    all.filter(|s| s.is_definition() && s.kind() == SymbolKind::Text).map(|s| s.address()).collect()
}

/// Every function that can be unwound through has an entry in `.eh_frame`: stripped libraries too.
fn unwind_starts(file: &object::File<'_>) -> Vec<u64> {
    let Some(section) = file.section_by_name(".eh_frame") else { return Vec::new() };
    let functions = section.data().map(|data| unwind::functions(data, section.address()));
    functions.into_iter().flatten().map(|(start, _)| start).collect()
}

fn initializers(file: &object::File<'_>) -> Vec<u64> {
    let sections = [".init", ".fini"].into_iter().filter_map(|name| file.section_by_name(name));
    sections.map(|s| s.address()).collect()
}

/// Targets of direct calls: functions, whether a table knows them or not.
fn direct_targets(code: &[Code<'_>], sure: &[u64]) -> BTreeSet<u64> {
    let mut targets = BTreeSet::new();
    let mut insn = Instruction::default();
    for stretch in code {
        let mut sweep = Sweep::new(stretch, sure);
        while sweep.at().is_some() {
            sweep.decode(&mut insn);
            if insn.is_call_near() {
                targets.insert(insn.near_branch64());
            }
        }
    }
    targets
}
