//! Which checks counter mode leaves out: found in the files of the program before it starts, told to the probe.

use crate::options::{Options, Policy};
use crate::program::Program;
use crate::shared::SharedMemory;
use sonde_checks::{Entries, Module, Needed, Plan, Scheme, needed};
use std::collections::HashMap;
use std::env;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What the analysis of a program's files came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FewerChecks {
    /// Files whose checks are known.
    pub modules: usize,
    /// Functions in them, by their entries.
    pub functions: usize,
    /// Those of them that keep their entry check.
    pub checked_functions: usize,
    /// Loops in them, by their back-edges.
    pub loops: usize,
    /// Those of them that keep their check.
    pub checked_loops: usize,
    /// Calls, tail calls and back-edges without a check.
    pub unchecked: usize,
    /// What keeps all its checks because it could not be analysed: the file or library, and why.
    pub left: Vec<String>,
}

/// A file that was analysed.
struct Analysed {
    identity: u64,
    module: Module,
    plan: Plan,
    offsets: Vec<u32>,
}

/// What is known of files by now, so that none is analysed twice.
#[derive(Default)]
pub struct Modules(HashMap<u64, Module>);

impl Modules {
    /// What is known of a file, found out if need be.
    pub fn open(&mut self, file: &Path) -> Result<Module, String> {
        let identity = identity(file)?;
        match self.0.remove(&identity) {
            Some(module) => Ok(module),
            None => Module::open(file).map_err(|error| error.to_string()),
        }
    }
}

/// Whether any check is left out.
pub fn are_wanted(options: &Options) -> bool {
    matches!(options.policy, Policy::Counter { .. }) && !keeps_all(options.scheme)
}

fn keeps_all(scheme: Scheme) -> bool {
    scheme.entries == Entries::All && scheme.boring.is_none()
}

/// Analyses the program and what it needs, and writes the table. None if all checks are kept. What is known of the files goes to
/// `modules`, if they are wanted again.
pub fn prepare(
    program: &Program,
    options: &Options,
    shared: &SharedMemory,
    modules: &mut Modules,
) -> Option<FewerChecks> {
    if !are_wanted(options) {
        return None;
    }
    let Needed { files, missing } = needed(&program.image, &folders("LD_LIBRARY_PATH"), &preloaded());
    let mut found = FewerChecks::default();
    found.left.extend(missing.into_iter().map(|name| format!("{name}: not found")));
    let (mut kept, mut room) = (Vec::new(), shared.regions().unchecked.len as usize / 4);
    room = room.saturating_sub(sonde_wire::checks::words(0, 0));
    for file in files {
        match analyse(&file, options.scheme) {
            Ok(one) => {
                let words = sonde_wire::checks::words(1, one.offsets.len()) - sonde_wire::checks::words(0, 0);
                if words > room {
                    found
                        .left
                        .push(format!("{}: no room for its table; raise --probe-memory", file.display()));
                    continue;
                }
                room -= words;
                found.add(&one);
                kept.push(one);
            }
            Err(why) => found.left.push(why),
        }
    }
    let tables: Vec<(u64, &[u32])> = kept.iter().map(|one| (one.identity, one.offsets.as_slice())).collect();
    shared.write_unchecked(&tables);
    if options.in_place {
        modules.0.extend(kept.into_iter().map(|one| (one.identity, one.module)));
    }
    Some(found)
}

impl FewerChecks {
    fn add(&mut self, one: &Analysed) {
        self.modules += 1;
        self.functions += one.plan.functions;
        self.checked_functions += one.plan.checked_functions;
        self.loops += one.plan.loops;
        self.checked_loops += one.plan.checked_loops;
        self.unchecked += one.offsets.len();
    }
}

fn analyse(file: &Path, scheme: Scheme) -> Result<Analysed, String> {
    // Before it is read: a file that is replaced meanwhile is not the one that the probe will find.
    let identity = identity(file)?;
    let module = Module::open(file).map_err(|error| error.to_string())?;
    let plan = Plan::new(&module, scheme);
    // Code beyond 4 GiB of a file keeps its checks.
    let offsets = plan.unchecked.iter().filter_map(|offset| u32::try_from(*offset).ok()).collect();
    Ok(Analysed { identity, module, plan, offsets })
}

/// Which version of which file it is.
fn identity(file: &Path) -> Result<u64, String> {
    let meta = std::fs::metadata(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let times = [meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()].map(|t| t as u64);
    let words = [meta.dev(), meta.ino(), meta.size(), times[0], times[1], times[2], times[3]];
    Ok(sonde_wire::checks::identity(&words))
}

fn folders(variable: &str) -> Vec<PathBuf> {
    let value = env::var_os(variable).unwrap_or_default();
    env::split_paths(&value).filter(|folder| !folder.as_os_str().is_empty()).collect()
}

fn preloaded() -> Vec<String> {
    let value = env::var_os("LD_PRELOAD").unwrap_or_default();
    let value = value.to_string_lossy();
    value.split([':', ' ']).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(scheme: Scheme, max_memory: u64) -> Options {
        let policy = Policy::Counter { gap: 100, checks: 10 };
        Options { policy, scheme, max_memory, ..Options::default() }
    }

    fn prepared(scheme: &str, max_memory: u64) -> Option<FewerChecks> {
        let options = options(scheme.parse().unwrap(), max_memory);
        let program = Program::find(std::env::current_exe().unwrap().as_os_str(), &[]).unwrap();
        let shared = SharedMemory::new(&options, 0, 23).unwrap();
        prepare(&program, &options, &shared, &mut Modules::default())
    }

    #[test]
    fn this_test_and_its_libraries_are_analysed() {
        assert_eq!(prepared("orig", 64 << 20), None);
        let found = prepared("EC+L4", 256 << 20).unwrap();
        assert!(found.modules >= 3 && found.left.is_empty(), "{found:?}");
        assert!(found.checked_functions < found.functions && found.checked_loops < found.loops);
        assert!(found.unchecked > 10_000, "{found:?}");
    }

    #[test]
    fn what_does_not_fit_keeps_its_checks_and_is_named() {
        let found = prepared("EN", 1 << 20).unwrap();
        assert!(found.left.iter().any(|l| l.contains("--probe-memory")), "{found:?}");
        assert!(found.unchecked * 4 <= 64 << 10);
    }
}
