//! Decoding from begin to end, where data may lie between functions.
//!
//! What is decoded of data may reach over the begin of the function behind it, and then that is decoded wrongly too. The
//! tables for unwinding tell where functions begin: an instruction that reaches over such a place is none.

use crate::module::Code;
use iced_x86::{Decoder, DecoderOptions, Instruction};

/// Decodes a stretch of code.
pub struct Sweep<'c, 's> {
    decoder: Decoder<'c>,
    address: u64,
    /// Where functions surely begin, in order: those that are still to come.
    sure: &'s [u64],
}

impl<'c, 's> Sweep<'c, 's> {
    pub fn new(code: &Code<'c>, sure: &'s [u64]) -> Sweep<'c, 's> {
        let decoder = Decoder::with_ip(64, code.bytes, code.address, DecoderOptions::NONE);
        let sure = &sure[sure.partition_point(|at| *at <= code.address)..];
        Sweep { decoder, address: code.address, sure }
    }

    /// Where the next instruction begins; none at the end.
    pub fn at(&self) -> Option<u64> {
        self.decoder.can_decode().then(|| self.decoder.ip())
    }

    /// The next instruction, which may be invalid; gives how many bytes it takes.
    pub fn decode(&mut self, insn: &mut Instruction) -> u64 {
        let at = self.decoder.ip();
        self.decoder.decode_out(insn);
        self.sure = &self.sure[self.sure.iter().take_while(|start| **start <= at).count()..];
        match self.sure.first() {
            Some(start) if *start < insn.next_ip() => {
                *insn = Instruction::default();
                // The start lies within what was just decoded.
                let _ = self.decoder.set_position((start - self.address) as usize);
                self.decoder.set_ip(*start);
                start - at
            }
            _ => insn.len() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_behind_data_is_decoded_from_its_begin() {
        // Two bytes of data that look like the begin of a long instruction; push rbx; ret.
        let code = Code { address: 0x1000, bytes: &[0x48, 0xb8, 0x53, 0xc3, 1, 2, 3, 4, 5, 6] };
        let mut insn = Instruction::default();
        let mut sweep = Sweep::new(&code, &[0x0fff, 0x1000, 0x1002, 0x1003]);
        assert_eq!((sweep.decode(&mut insn), insn.is_invalid()), (2, true));
        assert_eq!((sweep.at(), sweep.decode(&mut insn)), (Some(0x1002), 1));
        assert_eq!((insn.ip(), insn.is_invalid()), (0x1002, false));
        let mut unknowing = Sweep::new(&code, &[]);
        assert_eq!((unknowing.decode(&mut insn), unknowing.at()), (10, None));
    }
}
