//! Names for the stubs through which a module calls others (the PLT): no symbol table has them, and without names they
//! would count as whatever lies before them.

use crate::raw::RawSymbols;
use crate::table::Table;
use object::{Object, ObjectSection, ReadRef, RelocationTarget};
use std::collections::HashMap;

/// What the name of a stub ends with.
pub const SUFFIX: &str = "@plt";
/// The name of a stub whose target is not known, and of the common part that binds symbols on their first call.
pub const PLT: &str = "[plt]";

/// Where a stub's pointer lies, and what will be there.
type Targets = HashMap<u64, String>;

/// All stubs: address, bytes, name.
pub fn stubs<'data, R: ReadRef<'data>>(
    file: &object::File<'data, R>,
    functions: &Table,
) -> Vec<(u64, u64, String)> {
    let (by_slot, by_number) = targets(file, functions);
    let mut all = Vec::new();
    for section in file.sections() {
        let Ok(name @ (".plt" | ".plt.sec" | ".plt.got" | ".iplt")) = section.name() else { continue };
        let Ok(code) = section.uncompressed_data() else { continue };
        let bytes = entry_bytes(name, &code);
        for (i, stub) in code.chunks(bytes).enumerate() {
            let at = section.address().wrapping_add((i * bytes) as u64);
            let slot = slot_of(stub, at).and_then(|slot| by_slot.get(&slot));
            // The common part pushes an address, not a number.
            let target = slot.or_else(|| by_number.get(number_of(stub)? as usize)?.as_ref());
            let name = target.map_or_else(|| PLT.to_owned(), |target| format!("{target}{SUFFIX}"));
            all.push((at, stub.len() as u64, name));
        }
    }
    all
}

/// Stubs of 8 bytes only exist where nothing is bound late and no landing pads are needed.
fn entry_bytes(section: &str, code: &[u8]) -> usize {
    let short = section == ".plt.got" && code.starts_with(&[0xff, 0x25]);
    if short { 8 } else { 16 }
}

/// The pointer that a stub jumps through: `jmp *offset(%rip)`.
fn slot_of(stub: &[u8], at: u64) -> Option<u64> {
    // `push offset(%rip)` is the beginning of the common part.
    let jump =
        stub.windows(2).position(|w| w == [0xff, 0x25]).filter(|_| !stub.starts_with(&[0xff, 0x35]))?;
    let offset = i32::from_le_bytes(*stub.get(jump + 2..)?.first_chunk()?);
    Some(at.wrapping_add(jump as u64 + 6).wrapping_add_signed(i64::from(offset)))
}

/// The number that a late-bound stub pushes, with or without a landing pad before it.
fn number_of(stub: &[u8]) -> Option<u32> {
    let stub = stub.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]).unwrap_or(stub);
    let number = stub.strip_prefix(&[0x68])?.first_chunk()?;
    Some(u32::from_le_bytes(*number))
}

/// What pointers will hold, by address; and by number for those of the PLT.
fn targets<'data, R: ReadRef<'data>>(
    file: &object::File<'data, R>,
    functions: &Table,
) -> (Targets, Vec<Option<String>>) {
    let symbols = RawSymbols::dynamic(file);
    let late = file.section_by_name(".got.plt").map(|s| (s.address(), s.size()));
    let is_late = |at: u64| late.is_some_and(|(start, size)| start <= at && at - start < size);
    let (mut by_slot, mut by_number) = (Targets::new(), Vec::new());
    for (at, relocation) in file.dynamic_relocations().into_iter().flatten() {
        let target = match relocation.target() {
            RelocationTarget::Symbol(index) => symbols.get(index.0).map(|symbol| symbol.name.to_owned()),
            // What a function of the module itself finds out when it is loaded, such as the fastest memcpy.
            RelocationTarget::Absolute => functions.find(relocation.addend() as u64).map(ToOwned::to_owned),
            _ => None,
        };
        if is_jump_slot(&relocation) || is_late(at) {
            by_number.push(target.clone());
        }
        by_slot.extend(target.map(|target| (at, target)));
    }
    (by_slot, by_number)
}

fn is_jump_slot(relocation: &object::Relocation) -> bool {
    let flags = relocation.flags();
    matches!(flags, object::RelocationFlags::Elf { r_type: object::elf::R_X86_64_JUMP_SLOT })
}
