//! Where debug information lies that is apart from the program.

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

/// The shared part of debug files (`dwz`), named relative to the file that refers to it.
pub fn supplement(debug_file: &Path, name: &[u8]) -> Option<PathBuf> {
    let name = Path::new(std::str::from_utf8(name).ok()?);
    let path = debug_file.parent()?.join(name);
    path.is_file().then_some(path)
}
