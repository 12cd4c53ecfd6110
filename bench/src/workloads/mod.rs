//! The workloads: which programs, with which inputs, as data in `bench/workloads/list.tsv`.

pub mod inputs;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use sonde_harness::process::{Ending, Job};
use sonde_harness::trial::Subject;

const LIST: &str = include_str!("../../workloads/list.tsv");

/// One line of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// The benchmark of the papers that it stands for.
    pub like: String,
    /// How many threads work.
    pub threads: u32,
    prepare: Option<String>,
    environment: Vec<(String, String)>,
    command: Vec<String>,
    stdin: Option<String>,
    result: Option<String>,
}

/// The list, or the named part of it in the order of the list.
pub fn chosen(names: &[String]) -> Result<Vec<Workload>> {
    let all = parse(LIST)?;
    for name in names {
        let known = || all.iter().map(|w| w.name.as_str()).collect::<Vec<_>>().join(", ");
        ensure!(all.iter().any(|w| w.name == *name), "no workload is called {name}; there are: {}", known());
    }
    Ok(all.into_iter().filter(|w| names.is_empty() || names.contains(&w.name)).collect())
}

fn parse(text: &str) -> Result<Vec<Workload>> {
    let lines = text.lines().enumerate().filter(|(_, l)| !l.starts_with('#') && !l.is_empty());
    lines
        .map(|(i, line)| parse_line(line).with_context(|| format!("workloads/list.tsv, line {}", i + 1)))
        .collect()
}

fn parse_line(line: &str) -> Result<Workload> {
    let columns: Vec<&str> = line.split('\t').collect();
    let [name, like, _packages, threads, prepare, command, stdin, result] = columns[..] else {
        bail!("8 columns expected, {} found", columns.len());
    };
    let optional = |column: &str| (column != "-").then(|| column.to_string());
    let words: Vec<&str> = command.split_whitespace().collect();
    let assignments: Vec<(&str, &str)> = words.iter().map_while(|word| assignment(word)).collect();
    let command: Vec<String> = words[assignments.len()..].iter().map(|w| (*w).into()).collect();
    ensure!(!command.is_empty(), "{name} has no command");
    Ok(Workload {
        name: name.into(),
        like: like.into(),
        threads: threads.parse().context("threads")?,
        prepare: optional(prepare),
        environment: assignments.into_iter().map(|(k, v)| (k.into(), v.into())).collect(),
        command,
        stdin: optional(stdin),
        result: optional(result),
    })
}

fn assignment(word: &str) -> Option<(&str, &str)> {
    word.split_once('=').filter(|(key, _)| key.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
}

/// Inputs of one scale, below a folder that holds several.
pub fn folder(root: &Path, scale: f64) -> PathBuf {
    root.join(format!("scale-{scale}"))
}

impl Workload {
    /// Makes sure that inputs are there and gives the program ready to run.
    pub fn ready(&self, root: &Path, scale: f64, limit: Duration) -> Result<Subject> {
        let folder = folder(root, scale);
        inputs::make(&folder, scale)
            .with_context(|| format!("cannot make inputs in {}", folder.display()))?;
        let folder = folder.canonicalize()?;
        self.prepare(&folder)?;
        let place = |word: &str| word.replace("{in}", &folder.to_string_lossy());
        let mut command: Vec<OsString> = self.command.iter().map(|w| place(w).into()).collect();
        if self.command[0] == "@cc1plus" {
            command[0] = compiler_proper()?.into();
        }
        let stdin = self.stdin.as_ref().map_or(Ok(Vec::new()), |file| std::fs::read(place(file)))?;
        let job = Job {
            command,
            stdin,
            merge: false,
            environment: self.environment.clone(),
            discard: false,
            result: self.result.clone(),
            summary: None,
            limit,
        };
        Ok(Subject { name: self.name.clone(), job, ending: Ending::Exit(0), sees: Default::default() })
    }

    fn prepare(&self, folder: &Path) -> Result<()> {
        let done = folder.join(format!("{}.prepared", self.name));
        let Some(line) = self
            .prepare
            .as_ref()
            .filter(|line| !std::fs::read_to_string(&done).is_ok_and(|old| old == **line))
        else {
            return Ok(());
        };
        let status = Command::new("sh").args(["-c", line]).current_dir(folder).status()?;
        ensure!(
            status.success(),
            "{}: {line:?} failed; bench/setup-workloads installs what it needs",
            self.name
        );
        Ok(std::fs::write(done, line)?)
    }
}

/// The program that `g++` starts to compile.
fn compiler_proper() -> Result<String> {
    let output = Command::new("g++")
        .arg("-print-prog-name=cc1plus")
        .output()
        .context("g++ is not installed; run bench/setup-workloads")?;
    Ok(String::from_utf8(output.stdout)?.trim().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_well_formed() {
        let all = parse(LIST).unwrap();
        assert_eq!(all.len(), 13);
        let djpeg = all.iter().find(|w| w.name == "djpeg").unwrap();
        assert_eq!(djpeg.environment, [("JSIMD_FORCENONE".to_string(), "1".to_string())]);
        assert_eq!(djpeg.command[0], "djpeg");
    }

    #[test]
    fn unknown_names_and_bad_lines_are_named() {
        assert!(chosen(&["gzup".into()]).unwrap_err().to_string().contains("gzip"));
        assert!(format!("{:#}", parse("a\tb").unwrap_err()).contains("line 1: 8 columns"));
    }
}
