//! Builds the hostile programs with the system's C compiler, the one that Rust needs for linking anyway.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::manifest::{self, Program};
use crate::{huge, sessions};

/// Functions in the generated program `@huge`.
pub const HUGE_FUNCTIONS: u32 = 20_000;

/// Why a program could not be built.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// There is no compiler.
    #[error("cannot run {compiler}: {source}; install a C and C++ compiler or set CC and CXX")]
    NoCompiler {
        /// The name that was tried.
        compiler: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The compiler refused the program.
    #[error("{program} does not compile:\n{output}")]
    Refused {
        /// Its name in the list.
        program: String,
        /// What the compiler printed.
        output: String,
    },
}

/// Builds what is new or changed into `folder`, `jobs` at a time. Executables are then found with [`path`].
pub fn build(programs: &[Program], folder: &Path, jobs: usize) -> Result<(), CompileError> {
    fs::create_dir_all(folder).map_err(|source| CompileError::File { path: folder.into(), source })?;
    let mut distinct: Vec<&Program> = Vec::new();
    for program in programs {
        if !distinct.iter().any(|d| d.executable() == program.executable()) {
            distinct.push(program);
        }
    }
    // The largest first: it must not be what the others wait for at the end.
    distinct.sort_by_key(|p| !p.sources[0].starts_with('@'));
    sessions::in_parallel(jobs, &distinct, |program| build_one(program, folder)).into_iter().collect()
}

/// Where [`build`] put the executable of a program.
pub fn path(program: &Program, folder: &Path) -> PathBuf {
    folder.join(program.executable())
}

fn build_one(program: &Program, folder: &Path) -> Result<(), CompileError> {
    let sources = sources(program, folder)?;
    let compiler = compiler(&sources);
    let stamp = stamp(program, &sources, &compiler)?;
    let (target, stamp_file) =
        (path(program, folder), folder.join(format!("{}.stamp", program.executable())));
    if target.exists() && fs::read_to_string(&stamp_file).is_ok_and(|old| old == stamp) {
        return Ok(());
    }
    // Under another name first: a test that runs beside us must never see half an executable.
    let unfinished = folder.join(format!("{}.{}", program.executable(), std::process::id()));
    let output = Command::new(&compiler)
        .args(["-g", "-w", "-I"])
        .arg(manifest::folder())
        .args(&sources)
        .args(&program.flags)
        .arg("-o")
        .arg(&unfinished)
        .output()
        .map_err(|source| CompileError::NoCompiler { compiler: compiler.clone(), source })?;
    if !output.status.success() {
        let output = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(CompileError::Refused { program: program.name.clone(), output });
    }
    fs::rename(&unfinished, &target).map_err(|source| CompileError::File { path: target, source })?;
    fs::write(&stamp_file, stamp).map_err(|source| CompileError::File { path: stamp_file, source })
}

fn sources(program: &Program, folder: &Path) -> Result<Vec<PathBuf>, CompileError> {
    if program.sources[0] != "@huge" {
        return Ok(program.sources.iter().map(|s| manifest::folder().join(s)).collect());
    }
    let path = folder.join("huge.c");
    let text = huge::source(HUGE_FUNCTIONS);
    if !fs::read_to_string(&path).is_ok_and(|old| old == text) {
        fs::write(&path, text).map_err(|source| CompileError::File { path: path.clone(), source })?;
    }
    Ok(vec![path])
}

fn compiler(sources: &[PathBuf]) -> String {
    let plus = sources.iter().any(|s| s.extension().is_some_and(|e| e == "cc"));
    let (variable, default) = if plus { ("CXX", "c++") } else { ("CC", "cc") };
    std::env::var(variable).unwrap_or_else(|_| default.into())
}

/// All that the executable depends on, except the compiler's own version.
fn stamp(program: &Program, sources: &[PathBuf], compiler: &str) -> Result<String, CompileError> {
    let mut hasher = DefaultHasher::new();
    (compiler, &program.flags).hash(&mut hasher);
    for path in sources.iter().chain([&manifest::folder().join("common.h")]) {
        let content = fs::read(path).map_err(|source| CompileError::File { path: path.clone(), source })?;
        content.hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(name: &str, source: &str) -> Program {
        manifest::parse(&format!("{name}\t{source}\t-O1\t-\t-\texit:0\t-")).unwrap().remove(0)
    }

    #[test]
    fn builds_once_and_again_only_when_something_changed() {
        let folder = tempfile::tempdir().unwrap();
        let list = [program("jump_table", "jump_table.c")];
        build(&list, folder.path(), 1).unwrap();
        let built = fs::metadata(path(&list[0], folder.path())).unwrap().modified().unwrap();
        build(&list, folder.path(), 1).unwrap();
        assert_eq!(fs::metadata(path(&list[0], folder.path())).unwrap().modified().unwrap(), built);
        fs::write(folder.path().join(format!("{}.stamp", list[0].executable())), "old").unwrap();
        build(&list, folder.path(), 1).unwrap();
        assert_ne!(fs::metadata(path(&list[0], folder.path())).unwrap().modified().unwrap(), built);
    }

    #[test]
    fn what_the_compiler_says_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let error = build(&[program("none", "no_such_file.c")], folder.path(), 1).unwrap_err();
        assert!(error.to_string().contains("no_such_file.c"), "{error}");
        // Without FACTOR the plugin refuses to compile.
        let error = build(&[program("bad", "plugin.c")], folder.path(), 1).unwrap_err().to_string();
        assert!(error.contains("bad does not compile") && error.contains("FACTOR"), "{error}");
    }
}
