//! The fast reader equals the simple one on arbitrary bytes, layouts and block sizes.

use proptest::prelude::*;
use sonde_numbers::reference::read_text_simply;
use sonde_numbers::{Collect, Notation, NumberKey, OnBad, ReadError, Separator, TextFormat, read_text};

/// Bytes that often make up numbers, separators and line ends, and sometimes anything.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let literal = prop_oneof![
        Just("\n"),
        Just("\r\n"),
        Just(" "),
        Just(","),
        Just("\t"),
        Just("0x"),
        Just("0X"),
        Just("-"),
        Just("\0"),
        Just("1.2.3.4"),
        Just("10.0.0.255"),
        Just("::1"),
        Just("2001:db8::"),
        Just("18446744073709551615"),
        Just("4294967296"),
        Just("340282366920938463463374607431768211456"),
        Just("ffffffffffffffff"),
        Just("x"),
    ];
    prop_oneof![
        6 => literal.prop_map(|text| text.as_bytes().to_vec()),
        4 => any::<u64>().prop_map(|n| n.to_string().into_bytes()),
        2 => any::<u32>().prop_map(|n| format!("0x{n:x}\n").into_bytes()),
        4 => (0u64..1_000_000_000).prop_map(|n| format!("{n}\n").into_bytes()),
        4 => (any::<u32>(), 0u64..1000, "[ \t]?[ ,\t;]").prop_map(|(a, b, sep)| format!("{a}{sep}{b}\n").into_bytes()),
        2 => (any::<u32>(), any::<u64>(), "[,;x:\t]").prop_map(|(a, b, sep)| format!(" 0x{a:x}{sep} {b}{sep}5\r\n").into_bytes()),
        2 => any::<u32>().prop_map(|n| format!("{}\n", std::net::Ipv4Addr::from(n)).into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 0..12),
    ]
}

fn layout() -> impl Strategy<Value = TextFormat> {
    (
        prop_oneof![Just(Notation::Number), Just(Notation::Ipv4), Just(Notation::Ipv6)],
        prop_oneof![
            2 => Just(Separator::Auto),
            1 => Just(Separator::Blanks),
            2 => prop::sample::select(&b",;\t :x"[..]).prop_map(Separator::Byte),
            1 => any::<u8>().prop_map(Separator::Byte),
        ],
        prop_oneof![2 => Just(None), 1 => (1usize..4).prop_map(Some)],
        prop_oneof![2 => Just(vec![]), 1 => Just(vec![2, 1]), 1 => prop::collection::vec(1usize..4, 2)],
        0u64..3,
        prop_oneof![Just(0usize), Just(5), Just(21), Just(1 << 16)],
        1usize..50,
    )
        .prop_map(|(notation, separator, weight_column, columns, header_lines, max_line, block)| {
            // A newline cannot separate columns: lines are cut first.
            let separator = if separator == Separator::Byte(b'\n') { Separator::Auto } else { separator };
            TextFormat { notation, columns, weight_column, separator, header_lines, max_line, block }
        })
}

fn agree<K: NumberKey>(bytes: &[u8], format: &TextFormat, on_bad: OnBad) {
    let mut fast = Collect::<K> { keys: Vec::new(), weights: Vec::new() };
    let read = read_text("p", bytes, format, on_bad, &mut fast);
    match (read, read_text_simply::<K>("p", bytes, format, on_bad)) {
        (Ok(counts), Ok((simple, simple_counts))) => {
            assert_eq!(fast, simple);
            assert_eq!(counts, simple_counts);
        }
        (Err(ReadError::Bad(fast)), Err(ReadError::Bad(simple))) => assert_eq!(fast, simple),
        (fast, simple) => panic!("fast: {fast:?}\nsimple: {simple:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn fast_equals_simple(
        mark in prop_oneof![3 => Just(&b""[..]), 2 => Just(&b"\xef\xbb\xbf"[..]), 1 => Just(&b"\xef\xbb"[..])],
        pieces in prop::collection::vec(piece(), 0..60),
        format in layout(),
        skip in any::<bool>(),
    ) {
        let bytes = [mark, &pieces.concat()].concat();
        let on_bad = if skip { OnBad::Skip } else { OnBad::Stop };
        agree::<[u64; 2]>(&bytes, &format, on_bad);
        agree::<[u32; 2]>(&bytes, &format, on_bad);
        let format = TextFormat { columns: format.columns.into_iter().take(1).collect(), ..format };
        agree::<u32>(&bytes, &format, on_bad);
        agree::<u64>(&bytes, &format, on_bad);
        agree::<u128>(&bytes, &format, on_bad);
    }
}
