//! Where exceptions are caught: the table of a function that the runtimes of C++, Rust and others read while they unwind.
//!
//! A catch or a clean-up begins at a *landing pad*, to which no branch of the program leads.

/// Bytes of a table that are looked at, at most: one of a large function has some tens of thousands.
const MOST: usize = 1 << 22;

/// The landing pads of a function that begins at `function`, by its table at `address`. None if it cannot be read.
pub fn landing_pads(table: &[u8], address: u64, function: u64) -> Option<Vec<u64>> {
    let mut reader = Reader { bytes: &table[..table.len().min(MOST)], at: 0, address };
    let base = match reader.byte()? {
        OMITTED => function,
        encoding => reader.encoded(encoding)?,
    };
    if reader.byte()? != OMITTED {
        reader.uleb()?;
    }
    let encoding = reader.byte()?;
    let len = usize::try_from(reader.uleb()?).ok()?;
    let end = reader.at.checked_add(len).filter(|end| *end <= reader.bytes.len())?;
    let mut pads = Vec::new();
    while reader.at < end {
        let (_start, _len) = (reader.encoded(encoding)?, reader.encoded(encoding)?);
        let pad = reader.encoded(encoding)?;
        reader.uleb()?;
        if pad != 0 {
            pads.push(base.wrapping_add(pad));
        }
    }
    (reader.at == end).then_some(pads)
}

/// A value that is not there.
const OMITTED: u8 = 0xff;

struct Reader<'t> {
    bytes: &'t [u8],
    at: usize,
    address: u64,
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        self.at += 1;
        self.bytes.get(self.at - 1).copied()
    }

    fn fixed<const N: usize>(&mut self) -> Option<[u8; N]> {
        let bytes = self.bytes.get(self.at..self.at + N)?;
        self.at += N;
        bytes.try_into().ok()
    }

    fn uleb(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// A value whose low four bits tell its form, and the next three what it is relative to.
    fn encoded(&mut self, encoding: u8) -> Option<u64> {
        let place = self.address + self.at as u64;
        let value = match encoding & 0xf {
            0x0 | 0x4 | 0xc => u64::from_le_bytes(self.fixed()?),
            0x1 => self.uleb()?,
            0x2 => u64::from(u16::from_le_bytes(self.fixed()?)),
            0x3 => u64::from(u32::from_le_bytes(self.fixed()?)),
            0xa => i64::from(i16::from_le_bytes(self.fixed()?)) as u64,
            0xb => i64::from(i32::from_le_bytes(self.fixed()?)) as u64,
            _ => return None,
        };
        match encoding & 0xf0 {
            0x00 => Some(value),
            0x10 => Some(place.wrapping_add(value)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_sites_with_and_without_a_pad() {
        // No base, types by pcrel sdata4 at 0x20, call sites in ULEB128: two of three have a pad.
        let table = [0xff, 0x9b, 0x20, 0x01, 12, 4, 5, 0, 0, 9, 5, 0x40, 1, 20, 5, 0x81, 1, 0];
        assert_eq!(landing_pads(&table, 0x9000, 0x1000), None, "13 bytes, not 12");
        let mut right = table;
        right[4] = 13;
        assert_eq!(landing_pads(&right, 0x9000, 0x1000), Some(vec![0x1040, 0x1081]));
        assert_eq!(landing_pads(&right[..12], 0x9000, 0x1000), None, "cut off");
        assert_eq!(landing_pads(&[], 0x9000, 0x1000), None);
    }

    #[test]
    fn pads_relative_to_another_part_of_the_function() {
        // Base: pcrel udata4, which lies at 0x9001; call sites in udata4.
        let mut table = vec![0x13, 0xff, 0x0f, 0, 0, 0xff, 0x03, 13];
        for value in [1u32, 2, 0x10] {
            table.extend(value.to_le_bytes());
        }
        table.push(0);
        assert_eq!(landing_pads(&table, 0x9000, 0x1000), Some(vec![0x9001 + 0xfff + 0x10]));
        table[0] = 0x53;
        assert_eq!(landing_pads(&table, 0x9000, 0x1000), None, "aligned values are not known");
    }
}
