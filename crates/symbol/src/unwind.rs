//! Where functions begin and end by the tables for unwinding, which stripped files have too.

use gimli::UnwindSection;
use std::collections::BTreeMap;

/// What the tables say of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Frame {
    /// First address.
    pub start: u64,
    /// Bytes.
    pub size: u64,
    /// Where its table of exceptions is, if it has one; 0 where only a pointer to it is known.
    pub exceptions: Option<u64>,
    /// It is where a signal handler returns to.
    pub signal: bool,
    /// It begins with a stack frame made already: a part of a function that lies elsewhere, or code that a stub leads to.
    pub is_part: bool,
}

/// First address and bytes of every function that can be unwound through, in order: from the contents of `.eh_frame` and
/// the address that the file gives it.
pub fn functions(eh_frame: &[u8], address: u64) -> Vec<(u64, u64)> {
    let mut all: Vec<_> = frames(eh_frame, address).iter().map(|f| (f.start, f.size)).collect();
    all.dedup();
    all
}

/// What is said of every function that can be unwound through, in order.
pub fn frames(eh_frame: &[u8], address: u64) -> Vec<Frame> {
    let mut all = Vec::new();
    let frames = gimli::EhFrame::new(eh_frame, gimli::LittleEndian);
    let bases = gimli::BaseAddresses::default().set_eh_frame(address);
    let mut entries = frames.entries(&bases);
    let mut parents = BTreeMap::new();
    // A table that is damaged tells what comes before the damage.
    while let Ok(Some(entry)) = entries.next() {
        let gimli::CieOrFde::Fde(partial) = entry else { continue };
        let parsed = partial.parse(|_, bases, offset| {
            let at: usize = offset.0;
            if let std::collections::btree_map::Entry::Vacant(vacant) = parents.entry(at) {
                vacant.insert(frames.cie_from_offset(bases, offset)?);
            }
            Ok(parents[&at].clone())
        });
        all.extend(parsed.ok().map(|fde| frame(&frames, &bases, &fde)));
    }
    all.sort_unstable();
    all.dedup();
    all
}

fn frame<R: gimli::Reader>(
    section: &gimli::EhFrame<R>,
    bases: &gimli::BaseAddresses,
    fde: &gimli::FrameDescriptionEntry<R>,
) -> Frame {
    let exceptions = fde.lsda().map(|pointer| match pointer {
        gimli::Pointer::Direct(address) => address,
        gimli::Pointer::Indirect(_) => 0,
    });
    Frame {
        start: fde.initial_address(),
        size: fde.len(),
        exceptions,
        signal: fde.is_signal_trampoline(),
        is_part: begins_with_a_frame(section, bases, fde),
    }
}

/// Whether its first instruction already finds more on the stack than a return address, or registers saved there.
fn begins_with_a_frame<R: gimli::Reader>(
    section: &gimli::EhFrame<R>,
    bases: &gimli::BaseAddresses,
    fde: &gimli::FrameDescriptionEntry<R>,
) -> bool {
    use gimli::CallFrameInstruction::{
        AdvanceLoc, DefCfa, DefCfaExpression, DefCfaOffset, DefCfaRegister, Offset, SetLoc,
    };
    let mut instructions = fde.instructions(section, bases);
    while let Ok(Some(instruction)) = instructions.next() {
        match instruction {
            AdvanceLoc { .. } | SetLoc { .. } => return false,
            DefCfa { .. }
            | DefCfaOffset { .. }
            | DefCfaRegister { .. }
            | DefCfaExpression { .. }
            | Offset { .. } => {
                return true;
            }
            _ => {}
        }
    }
    false
}

/// The function that an address lies in.
pub(crate) fn find(functions: &[(u64, u64)], address: u64) -> Option<(u64, u64)> {
    let behind = functions.partition_point(|(start, _)| *start <= address);
    let (start, size) = *functions.get(behind.checked_sub(1)?)?;
    (address - start < size).then_some((start, size))
}
