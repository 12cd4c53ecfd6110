//! What is written is read back; what is damaged, cut off or hostile is refused, with the reason.

mod common;

use common::profile;
use proptest::prelude::*;
use sonde_profile::{Limits, Profile, ProfileError};
use sonde_rap::Config;
use sonde_summary::Trees;
use std::fs;

fn read(bytes: &[u8]) -> Result<Profile, ProfileError> {
    Profile::read_from(bytes, &Limits::default())
}

#[test]
fn a_full_profile_comes_back_as_it_was() {
    for seed in 0..2 {
        let written = profile(seed, 20_000, &Config::new());
        assert_eq!(written.check(), Ok(()));
        let bytes = written.to_bytes().unwrap();
        assert_eq!(read(&bytes).unwrap(), written);
        let nodes: usize = written.summary.ranges.iter().map(|r| nodes(&r.tree)).sum();
        assert!(bytes.len() < 12 * nodes, "{} bytes for {nodes} nodes", bytes.len());
    }
}

fn nodes(trees: &Trees) -> usize {
    match trees {
        Trees::One(tree) => tree.nodes.len(),
        Trees::Two(tree) => tree.nodes.len(),
    }
}

#[test]
fn stock_tools_see_one_message() {
    // What `zstd -dc` does: frames that are to be skipped are.
    let bytes = profile(1, 1000, &Config::new()).to_bytes().unwrap();
    let content = zstd::stream::decode_all(&bytes[..]).unwrap();
    assert_eq!(content[0], 1 << 3 | 2, "field 1 of the message, length-delimited");
}

#[test]
fn every_cut_is_noticed() {
    let bytes = profile(2, 30, &Config::new()).to_bytes().unwrap();
    for len in 0..bytes.len() {
        let error = read(&bytes[..len]).expect_err("cut off");
        let expected = matches!(error, ProfileError::Truncated)
            || len == 0 && matches!(error, ProfileError::NotAProfile);
        assert!(expected, "{len}: {error:?}");
    }
    let longer = [&bytes[..], b"x"].concat();
    assert!(matches!(read(&longer), Err(ProfileError::Damaged { .. })));
}

#[test]
fn every_changed_byte_is_noticed() {
    let written = profile(3, 30, &Config::new());
    let mut bytes = written.to_bytes().unwrap();
    let spare = 20..24;
    for at in (0..bytes.len()).filter(|at| !spare.contains(at)) {
        bytes[at] ^= 1 << (at % 8);
        // A few bits of the frame's head can be changed without meaning anything else.
        assert!(read(&bytes).map_or(true, |read| read == written), "byte {at}");
        bytes[at] ^= 1 << (at % 8);
    }
}

#[test]
fn other_files_and_later_versions_are_told_apart() {
    assert!(matches!(read(b"SONDETRC and more and more and more"), Err(ProfileError::NotAProfile)));
    assert!(matches!(read(b""), Err(ProfileError::NotAProfile)));
    let mut bytes = profile(2, 10, &Config::new()).to_bytes().unwrap();
    bytes[16] = 9;
    assert!(matches!(read(&bytes), Err(ProfileError::TooNew { found: 9, known: 1 })));
}

#[test]
fn a_file_is_replaced_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.sonde");
    let (first, second) = (profile(1, 100, &Config::new()), profile(2, 100, &Config::new()));
    first.write_to(&path).unwrap();
    second.write_to(&path).unwrap();
    assert_eq!(Profile::read(&path).unwrap(), second);
    let mut impossible = first.clone();
    impossible.totals.runs = 7;
    assert!(matches!(impossible.write_to(&path), Err(ProfileError::Invalid(_))));
    assert_eq!(Profile::read(&path).unwrap(), second);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    let nowhere = folder.path().join("none/a.sonde");
    let error = first.write_to(&nowhere).unwrap_err().to_string();
    assert!(error.contains("none/a.sonde"), "{error}");
    let error = Profile::read(&nowhere).unwrap_err().to_string();
    assert!(error.contains("cannot read"), "{error}");
}

#[test]
fn a_link_stays_one_and_permissions_too() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let (target, link) = (folder.path().join("target"), folder.path().join("link"));
    fs::write(&target, "old").unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
    symlink(&target, &link).unwrap();
    profile(1, 100, &Config::new()).write_to(&link).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(Profile::read(&target).is_ok());
}

#[test]
fn trees_that_are_too_large_are_made_coarser_and_say_so() {
    let full = profile(1, 8_000, &Config::new().eps(0.001));
    for most in [2000, 100, 1] {
        let pruned = full.pruned(most).unwrap().unwrap_or_else(|| full.clone());
        assert_eq!(pruned.check(), Ok(()));
        for (before, after) in full.summary.ranges.iter().zip(&pruned.summary.ranges) {
            assert!(nodes(&after.tree) <= most.max(1));
            let (Trees::One(before), Trees::One(after)) = (&before.tree, &after.tree) else { continue };
            assert_eq!(before.events, after.events);
            // What is certain stays certain: the coarser bounds enclose the finer ones.
            for node in after.nodes.iter().take(50) {
                let (fine, coarse) =
                    (before.bounds(node.range.lo, node.range.hi), after.bounds(node.range.lo, node.range.hi));
                assert!(coarse.lower <= fine.lower && fine.upper <= coarse.upper);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn random_trees_come_back(seed: u64, events in 0u64..3000, eps in 0.001f64..0.2) {
        let written = profile(seed, events, &Config::new().eps(eps));
        prop_assert_eq!(written.check(), Ok(()));
        prop_assert_eq!(read(&written.to_bytes().unwrap()).unwrap(), written);
    }
}

#[test]
fn a_file_that_is_no_profile_is_not_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("precious.c");
    std::fs::write(&path, "int main(void) { return 0; }\n").unwrap();
    let refused = sonde_profile::try_to_write(&path).unwrap_err().to_string();
    assert!(refused.contains("no profile"), "{refused}");
    assert!(sonde_profile::try_to_write(&folder.path().join("new.sonde")).is_ok());
    let empty = folder.path().join("empty");
    std::fs::write(&empty, "").unwrap();
    assert!(sonde_profile::try_to_write(&empty).is_ok(), "as made by mktemp");
}
