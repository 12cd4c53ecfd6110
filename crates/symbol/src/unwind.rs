//! Where functions begin and end by the tables for unwinding, which stripped files have too.

use gimli::UnwindSection;
use std::collections::BTreeMap;

/// First address and bytes of every function that can be unwound through, in order: from the contents of `.eh_frame` and
/// the address that the file gives it.
pub fn functions(eh_frame: &[u8], address: u64) -> Vec<(u64, u64)> {
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
        all.extend(parsed.ok().map(|fde| (fde.initial_address(), fde.len())));
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// The function that an address lies in.
pub(crate) fn find(functions: &[(u64, u64)], address: u64) -> Option<(u64, u64)> {
    let behind = functions.partition_point(|(start, _)| *start <= address);
    let (start, size) = *functions.get(behind.checked_sub(1)?)?;
    (address - start < size).then_some((start, size))
}
