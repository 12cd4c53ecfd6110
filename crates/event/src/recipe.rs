//! How the references of a superblock are computed, laid out for speed: this runs for every load and store recorded.

use sonde_x64::memory::{Access, Reference, Repeat, Value};
use sonde_x64::plan::Insn;

/// A reference with everything that its computation needs in one place, and nothing to decide: a term that is not
/// there is word 0 times 0.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    pub offset: u64,
    pub fs_mask: u64,
    pub pc: u64,
    pub words: [u16; 2],
    pub scales: [u8; 2],
    pub size: u16,
    pub access: Access,
    pub recorded: bool,
    pub has_address: bool,
    pub atomic: bool,
    pub conditional: bool,
    pub repeat: Repeat,
    pub value: Value,
}

impl Recipe {
    /// For a reference of one of these instructions.
    pub fn new(reference: &Reference, insns: &[Insn]) -> Recipe {
        let address = reference.address.unwrap_or_default();
        let word = |i: usize| address.terms[i].map_or(0, |t| t.word);
        let scale = |i: usize| address.terms[i].map_or(0, |t| t.scale);
        Recipe {
            offset: address.offset,
            fs_mask: if address.fs { u64::MAX } else { 0 },
            pc: insns.get(reference.insn as usize).map_or(0, |insn| insn.pc),
            words: [word(0), word(1)],
            scales: [scale(0), scale(1)],
            size: reference.size,
            access: reference.access,
            recorded: reference.recorded,
            has_address: reference.address.is_some(),
            atomic: reference.atomic,
            conditional: reference.conditional,
            repeat: reference.repeat,
            value: reference.value,
        }
    }
}
