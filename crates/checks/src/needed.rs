//! Which files a program will run code of: itself, its dynamic loader, and the libraries that it needs.
//!
//! A simple account of what the dynamic loader does: names are looked for in the folders that the file names (RPATH,
//! RUNPATH), in those of the caller (LD_LIBRARY_PATH), and in the usual ones, those of `/etc/ld.so.conf` among them.
//! What it does beyond that (its cache, variants for newer processors, plugins) only means that a library is not found, or
//! that another one is loaded; both keep their checks.

use object::Endianness;
use object::elf::{self, FileHeader64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needed {
    /// Files, the program first.
    pub files: Vec<PathBuf>,
    /// Names of libraries that were not found.
    pub missing: Vec<String>,
}

/// Where the dynamic loader looks last.
const USUAL: [&str; 6] =
    ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"];

/// Most files that are looked at, and most folders that `/etc/ld.so.conf` may name.
const MOST: usize = 1024;

/// What one file asks for.
#[derive(Debug, Default)]
struct Wishes {
    names: Vec<String>,
    folders: Vec<PathBuf>,
    loader: Option<PathBuf>,
}

/// Finds all files that `program` needs. `preferred` are the folders of LD_LIBRARY_PATH, `preloaded` the names or paths of
/// LD_PRELOAD.
pub fn needed(program: &Path, preferred: &[PathBuf], preloaded: &[String]) -> Needed {
    let mut last: Vec<PathBuf> = configured(Path::new("/etc/ld.so.conf"), 0);
    last.extend(USUAL.map(PathBuf::from));
    let mut found = Needed { files: vec![program.to_owned()], missing: Vec::new() };
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut queue = VecDeque::from([program.to_owned()]);
    let mut extra = preloaded.to_vec();
    while let Some(file) = queue.pop_front() {
        let mut wishes = std::fs::read(&file).ok().and_then(|data| wishes(&file, &data)).unwrap_or_default();
        if wishes.loader.is_none() && wishes.names.is_empty() {
            extra.clear();
        }
        wishes.names.append(&mut extra);
        if let Some(loader) = wishes.loader.take()
            && seen.insert(name_of(&loader))
        {
            found.files.push(loader);
        }
        for name in wishes.names {
            if found.files.len() >= MOST || !seen.insert(name_of(Path::new(&name))) {
                continue;
            }
            let folders = wishes.folders.iter().chain(preferred).chain(&last);
            match locate(&name, folders) {
                Some(path) => {
                    found.files.push(path.clone());
                    queue.push_back(path);
                }
                None => found.missing.push(name),
            }
        }
    }
    found
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn locate<'a>(name: &str, mut folders: impl Iterator<Item = &'a PathBuf>) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|p| p.is_file());
    }
    folders.find_map(|folder| Some(folder.join(name)).filter(|p| p.is_file()))
}

/// The folders of a configuration file of the dynamic loader, and of those that it includes.
fn configured(file: &Path, depth: usize) -> Vec<PathBuf> {
    let Ok(text) = std::fs::read_to_string(file) else { return Vec::new() };
    let mut folders = Vec::new();
    for line in text.lines().map(|l| l.split('#').next().unwrap_or("").trim()).filter(|l| !l.is_empty()) {
        match line.strip_prefix("include ") {
            Some(pattern) if depth < 4 => {
                for included in matching(Path::new(pattern.trim())) {
                    folders.extend(configured(&included, depth + 1));
                }
            }
            Some(_) => {}
            None => folders.push(PathBuf::from(line)),
        }
    }
    folders.truncate(MOST);
    folders
}

/// Files that a pattern with one star in its last part stands for, in order.
fn matching(pattern: &Path) -> Vec<PathBuf> {
    let name = name_of(pattern);
    let Some((before, after)) = name.split_once('*') else { return vec![pattern.to_owned()] };
    let Some(Ok(entries)) = pattern.parent().map(std::fs::read_dir) else { return Vec::new() };
    let fits = |path: &PathBuf| {
        let name = name_of(path);
        name.len() >= before.len() + after.len() && name.starts_with(before) && name.ends_with(after)
    };
    let mut files: Vec<PathBuf> = entries.flatten().map(|e| e.path()).filter(fits).collect();
    files.sort_unstable();
    files
}

/// What the headers of a file ask for; none if they make no sense.
fn wishes(file: &Path, data: &[u8]) -> Option<Wishes> {
    let header = FileHeader64::<Endianness>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let programs = header.program_headers(endian, data).ok()?;
    let mut wishes = Wishes::default();
    let interpreter = programs.iter().find_map(|p| p.interpreter(endian, data).ok().flatten());
    wishes.loader = interpreter.map(|name| PathBuf::from(String::from_utf8_lossy(name).into_owned()));
    let entries = programs.iter().find_map(|p| p.dynamic(endian, data).ok().flatten()).unwrap_or_default();
    let value = |tag: elf::DynamicTag| entries.iter().find(|e| e.tag(endian) == tag).map(|e| e.val(endian));
    let (Some(strings), Some(size)) = (value(elf::DT_STRTAB), value(elf::DT_STRSZ)) else {
        return Some(wishes);
    };
    let in_file = |p: &elf::ProgramHeader64<Endianness>| {
        p.data_range(endian, data, strings, size).ok().flatten().filter(|_| p.p_type(endian) == elf::PT_LOAD)
    };
    let strings = programs.iter().find_map(in_file)?;
    let text = |offset: u64| {
        let rest = strings.get(offset as usize..)?;
        Some(String::from_utf8_lossy(rest.split(|b| *b == 0).next()?).into_owned())
    };
    let origin = std::fs::canonicalize(file).ok()?.parent()?.to_string_lossy().into_owned();
    for entry in entries {
        match entry.tag(endian) {
            elf::DT_NEEDED => wishes.names.extend(text(entry.val(endian))),
            elf::DT_RPATH | elf::DT_RUNPATH => {
                let path = text(entry.val(endian)).unwrap_or_default();
                let path = path.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin);
                wishes.folders.extend(path.split(':').filter(|f| !f.is_empty()).map(PathBuf::from));
            }
            _ => {}
        }
    }
    Some(wishes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn cc(folder: &Path, args: &[&str]) {
        let output = Command::new("cc").args(args).current_dir(folder).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    #[test]
    fn libraries_are_found_where_the_program_says_and_missing_ones_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        std::fs::write(at.join("lib.c"), "int seven(void) { return 7; }").unwrap();
        std::fs::write(at.join("a.c"), "int seven(void); int main(void) { return seven(); }").unwrap();
        std::fs::create_dir(at.join("own")).unwrap();
        cc(at, &["-shared", "-fPIC", "-o", "own/libseven.so", "lib.c"]);
        cc(at, &["-o", "a", "a.c", "-Lown", "-lseven", "-Wl,-rpath,$ORIGIN/own"]);
        cc(at, &["-o", "b", "a.c", "-Lown", "-lseven"]);
        cc(at, &["-static", "-o", "c", "a.c", "lib.c"]);
        let names = |n: &Needed| n.files.iter().map(|f| name_of(f)).collect::<Vec<_>>();
        let all = needed(&at.join("a"), &[], &[]);
        assert_eq!(all.missing, Vec::<String>::new());
        assert_eq!(names(&all)[0], "a");
        for name in ["libseven.so", "libc.so.6", "ld-linux-x86-64.so.2"] {
            assert!(names(&all).iter().any(|n| n == name), "{name} in {all:?}");
        }
        assert_eq!(all.files.len(), 4);
        assert_eq!(needed(&at.join("b"), &[], &[]).missing, ["libseven.so"]);
        assert_eq!(needed(&at.join("b"), &[at.join("own")], &[]).missing, Vec::<String>::new());
        assert_eq!(
            names(&needed(&at.join("c"), &[], &["libm.so.6".into()])),
            ["c"],
            "static: nothing is preloaded"
        );
        assert!(names(&needed(&at.join("a"), &[], &["libm.so.6".into()])).iter().any(|n| n == "libm.so.6"));
        assert_eq!(needed(&at.join("lib.c"), &[], &[]).files.len(), 1);
    }
}
