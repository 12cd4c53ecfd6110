//! What a pass gives that cannot be computed together with others: blocks without a number, targets that only the log tells,
//! references that are repeated, masked or without an address.

use crate::batch::Event;
use crate::code::branch_of_exit;
use crate::reference;
use crate::summary::Missing;
use sonde_event::{Access, Run};
use sonde_place::Places;

/// The address moved to its place; an address of code in no known mapping stands for itself.
#[inline(always)]
fn moved(pc: u64, delta: Option<u64>) -> u64 {
    pc.wrapping_add(delta.unwrap_or(0))
}

/// Blocks of a pass that has no number in the table of exits: one that was cut short, for the most part.
pub(crate) fn push_blocks(run: &Run<'_>, delta: Option<u64>, blocks: &mut Vec<(u64, u64)>) {
    blocks.extend(run.blocks().map(|block| (moved(block.block.pc, delta), u64::from(block.insns))));
}

/// The branch that ends a pass, if only the log tells where it led.
pub(crate) fn push_edge(
    run: &Run<'_>,
    delta: Option<u64>,
    places: &mut Places,
    edges: &mut Vec<[u64; 2]>,
    missing: &mut Missing,
) {
    let Some(from) = branch_of_exit(run.path, run.superblock) else { return };
    match run.next_pc {
        Some(to) => edges.push([moved(from, delta), places.place(to).0]),
        None => missing.without_target += 1,
    }
}

/// References of a pass that are not all plain.
pub(crate) fn push_references(
    run: &Run<'_>,
    delta: Option<u64>,
    missing: &mut Missing,
    mut push: impl FnMut(Event),
) {
    let delta = delta.unwrap_or(0);
    for (index, r) in run.references().enumerate() {
        push_reference(run, index, &r, r.pc.wrapping_add(delta), missing, &mut push);
    }
}

fn has_more(run: &Run<'_>, index: usize) -> bool {
    run.wide_value(index).iter().skip(1).any(|word| *word != 0)
}

/// A reference that may be repeated, masked or without an address.
fn push_reference(
    run: &Run<'_>,
    index: usize,
    r: &sonde_event::Ref,
    pc: u64,
    missing: &mut Missing,
    push: &mut impl FnMut(Event),
) {
    if r.conditional {
        missing.conditional += 1;
        return;
    }
    missing.without_address += u64::from(r.address.is_none());
    if r.count != 1 {
        return reference::repeated(r, pc, |event| {
            missing.without_value += if r.access == Access::Load { event.times.into() } else { 0 };
            push(event);
        });
    }
    let flags = reference::flags(r, || has_more(run, index));
    missing.without_value += u64::from(flags & (Event::LOAD | Event::VALUE) == Event::LOAD);
    let (data, value) = (r.address.unwrap_or(0), r.value.unwrap_or(0));
    push(Event { pc, data, value, size: r.size.into(), times: 1, flags });
}
