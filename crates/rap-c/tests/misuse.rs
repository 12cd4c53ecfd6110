//! Everything that a C program can do wrong short of lying about lengths: a status code each time, never a crash.

use sonde_rap_c::Status;
use sonde_rap_c::handles::*;
use sonde_rap_c::paper::*;
use sonde_rap_c::status::sonde_rap_last_error;
use sonde_rap_c::types::*;
use std::ffi::CStr;
use std::ptr::{null, null_mut};
use std::sync::Mutex;

/// The paper's calls share one set of profiles: tests that use it take turns.
static PAPER: Mutex<()> = Mutex::new(());

fn default_config() -> RapConfig {
    RapConfig::from(&sonde_rap::Config::new())
}

fn new_tree(config: &RapConfig) -> (Status, u64) {
    let mut handle = 77;
    // SAFETY: both pointers are to live values.
    let status = unsafe { sonde_rap_new(config, &raw mut handle) };
    (status, handle)
}

fn tree(key_type: u32) -> u64 {
    let (status, handle) = new_tree(&RapConfig { key_type, ..default_config() });
    assert_eq!(status, Status::Ok);
    handle
}

fn last_error() -> String {
    // SAFETY: the pointer is to a string that lives until the next failing call on this thread.
    unsafe { CStr::from_ptr(sonde_rap_last_error()) }.to_string_lossy().into_owned()
}

fn events(handle: u64) -> u64 {
    // SAFETY: zeroes are a valid value of a struct of numbers, and the pointer is to it.
    unsafe {
        let mut info: RapInfo = std::mem::zeroed();
        assert_eq!(sonde_rap_get_info(handle, &raw mut info), Status::Ok);
        info.events
    }
}

#[test]
fn null_pointers_are_refused() {
    let handle = tree(SONDE_RAP_KEY_U64);
    let config = default_config();
    let key = RapKey::default();
    let (mut count, mut number) = (0usize, 0u64);
    // SAFETY: every pointer is NULL or to a live value; that NULL is refused is what is tested.
    unsafe {
        let refused = [
            sonde_rap_config_default(null_mut()),
            sonde_rap_new(null(), &raw mut number),
            sonde_rap_new(&config, null_mut()),
            sonde_rap_add_key(handle, null(), 1),
            sonde_rap_add_slice(handle, null(), 3),
            sonde_rap_get_info(handle, null_mut()),
            sonde_rap_hot(handle, 0.1, null_mut(), 0, null_mut()),
            sonde_rap_bounds(handle, null(), &key, &raw mut number, &raw mut number),
            sonde_rap_bounds(handle, &key, null(), &raw mut number, &raw mut number),
            sonde_rap_bounds(handle, &key, &key, null_mut(), &raw mut number),
            sonde_rap_serialize(handle, null_mut(), 1000, &raw mut count),
            sonde_rap_deserialize(SONDE_RAP_KEY_U64, null(), 10, &raw mut number),
            sonde_rap_merge(handle, null(), 10),
            sonde_rap_dump(handle, null_mut(), 1000, null_mut()),
        ];
        assert_eq!(refused, [Status::BadPointer; 14]);
        assert!(last_error().contains("NULL"), "{}", last_error());
        assert_eq!(sonde_rap_add_slice(handle, null(), 0), Status::Ok, "nothing needs no pointer");
    }
    assert_eq!(sonde_rap_free(handle), Status::Ok);
}

#[test]
fn misaligned_and_endless_arrays_are_refused() {
    let handle = tree(SONDE_RAP_KEY_U64);
    let numbers = [1u64, 2, 3];
    // SAFETY: the first call gets a misaligned pointer, the second an impossible length: both are refused before any read.
    unsafe {
        let misaligned = numbers.as_ptr().cast::<u8>().add(1).cast::<u64>();
        assert_eq!(sonde_rap_add_slice(handle, misaligned, 2), Status::BadPointer);
        assert_eq!(sonde_rap_add_slice(handle, numbers.as_ptr(), usize::MAX), Status::BadArgument);
    }
    assert_eq!(sonde_rap_free(handle), Status::Ok);
}

#[test]
fn bad_handles_are_refused() {
    let handle = tree(SONDE_RAP_KEY_U64);
    assert_eq!(sonde_rap_free(handle), Status::Ok);
    assert_eq!(sonde_rap_free(handle), Status::BadHandle);
    assert!(last_error().contains("freed already"), "{}", last_error());
    assert_eq!(sonde_rap_add(handle, 1), Status::BadHandle);
    assert_eq!(sonde_rap_add(0, 1), Status::BadHandle);
    assert_eq!(sonde_rap_add(u64::MAX, 1), Status::BadHandle);
    assert!(last_error().contains("never given out"), "{}", last_error());
}

#[test]
fn bad_configurations_are_refused() {
    let good = default_config();
    let bad = [
        RapConfig { key_type: 99, ..good },
        RapConfig { branching: 5, ..good },
        RapConfig { eps: 0.0, ..good },
        RapConfig { eps: f64::NAN, ..good },
        RapConfig { merge_ratio: 1.0, ..good },
        RapConfig { first_merge: 0, ..good },
        RapConfig { max_memory: 1, ..good },
        RapConfig { buffer: 3, ..good },
    ];
    for config in bad {
        let (status, handle) = new_tree(&config);
        assert_eq!(status, Status::BadConfig, "{config:?}");
        assert_eq!(handle, 77, "a failed call changes nothing");
        assert!(!last_error().is_empty());
    }
}

#[test]
fn wrong_key_types_and_arguments_are_refused() {
    let pairs = tree(SONDE_RAP_KEY_U32X2);
    let numbers = tree(SONDE_RAP_KEY_U32);
    assert_eq!(sonde_rap_add(pairs, 1), Status::WrongType);
    assert_eq!(sonde_rap_add(numbers, 1 << 32), Status::WrongType);
    assert_eq!(sonde_rap_add_weighted(numbers, 1, u64::MAX), Status::Ok);
    assert_eq!(sonde_rap_add_weighted(numbers, 1, 1), Status::BadArgument, "counts do not run over");
    let mut count = 0;
    // SAFETY: all pointers are NULL or to live values.
    unsafe {
        assert_eq!(sonde_rap_add_slice(numbers, [1u64].as_ptr(), 1), Status::WrongType);
        assert_eq!(sonde_rap_add_slice_u32(pairs, [1u32].as_ptr(), 1), Status::WrongType);
        let key = RapKey { part: [1, 1 << 40, 0] };
        assert_eq!(sonde_rap_add_key(pairs, &key, 1), Status::WrongType);
        for threshold in [0.0, -1.0, 1.5, f64::NAN] {
            assert_eq!(sonde_rap_hot(pairs, threshold, null_mut(), 0, &raw mut count), Status::BadArgument);
        }
    }
    assert_eq!(events(pairs), 0);
    assert_eq!([sonde_rap_free(pairs), sonde_rap_free(numbers)], [Status::Ok; 2]);
}

#[test]
fn every_key_type_counts_answers_and_travels() {
    for key_type in SONDE_RAP_KEY_U32..=SONDE_RAP_KEY_U64X3 {
        let handle = tree(key_type);
        let key = RapKey { part: [7, 0, 0] };
        let mut hot =
            [RapHotRange { lo: key, hi: key, own: 0, total: 0, lower: 0, upper: 0, depth: 0, parent: 0 }; 4];
        let (mut count, mut length, mut lower, mut upper, mut copy) = (0, 0, 0, 0, 0);
        let mut bytes = vec![0u8; 4096];
        // SAFETY: all pointers are to live values, with the lengths that they have.
        unsafe {
            assert_eq!(sonde_rap_add_key(handle, &key, 10), Status::Ok);
            assert_eq!(sonde_rap_hot(handle, 0.5, hot.as_mut_ptr(), 4, &raw mut count), Status::Ok);
            assert_eq!((count, hot[0].lo, hot[0].hi, hot[0].own, hot[0].parent), (1, key, key, 10, -1));
            assert_eq!(sonde_rap_bounds(handle, &key, &key, &raw mut lower, &raw mut upper), Status::Ok);
            assert_eq!((lower, upper), (10, 10));
            assert_eq!(sonde_rap_serialize(handle, bytes.as_mut_ptr(), 1, &raw mut length), Status::TooSmall);
            assert!(length > 1);
            assert_eq!(sonde_rap_serialize(handle, bytes.as_mut_ptr(), 4096, &raw mut length), Status::Ok);
            assert_eq!(sonde_rap_deserialize(key_type, bytes.as_ptr(), length, &raw mut copy), Status::Ok);
            assert_eq!(sonde_rap_merge(copy, bytes.as_ptr(), length), Status::Ok);
            assert_eq!(sonde_rap_merge(copy, bytes.as_ptr(), length - 1), Status::BadData);
            let other = (key_type + 1) % (SONDE_RAP_KEY_U64X3 + 1);
            let mut none = 5;
            assert_eq!(sonde_rap_deserialize(other, bytes.as_ptr(), length, &raw mut none), Status::BadData);
            assert_eq!(none, 5);
        }
        assert_eq!(events(copy), 20);
        assert_eq!([sonde_rap_free(handle), sonde_rap_free(copy)], [Status::Ok; 2]);
    }
}

#[test]
fn an_empty_box_holds_nothing() {
    let handle = tree(SONDE_RAP_KEY_U64);
    assert_eq!(sonde_rap_add(handle, 3), Status::Ok);
    let (lo, hi) = (RapKey { part: [9, 0, 0] }, RapKey { part: [1, 0, 0] });
    let (mut lower, mut upper) = (5, 5);
    // SAFETY: all pointers are to live values.
    let status = unsafe { sonde_rap_bounds(handle, &lo, &hi, &raw mut lower, &raw mut upper) };
    assert_eq!((status, lower, upper), (Status::Ok, 0, 0));
    assert_eq!(sonde_rap_free(handle), Status::Ok);
}

#[test]
fn the_papers_calls_in_the_wrong_order_are_refused() {
    let _turn = PAPER.lock().unwrap();
    assert_eq!(rap_add_points(1, 1, 0), Status::NotInitialized);
    // SAFETY: NULL is allowed as a path.
    assert_eq!(unsafe { rap_finalize(null()) }, Status::NotInitialized);
    assert_eq!(rap_release(), Status::NotInitialized);
    assert_eq!(rap_init(0), Status::BadArgument);
    assert_eq!(rap_init(u32::MAX), Status::BadArgument);
    assert_eq!(rap_init(2), Status::Ok);
    assert_eq!(rap_add_points(1, 5, 2), Status::WrongType);
    assert_eq!(rap_add_points(1, 5, 1), Status::Ok);
    let mut handle = 0;
    // SAFETY: the pointer is to a live value, and the path is a string.
    unsafe {
        assert_eq!(rap_profile(1, &raw mut handle), Status::Ok);
        assert_eq!(rap_finalize(c"/nowhere/at/all".as_ptr()), Status::Io);
    }
    assert!(last_error().contains("/nowhere/at/all"), "{}", last_error());
    assert_eq!(events(handle), 5);
    assert_eq!(rap_init(1), Status::Ok, "starting anew replaces the profiles");
    assert_eq!(sonde_rap_add(handle, 1), Status::BadHandle);
    assert_eq!(rap_release(), Status::Ok);
    assert_eq!(rap_release(), Status::NotInitialized);
}

#[test]
fn threads_share_a_tree_and_the_profiles() {
    let _turn = PAPER.lock().unwrap();
    let handle = tree(SONDE_RAP_KEY_U64);
    assert_eq!(rap_init(4), Status::Ok);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            scope.spawn(move || {
                for number in 0..10_000 {
                    assert_eq!(sonde_rap_add(handle, number * thread), Status::Ok);
                    assert_eq!(rap_add_points(number, 2, thread as u32), Status::Ok);
                }
            });
        }
    });
    assert_eq!(events(handle), 40_000);
    for profile in 0..4 {
        let mut handle = 0;
        // SAFETY: the pointer is to a live value.
        assert_eq!(unsafe { rap_profile(profile, &raw mut handle) }, Status::Ok);
        assert_eq!(events(handle), 20_000);
    }
    assert_eq!([sonde_rap_free(handle), rap_release()], [Status::Ok; 2]);
}
