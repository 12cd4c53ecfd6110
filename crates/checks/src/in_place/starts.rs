//! A set of addresses of code that is asked often: where instructions begin.

use crate::module::Code;

/// Where instructions begin, a bit for each byte of code.
pub struct Starts {
    sections: Vec<(u64, Vec<u64>)>,
}

impl Starts {
    pub fn new(code: &[Code<'_>]) -> Starts {
        Starts { sections: code.iter().map(|c| (c.address, vec![0; c.bytes.len().div_ceil(64)])).collect() }
    }

    fn place(&self, at: u64) -> Option<(usize, usize, u32)> {
        let section = self.sections.partition_point(|(address, _)| *address <= at).checked_sub(1)?;
        let offset = at - self.sections[section].0;
        Some((section, usize::try_from(offset / 64).ok()?, (offset % 64) as u32))
    }

    pub fn insert(&mut self, at: u64) {
        if let Some((section, word, bit)) = self.place(at)
            && let Some(word) = self.sections[section].1.get_mut(word)
        {
            *word |= 1 << bit;
        }
    }

    pub fn contains(&self, at: u64) -> bool {
        let found = self.place(at).and_then(|(section, word, bit)| {
            self.sections[section].1.get(word).map(|word| word >> bit & 1 == 1)
        });
        found.unwrap_or(false)
    }
}
