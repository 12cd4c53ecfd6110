//! A file as it will lie in memory: its code, its data, and the words that the dynamic loader fills in.

use crate::module::{Code, code_of, is_code};
use object::{Object, ObjectSection, RelocationTarget};

/// Code and data of a module by address.
pub struct Image<'d> {
    /// Sections of code, in the order of addresses.
    pub code: Vec<Code<'d>>,
    /// Sections of data, in the order of addresses.
    pub data: Vec<Code<'d>>,
    /// Words that are filled in: where, and with which address of the module. In order.
    pub relocated: Vec<(u64, u64)>,
}

impl<'d> Image<'d> {
    pub fn of(file: &object::File<'d>) -> Image<'d> {
        let mut code = code_of(file);
        let data = file.sections().filter(|s| !is_code(s) && s.address() != 0);
        let mut data: Vec<Code<'d>> =
            data.filter_map(|s| Some(Code { address: s.address(), bytes: s.data().ok()? })).collect();
        code.retain(|c| !c.bytes.is_empty());
        data.retain(|c| !c.bytes.is_empty());
        code.sort_unstable_by_key(|c| c.address);
        data.sort_unstable_by_key(|c| c.address);
        let mut relocated: Vec<(u64, u64)> = file
            .dynamic_relocations()
            .into_iter()
            .flatten()
            .filter(|(_, relocation)| !matches!(relocation.target(), RelocationTarget::Symbol(_)))
            .map(|(at, relocation)| (at, relocation.addend() as u64))
            .collect();
        relocated.sort_unstable();
        Image { code, data, relocated }
    }

    /// The code from an address to the end of its section.
    pub fn code_at(&self, at: u64) -> Option<&'d [u8]> {
        from(&self.code, at)
    }

    /// The data from an address to the end of its section.
    pub fn data_at(&self, at: u64) -> Option<&'d [u8]> {
        from(&self.data, at)
    }

    /// What a word of data will be.
    pub fn word(&self, at: u64) -> Option<u64> {
        if let Ok(number) = self.relocated.binary_search_by_key(&at, |(at, _)| *at) {
            return Some(self.relocated[number].1);
        }
        let bytes = self.data_at(at)?.first_chunk::<8>()?;
        Some(u64::from_le_bytes(*bytes))
    }

    /// Every address that a word of data may be: those that are filled in, and whatever lies at a multiple of four.
    pub fn words(&self) -> impl Iterator<Item = u64> {
        let filled = self.relocated.iter().map(|(_, to)| *to);
        let at_fours = |c: &Code<'d>| {
            let bytes = c.bytes;
            (0..bytes.len().saturating_sub(7))
                .step_by(4)
                .map(move |i| u64::from_le_bytes(bytes[i..i + 8].try_into().unwrap_or_default()))
        };
        filled.chain(self.data.iter().flat_map(at_fours))
    }
}

fn from<'d>(all: &[Code<'d>], at: u64) -> Option<&'d [u8]> {
    let last = all.partition_point(|c| c.address <= at).checked_sub(1)?;
    let section = &all[last];
    section.bytes.get(usize::try_from(at - section.address).ok()?..).filter(|bytes| !bytes.is_empty())
}
