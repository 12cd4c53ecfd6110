//! The program to run: found, and checked to be one that we can record.

use crate::error::LaunchError;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// A program with its arguments.
#[derive(Clone, Debug)]
pub struct Program {
    /// The file that exec gets.
    pub path: PathBuf,
    /// Arguments, the name it was called by first.
    pub args: Vec<OsString>,
    /// The file that really runs: the interpreter, for scripts.
    pub image: PathBuf,
    /// Whether it is dynamically linked.
    pub dynamic: bool,
}

impl Program {
    /// Finds and checks a program.
    pub fn find(name: &OsStr, args: &[OsString]) -> Result<Program, LaunchError> {
        let path = locate(name)?;
        let (image, dynamic) = image_of(&path, 0)?;
        let mut all = vec![name.to_owned()];
        all.extend_from_slice(args);
        Ok(Program { path, args: all, image, dynamic })
    }
}

fn locate(name: &OsStr) -> Result<PathBuf, LaunchError> {
    let not_found = || LaunchError::NotFound(name.to_string_lossy().into_owned());
    if name.is_empty() {
        return Err(not_found());
    }
    let direct = Path::new(name);
    if name.as_encoded_bytes().contains(&b'/') {
        return match fs::metadata(direct) {
            Ok(m) if m.is_file() && m.permissions().mode() & 0o111 != 0 => Ok(direct.to_owned()),
            Ok(m) if m.is_dir() => Err(LaunchError::Directory(direct.to_owned())),
            Ok(_) => Err(LaunchError::NotExecutable(direct.to_owned())),
            Err(_) => Err(not_found()),
        };
    }
    let path = env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let is_program =
        |p: &PathBuf| fs::metadata(p).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    env::split_paths(&path).map(|dir| dir.join(name)).find(is_program).ok_or_else(not_found)
}

/// The ELF file that runs when `path` is executed, and whether it is dynamic.
fn image_of(path: &Path, depth: usize) -> Result<(PathBuf, bool), LaunchError> {
    let wrong = |what: &str| LaunchError::WrongFormat { path: path.to_owned(), what: what.to_owned() };
    let exec = |error: io::Error| LaunchError::Exec { path: path.to_owned(), error };
    let metadata = fs::metadata(path).map_err(exec)?;
    // SAFETY: no arguments.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    let other = |bit: u32, id: u32, mine: u32| metadata.mode() & bit != 0 && id != mine;
    if other(0o4000, metadata.uid(), user) || other(0o2000, metadata.gid(), group) {
        return Err(LaunchError::SetId(path.to_owned()));
    }
    let head = read_head(path).map_err(exec)?;
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = line.split(|b| *b == b'\n').next().unwrap_or(b"");
        let interpreter = line.split(|b| *b == b' ' || *b == b'\t').find(|w| !w.is_empty());
        let interpreter = interpreter.ok_or_else(|| wrong("a script without an interpreter"))?;
        if depth > 4 {
            return Err(wrong("a script whose interpreters go in circles"));
        }
        // SAFETY: bytes of a path as the kernel would take them.
        let interpreter = unsafe { OsStr::from_encoded_bytes_unchecked(interpreter) };
        return image_of(Path::new(interpreter), depth + 1);
    }
    if !head.starts_with(b"\x7fELF") {
        let what = no_program(&head);
        return Err(what.map_or_else(
            || wrong("no ELF header"),
            |what| LaunchError::NotAProgram { path: path.to_owned(), what },
        ));
    }
    if head.get(4) != Some(&2) || head.get(18..20) != Some(&[62, 0]) {
        return Err(wrong(&format!("an ELF file for another machine, {}", machine(&head))));
    }
    let dynamic = crate::image::is_dynamic(path).map_err(exec)?.map_err(|what| wrong(&what))?;
    Ok((path.to_owned(), dynamic))
}

/// What a file that is no ELF file may have been meant for.
fn no_program(head: &[u8]) -> Option<&'static str> {
    if head.is_empty() {
        return Some("is empty; there is nothing to run");
    }
    let is_text = |b: &u8| matches!(b, b'\t' | b'\n' | b'\r' | 0x20..=0x7e | 0x80..);
    // A shell would take it for a script of its own; the kernel, which runs it here, does not.
    head.iter()
        .all(is_text)
        .then_some("is text without a #! line; run it with its interpreter, such as `sonde run -- sh FILE`")
}

/// The machine that an ELF file is for, in words where it is a common one.
fn machine(head: &[u8]) -> String {
    let wide = head.get(4) == Some(&2);
    match head.get(18..20).map(|m| u16::from_le_bytes([m[0], m[1]])) {
        Some(3) => "32-bit x86".into(),
        Some(40) => "32-bit ARM".into(),
        Some(62) if !wide => "x86-64 with 32-bit addresses (x32)".into(),
        Some(183) => "AArch64 (64-bit ARM)".into(),
        Some(243) => "RISC-V".into(),
        Some(21) => "64-bit PowerPC".into(),
        Some(22) => "S/390".into(),
        Some(other) => format!("number {other}"),
        None => "its header is cut off".into(),
    }
}

fn read_head(path: &Path) -> io::Result<Vec<u8>> {
    use std::io::Read;
    let mut head = Vec::new();
    fs::File::open(path)?.take(256).read_to_end(&mut head)?;
    Ok(head)
}
