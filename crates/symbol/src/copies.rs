//! Copies of programs by build-id: a program that was built anew since it ran has its names in a copy only, whatever that is
//! called.

use crate::debug_file;
use object::{Object, ReadCache};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// Files that are looked into, of all folders together; more are a folder that was not meant.
const MOST_FILES: usize = 4096;
/// Folders below the one that was named.
const DEEPEST: usize = 3;

/// What lies in folders, by build-id; looked at when first needed.
#[derive(Default)]
pub struct Copies {
    folders: Vec<PathBuf>,
    found: Option<Found>,
}

/// Files by build-id, and how many files and folders were not looked into.
#[derive(Default)]
struct Found {
    files: HashMap<Vec<u8>, PathBuf>,
    skipped: usize,
}

impl Copies {
    /// Of files in these folders and a few levels below.
    pub fn new(folders: Vec<PathBuf>) -> Copies {
        Copies { folders, found: None }
    }

    /// The file with a build-id: one of the folders' files, or a debug file that is installed below one of the roots.
    pub fn find(&mut self, build_id: &[u8], roots: &[PathBuf]) -> Option<PathBuf> {
        if build_id.is_empty() {
            return None;
        }
        let found = self.found.get_or_insert_with(|| look_into(&self.folders));
        found.files.get(build_id).cloned().or_else(|| debug_file::find(build_id, roots))
    }

    /// Files and folders that were not looked into: there are too many, or they lie too deep.
    pub fn skipped(&self) -> usize {
        self.found.as_ref().map_or(0, |found| found.skipped)
    }
}

/// The build-id of a file, if it is one that could have run and has one.
pub fn build_id(path: &Path) -> Option<Vec<u8>> {
    // Devices and pipes can lie anywhere; opening one can have effects, or wait.
    if !path.metadata().is_ok_and(|m| m.is_file()) {
        return None;
    }
    let cache = ReadCache::new(BufReader::new(File::open(path).ok()?));
    let file = object::File::parse(&cache).ok()?;
    file.build_id().ok().flatten().map(<[u8]>::to_owned)
}

fn look_into(folders: &[PathBuf]) -> Found {
    let mut found = Found::default();
    let mut left = MOST_FILES;
    let mut open: Vec<(PathBuf, usize)> = folders.iter().map(|folder| (folder.clone(), 0)).collect();
    while let Some((folder, depth)) = open.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        // In an order that does not depend on the file system: of two copies the first by name is taken.
        paths.sort();
        for path in paths {
            // A link to a folder may lead around in a circle.
            let is_folder = path.is_dir() && !path.is_symlink();
            if is_folder && depth < DEEPEST {
                open.push((path, depth + 1));
            } else if is_folder || left == 0 {
                found.skipped += 1;
            } else if let Some(id) = build_id(&path) {
                found.files.entry(id).or_insert(path);
                left -= 1;
            }
        }
    }
    found
}
