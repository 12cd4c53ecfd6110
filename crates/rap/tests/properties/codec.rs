//! Bytes: what is written is read back; what was not written is refused without harm; old files stay readable.

use crate::streams::{Rng, SHAPES, Shape, key, stream, weights};
use crate::subject::{Subject, for_all};
use proptest::prelude::*;
use sonde_rap::textbook::TextbookTree;
use sonde_rap::{Branching, Buffer, Config, DecodeError, Key, Snapshot, Tree};

fn summary<K: Key, S: Subject<K>>(config: Config, shape: Shape, len: usize) -> Snapshot<K> {
    let mut tree = S::start(config);
    for (number, weight) in stream(shape, len, 31).into_iter().zip(weights(len, 32)) {
        tree.push(key(number), weight);
    }
    tree.summary()
}

fn round_trip<K: Key, S: Subject<K>>(config: &Config, shape: Shape, len: usize) {
    let snapshot = summary::<K, S>(config.clone(), shape, len);
    let bytes = snapshot.to_bytes();
    assert_eq!(Snapshot::from_bytes(&bytes).as_ref(), Ok(&snapshot));
    assert!(bytes.len() <= 100 + snapshot.nodes.len() * (K::BITS as usize / 8 + 14));
}

#[test]
fn trees_round_trip() {
    for (index, shape) in SHAPES.into_iter().enumerate() {
        let branching = Branching::ALL[index % 4];
        for len in [0, 1, 2, 100, 5000] {
            for_all!(round_trip(&Config::new().branching(branching).eps(0.02), shape, len));
        }
    }
    for buffer in [Buffer::Auto, Buffer::None, Buffer::Bytes(4096), Buffer::Unlimited] {
        round_trip::<u64, Tree<u64>>(&Config::new().buffer(buffer), Shape::Zipf, 500);
    }
    round_trip::<u64, Tree<u64>>(&Config::new().max_memory(8192), Shape::Random, 5000);
}

fn fixture() -> Snapshot<u64> {
    summary::<u64, TextbookTree<u64>>(
        Config::new().eps(0.05).max_memory(1 << 20).buffer(Buffer::Bytes(4096)),
        Shape::Value,
        20_000,
    )
}

/// Version 1 stays readable for ever. `tests/fixtures/` holds the bytes and the dump of [`fixture`] as version 1 wrote
/// them; they are never rewritten, a new version gets files of its own.
#[test]
fn version_1_is_still_read() {
    let bytes = include_bytes!("../fixtures/snapshot-v1.srap");
    let snapshot = Snapshot::<u64>::from_bytes(bytes).expect("the fixture is valid");
    let mut dump = Vec::new();
    snapshot.dump(&mut dump).unwrap();
    assert_eq!(String::from_utf8(dump).unwrap(), include_str!("../fixtures/snapshot-v1.txt"));
    assert_eq!(snapshot.config, fixture().config);
    assert_eq!(snapshot.to_bytes(), bytes, "as long as version 1 is the one that is written");
}

#[test]
fn each_kind_of_damage_has_its_error() {
    let good = fixture().to_bytes();
    let read = |bytes: &[u8]| Snapshot::<u64>::from_bytes(bytes).expect_err("damaged");
    let changed = |at: usize, to: u8| {
        let mut bytes = good.clone();
        bytes[at] = to;
        bytes
    };
    assert_eq!(read(b""), DecodeError::Truncated);
    assert_eq!(read(b"hello, world"), DecodeError::Magic);
    assert_eq!(read(&changed(4, 2)), DecodeError::Version(2));
    assert_eq!(read(&changed(50, 77)), DecodeError::Checksum);
    assert_eq!(read(&good[..good.len() - 1]), DecodeError::Checksum);
    assert_eq!(Snapshot::<[u32; 2]>::from_bytes(&good), Err(DecodeError::KeyType { dims: 1, bits: 64 }));
    assert_eq!(read(&sealed(changed(8, 5))), DecodeError::Config(Branching::try_from(5).unwrap_err()));
    assert_eq!(read(&sealed(changed(9, 9))), DecodeError::Field("buffer"));
    assert!(matches!(read(&sealed(changed(25, 0xff))), DecodeError::Config(_)));
    let mut longer = good[..good.len() - 4].to_vec();
    longer.extend([0; 9]);
    assert_eq!(read(&sealed(longer)), DecodeError::TrailingBytes(5));
    // A count of nodes that would take all memory is refused by the length of the file.
    let mut huge = good.clone();
    huge[74..82].copy_from_slice(&(u64::MAX >> 8).to_le_bytes());
    huge[66..74].copy_from_slice(&u64::MAX.to_le_bytes());
    assert_eq!(read(&sealed(huge)), DecodeError::Truncated);
}

/// The bytes with their checksum made right, so that damage gets past it to the fields behind.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let Some(end) = bytes.len().checked_sub(4) else { return bytes };
    let checksum = !bytes[..end].iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(
            crc ^ u32::from(byte),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 },
        )
    });
    bytes[end..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Whatever is accepted is a tree: it can be asked everything, written again, and built upon.
fn use_it<K: Key>(bytes: &[u8]) {
    let Ok(snapshot) = Snapshot::<K>::from_bytes(bytes) else { return };
    assert_eq!(snapshot.to_bytes(), bytes, "one tree, one spelling");
    snapshot.hot(0.1);
    snapshot.covering(0.8);
    snapshot.width_coverage(0.1);
    snapshot.bounds(K::default(), K::decode(Default::default()));
    snapshot.dump(&mut std::io::sink()).unwrap();
    let mut tree = Tree::from_snapshot(snapshot).expect("a checked snapshot makes a tree");
    tree.add(K::default());
    tree.snapshot();
}

fn mutate(rng: &mut Rng, bytes: &mut Vec<u8>) {
    for _ in 0..1 + rng.below(4) {
        let at = rng.below(bytes.len().max(1) as u64) as usize;
        match rng.below(5) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, rng.next() as u8),
            2 if at < bytes.len() => drop(bytes.remove(at)),
            _ if at < bytes.len() => {
                bytes[at] = [0, 1, 0x7f, 0x80, 0xff, rng.next() as u8][rng.below(6) as usize]
            }
            _ => (),
        }
    }
}

fn mutated<K: Key, S: Subject<K>>() {
    let mut rng = Rng(99);
    let seeds = [
        summary::<K, S>(Config::new().eps(0.1), Shape::Value, 300).to_bytes(),
        summary::<K, S>(Config::new(), Shape::Random, 3).to_bytes(),
        summary::<K, S>(Config::new(), Shape::Random, 0).to_bytes(),
    ];
    for round in 0..1500 {
        let mut bytes = seeds[round % seeds.len()].clone();
        mutate(&mut rng, &mut bytes);
        use_it::<K>(&bytes);
        use_it::<K>(&sealed(bytes));
    }
}

#[test]
fn mutated_bytes_do_no_harm() {
    for_all!(mutated());
}

proptest! {
    #![proptest_config(crate::streams::cases(256))]

    #[test]
    fn any_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        use_it::<u64>(&bytes);
        let mut headed = b"SRAP\x01\x00\x01\x40\x04\x00".to_vec();
        headed.extend(bytes);
        use_it::<u64>(&sealed(headed));
    }
}
