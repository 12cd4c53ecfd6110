//! The exhaustive mode is the ground truth, so it is held to the truth: a program whose loads and stores are known by
//! construction is recorded from its first instruction to its last, and every address and value must be there, in order.

use std::path::Path;
use std::process::Command;

use sonde_harness::leftovers::Folder;

const COUNT: u64 = 5000;

/// What one line of the dump says of a reference: store?, address, size, value.
#[derive(Debug, PartialEq, Eq, Clone)]
struct Reference {
    store: bool,
    address: u64,
    size: u64,
    value: String,
}

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or_else(|_| panic!("{text:?} is a number"))
}

/// The references of code between two addresses, and the number of instructions of blocks there.
fn recorded(dump: &str, from: u64, to: u64) -> (Vec<Reference>, u64) {
    let (mut references, mut instructions) = (Vec::new(), 0);
    for line in dump.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let field = |name: &str| words.iter().position(|w| *w == name).map(|i| words[i + 1]);
        let inside = field("pc").is_some_and(|pc| (from..to).contains(&hex(pc)));
        match words[0] {
            "load" | "store" if inside => references.push(Reference {
                store: words[0] == "store",
                address: hex(field("address").expect("an address")),
                size: field("bytes").and_then(|b| b.parse().ok()).expect("a size"),
                value: field("value").expect("a value").to_string(),
            }),
            "block" if inside => {
                instructions += field("instructions").and_then(|n| n.parse::<u64>().ok()).expect("a number");
            }
            _ => {}
        }
    }
    (references, instructions)
}

/// The same by construction; `stack` is where the function pushes.
fn expected(data: u64, stack: u64) -> Vec<Reference> {
    let mut memory = [0u64; 64];
    let mut all = Vec::new();
    let mut note = |store, address, size, value: u64| {
        all.push(Reference { store, address, size, value: format!("0x{value:x}") });
    };
    let mut vectors = Vec::new();
    for i in 0..COUNT {
        let k = (i * 7 % 32) as usize;
        let at = data + 8 * k as u64;
        let old = memory[k];
        note(false, at, 8, old);
        memory[k] = old + i + 3;
        note(true, at, 8, memory[k]);
        note(false, at + 1, 1, memory[k] >> 8 & 0xff);
        memory[32] = memory[32] & !0xffff_ffff | i;
        note(true, data + 256, 4, i);
        note(true, stack, 8, old);
        note(false, stack, 8, old);
        note(false, data + 264, 8, memory[33]);
        memory[33] = memory[33].wrapping_add(old);
        note(true, data + 264, 8, memory[33]);
        vectors.push((at, memory[k], memory[k + 1]));
    }
    let mut with_vectors = Vec::new();
    for (i, reference) in all.into_iter().enumerate() {
        with_vectors.push(reference);
        if i % 8 == 7 {
            let (address, low, high) = vectors[i / 8];
            with_vectors.push(Reference {
                store: false,
                address,
                size: 16,
                value: format!("0x{high:016x}{low:016x}"),
            });
        }
    }
    with_vectors
}

#[test]
fn every_address_and_value_of_a_known_program_is_recorded() {
    let folder = Folder::new().expect("a temporary folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/known.c");
    let (program, trace) = (folder.path().join("known"), folder.path().join("trace"));
    let built = Command::new("cc").arg("-O1").arg("-o").arg(&program).arg(source).status();
    assert!(built.expect("a C compiler").success());
    let sonde = env!("CARGO_BIN_EXE_sonde");
    let run = Command::new(sonde)
        .args(["trace", "record", "--policy", "always", "-o"])
        .arg(&trace)
        .arg("--")
        .arg(&program)
        .output()
        .expect("sonde runs");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let out = String::from_utf8(run.stdout).expect("text");
    let places: Vec<u64> = out.lines().next().expect("a line").split(' ').map(hex).collect();
    let dump =
        Command::new(sonde).args(["trace", "replay", "--dump"]).arg(&trace).output().expect("sonde runs");
    let dump = String::from_utf8(dump.stdout).expect("text");
    let (mut references, instructions) = recorded(&dump, places[0], places[1]);
    let last = references.pop().expect("the return");
    assert_eq!((last.store, last.size), (false, 8));
    let stack = last.address - 8;
    let expected = expected(places[2], stack);
    assert_eq!(references.len(), expected.len());
    for (i, (got, want)) in references.iter().zip(&expected).enumerate() {
        assert_eq!(got, want, "reference {i}");
    }
    assert_eq!(instructions, 2 + COUNT * 14);
    let check = Command::new(sonde).args(["trace", "check"]).arg(&trace).status().expect("sonde runs");
    assert!(check.success());
}
