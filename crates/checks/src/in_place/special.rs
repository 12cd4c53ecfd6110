//! Functions that must stay as they are, whatever they look like.

use super::image::Image;
use iced_x86::{Instruction, Mnemonic, Register};
use object::{Object, ObjectSection, ObjectSymbol, RelocationFlags, SymbolFlags, elf};

/// Addresses whose functions are not changed, in order:
///
/// * where the program begins: nothing is set up there;
/// * what chooses between versions of a function, which runs while the dynamic loader is at work;
/// * code that the loader itself changes;
/// * sequences that the kernel restarts by their addresses (rseq).
pub fn addresses(file: &object::File<'_>, image: &Image<'_>) -> Vec<u64> {
    let mut all = vec![file.entry()];
    let chooses =
        |flags| matches!(flags, SymbolFlags::Elf { st_info, .. } if st_info.st_type() == elf::STT_GNU_IFUNC);
    let symbols = file.symbols().chain(file.dynamic_symbols()).filter(|s| s.is_definition());
    all.extend(symbols.filter(|s| chooses(s.flags())).map(|s| s.address()));
    for (at, relocation) in file.dynamic_relocations().into_iter().flatten() {
        if relocation.flags() == (RelocationFlags::Elf { r_type: elf::R_X86_64_IRELATIVE }) {
            all.push(relocation.addend() as u64);
        }
        if image.code_at(at).is_some() {
            all.push(at);
        }
    }
    for section in file.sections().filter(|s| s.name().is_ok_and(|name| name.contains("rseq_cs"))) {
        let words = (section.address()..section.address() + section.size()).step_by(8);
        all.extend(words.filter_map(|at| image.word(at)));
    }
    all.sort_unstable();
    all
}

/// Sections of code that the loader or the linker made: stubs of the linkage table, and pieces that are put together.
pub fn sections(file: &object::File<'_>) -> Vec<(u64, u64)> {
    let made = |name: &str| [".plt", ".iplt", ".init", ".fini"].iter().any(|begin| name.starts_with(begin));
    let sections = file.sections().filter(|s| s.name().is_ok_and(made));
    sections.map(|s| (s.address(), s.size())).collect()
}

/// Whether the file is the dynamic loader: it runs before it has relocated itself, and before anything else is set up.
pub fn is_loader(file: &object::File<'_>) -> bool {
    file.dynamic_symbols().any(|s| s.is_definition() && s.name_bytes() == Ok(b"_rtld_global"))
}

/// Whether it asks the kernel for something and calls no function: the parts of a C library where addresses are compared
/// (cancellation), bytes are compared (return from a signal), stacks are changed (clone, vfork, contexts).
pub fn is_system_call(body: &[Instruction]) -> bool {
    body.iter().any(|insn| insn.mnemonic() == Mnemonic::Syscall)
        && !body.iter().any(|insn| insn.is_call_near())
}

/// Whether it uses gs, which stubs need for themselves: such a program must not be changed at all.
pub fn uses_gs(insn: &Instruction) -> bool {
    insn.segment_prefix() == Register::GS && insn.memory_segment() == Register::GS
        || matches!(insn.mnemonic(), Mnemonic::Wrgsbase | Mnemonic::Rdgsbase)
}
