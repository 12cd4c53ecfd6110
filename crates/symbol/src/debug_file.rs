//! Where debug information lies that is apart from the program.

use object::{Object, ReadCache};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// The debug file of a build-id under one of the roots, if it is installed.
pub fn find(build_id: &[u8], roots: &[PathBuf]) -> Option<PathBuf> {
    let (first, rest) = build_id.split_first()?;
    if rest.is_empty() {
        return None;
    }
    let rest: String = rest.iter().map(|b| format!("{b:02x}")).collect();
    let name = format!("{first:02x}/{rest}.debug");
    roots.iter().map(|root| root.join(".build-id").join(&name)).find(|path| path.is_file())
}

/// The debug file that a program names (`.gnu_debuglink`): beside it, in `.debug` there, or under a root, as gdb looks.
/// One with another build-id is of another build.
pub fn linked(program: &Path, name: &[u8], build_id: &[u8], roots: &[PathBuf]) -> Option<PathBuf> {
    let name = Path::new(std::str::from_utf8(name).ok()?);
    let folder = program.parent()?;
    let below = folder.strip_prefix("/").unwrap_or(folder);
    let near = [folder.to_owned(), folder.join(".debug")];
    let all = near.into_iter().chain(roots.iter().map(|root| root.join(below)));
    all.map(|folder| folder.join(name)).find(|path| path != program && is_of(path, build_id))
}

fn is_of(path: &Path, build_id: &[u8]) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let cache = ReadCache::new(BufReader::new(file));
    let Ok(file) = object::File::parse(&cache) else { return false };
    build_id.is_empty() || file.build_id().ok().flatten() == Some(build_id)
}

/// The shared part of debug files (`dwz`), named relative to the file that refers to it.
pub fn supplement(debug_file: &Path, name: &[u8]) -> Option<PathBuf> {
    let name = Path::new(std::str::from_utf8(name).ok()?);
    let path = debug_file.parent()?.join(name);
    path.is_file().then_some(path)
}
