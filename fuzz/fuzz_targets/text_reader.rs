//! The fast text reader against the simple one, on arbitrary bytes and layouts.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use sonde_numbers::reference::read_text_simply;
use sonde_numbers::{Collect, Notation, NumberKey, OnBad, ReadError, Separator, TextFormat, read_text};

#[derive(Arbitrary, Debug)]
struct Case {
    notation: u8,
    separator: Option<u8>,
    columns: [u8; 2],
    weight_column: u8,
    header_lines: u8,
    max_line: u8,
    block: u8,
    skip: bool,
    mark: bool,
    bytes: Vec<u8>,
}

impl Case {
    fn format(&self, columns: usize) -> TextFormat {
        let chosen = self.columns.iter().map(|&column| usize::from(column % 4)).take(columns);
        let chosen: Vec<usize> = chosen.collect();
        TextFormat {
            notation: [Notation::Number, Notation::Ipv4, Notation::Ipv6][usize::from(self.notation % 3)],
            // Column 0 stands for "not chosen" here; a newline cannot separate columns.
            columns: if chosen.contains(&0) { Vec::new() } else { chosen },
            weight_column: Some(usize::from(self.weight_column % 4)).filter(|&column| column > 0),
            separator: match self.separator {
                None => Separator::Auto,
                Some(b'\n') => Separator::Blanks,
                Some(byte) => Separator::Byte(byte),
            },
            header_lines: u64::from(self.header_lines % 3),
            max_line: usize::from(self.max_line),
            block: usize::from(self.block).max(1),
        }
    }
}

fn agree<K: NumberKey>(case: &Case) {
    let format = case.format(K::DIMS);
    let on_bad = if case.skip { OnBad::Skip } else { OnBad::Stop };
    let mut fast = Collect::<K> { keys: Vec::new(), weights: Vec::new() };
    let read = read_text("fuzz", &case.bytes[..], &format, on_bad, &mut fast);
    match (read, read_text_simply::<K>("fuzz", &case.bytes, &format, on_bad)) {
        (Ok(counts), Ok((simple, simple_counts))) => {
            assert_eq!(fast, simple);
            assert_eq!(counts, simple_counts);
        }
        (Err(ReadError::Bad(fast)), Err(ReadError::Bad(simple))) => assert_eq!(fast, simple),
        (fast, simple) => panic!("fast: {fast:?}\nsimple: {simple:?}"),
    }
}

fuzz_target!(|case: Case| {
    let mut case = case;
    if case.mark {
        case.bytes.splice(..0, *b"\xef\xbb\xbf");
    }
    agree::<u32>(&case);
    agree::<u64>(&case);
    agree::<u128>(&case);
    agree::<[u64; 2]>(&case);
});
