//! Takes fields off the front of bytes; running out is an error, never a panic.

use super::DecodeError;

pub(super) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes }
    }

    pub fn left(&self) -> usize {
        self.bytes.len()
    }

    pub fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let (front, rest) = self.bytes.split_at_checked(count).ok_or(DecodeError::Truncated)?;
        self.bytes = rest;
        Ok(front)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (front, rest) = self.bytes.split_first_chunk().ok_or(DecodeError::Truncated)?;
        self.bytes = rest;
        Ok(*front)
    }

    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number that must fit into this machine's sizes.
    pub fn size(&mut self, name: &'static str) -> Result<usize, DecodeError> {
        usize::try_from(self.u64()?).map_err(|_| DecodeError::Field(name))
    }

    /// A LEB128 number in its shortest form: one value, one spelling.
    pub fn number(&mut self) -> Result<u64, DecodeError> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits || (byte == 0 && shift > 0) {
                return Err(DecodeError::Field("number"));
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(DecodeError::Field("number"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::write_number;

    #[test]
    fn numbers_round_trip_and_have_one_spelling() {
        for number in [0, 1, 127, 128, 300, u64::MAX - 1, u64::MAX] {
            let mut bytes = Vec::new();
            write_number(number, &mut bytes);
            assert_eq!(Reader::new(&bytes).number(), Ok(number));
        }
        assert!(Reader::new(&[0x80, 0x00]).number().is_err());
        assert!(Reader::new(&[0xff; 11]).number().is_err());
        assert!(Reader::new(&[0xff; 10]).number().is_err());
        assert_eq!(Reader::new(&[0x80]).number(), Err(DecodeError::Truncated));
    }
}
