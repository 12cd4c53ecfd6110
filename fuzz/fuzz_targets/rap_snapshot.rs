//! Serialized trees: any bytes give an error or a tree that can be asked, written again and built upon.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sonde_rap::textbook::TextbookTree;
use sonde_rap::{Key, Snapshot, Tree};

fuzz_target!(|bytes: &[u8]| {
    let mut sealed = bytes.to_vec();
    seal(&mut sealed);
    for input in [bytes, &sealed] {
        use_it::<u32>(input);
        use_it::<u64>(input);
        use_it::<u128>(input);
        use_it::<[u32; 2]>(input);
        use_it::<[u64; 3]>(input);
    }
});

/// Makes the checksum right, so that the fuzzer gets past it to the fields behind.
fn seal(bytes: &mut [u8]) {
    let Some((content, checksum)) = bytes.split_last_chunk_mut::<4>() else { return };
    let crc = !content.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 })
    });
    *checksum = crc.to_le_bytes();
}

fn use_it<K: Key>(bytes: &[u8]) {
    let Ok(snapshot) = Snapshot::<K>::from_bytes(bytes) else { return };
    assert_eq!(snapshot.to_bytes(), bytes);
    snapshot.hot(0.1);
    snapshot.covering(0.8);
    snapshot.width_coverage(0.1);
    snapshot.dump(&mut std::io::sink()).expect("a sink takes everything");
    assert!(snapshot.bounds(K::default(), K::default()).upper <= snapshot.events);
    let mut plain = TextbookTree::new(snapshot.config.clone()).expect("the parameters were checked");
    plain.merge(&snapshot).expect("the nodes were checked");
    assert_eq!(plain.snapshot().events, snapshot.events);
    let mut tree = Tree::from_snapshot(snapshot).expect("the nodes were checked");
    tree.add(K::default());
    tree.snapshot();
}
