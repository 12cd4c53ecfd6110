//! The list of hostile programs, `tests/programs/list.tsv`: data, so that a new program is one file and one line.

use std::path::{Path, PathBuf};

use crate::process::Ending;

/// One line of the list: how to build a program, how to run it and how it must end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Unique name of the run.
    pub name: String,
    /// Source files in the programs' folder, or the one word `@huge`.
    pub sources: Vec<String>,
    /// Flags for the compiler, libraries included.
    pub flags: Vec<String>,
    /// Arguments of the run.
    pub arguments: Vec<String>,
    /// Lines of text on standard input.
    pub stdin_lines: u32,
    /// How a native run ends; `None` for libraries, which are built but not run.
    pub ending: Option<Ending>,
    /// Both outputs go into one file, so that their order is compared too.
    pub merge: bool,
    /// What the program looks at that some modes cannot hide.
    pub sees: Sees,
}

/// What a program looks at that some modes of `sonde run` cannot hide; see docs/design/transparency.md.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sees {
    /// It uses or counts the trigger signal, asks for pending signals, or forbids system calls: the perf and timer
    /// triggers send a signal.
    pub signal: bool,
    /// It lists the handlers that the kernel has for it: the exhaustive and counter modes keep some of their own there.
    pub handlers: bool,
    /// It looks at its own code or at each of its steps: `--in-place` changes both.
    pub code: bool,
    /// It traces its own children, which Sonde does where it follows them.
    pub tracer: bool,
}

impl Program {
    /// The file name of the executable: runs with the same sources and flags share it.
    pub fn executable(&self) -> String {
        if self.ending.is_none() {
            return self.name.clone();
        }
        let stem = self.sources[0].split('.').next().unwrap_or_default().trim_start_matches('@');
        let marks: String = self
            .flags
            .iter()
            .filter(|f| !matches!(f.as_str(), "-O2" | "-pthread"))
            .map(String::as_str)
            .collect();
        format!("{stem}{}", marks.replace(['=', '/'], "_"))
    }
}

/// What is wrong with a line of the list.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The file cannot be read.
    #[error("cannot read the list of programs {path}: {source}")]
    Read {
        /// Where it should be.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A line does not follow the format given at the top of the list.
    #[error("list.tsv, line {line}: {what}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What was expected.
        what: String,
    },
}

/// The folder of the programs' sources in this repository.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs")
}

/// The programs of this repository.
pub fn programs() -> Result<Vec<Program>, ManifestError> {
    let path = folder().join("list.tsv");
    let text = std::fs::read_to_string(&path).map_err(|source| ManifestError::Read { path, source })?;
    parse(&text)
}

/// Reads the format described at the top of `list.tsv`.
pub fn parse(text: &str) -> Result<Vec<Program>, ManifestError> {
    let mut programs: Vec<Program> = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, l)| !l.starts_with('#') && !l.is_empty()) {
        let at = |what: String| ManifestError::Line { line: index + 1, what };
        let program = parse_line(line).map_err(at)?;
        if programs.iter().any(|p| p.name == program.name) {
            return Err(at(format!("{} is there twice", program.name)));
        }
        programs.push(program);
    }
    Ok(programs)
}

fn parse_line(line: &str) -> Result<Program, String> {
    let columns: Vec<&str> = line.split('\t').collect();
    let [name, sources, flags, arguments, stdin, ending, options] = columns[..] else {
        return Err(format!("7 columns expected, {} found", columns.len()));
    };
    if name.is_empty() || sources.is_empty() {
        return Err("a program needs a name and a source".into());
    }
    let (mut merge, mut sees) = (false, Sees::default());
    for option in words(options) {
        match option.as_str() {
            "merge" => merge = true,
            "sees-signal" => sees.signal = true,
            "sees-handlers" => sees.handlers = true,
            "sees-tracer" => sees.tracer = true,
            "sees-code" => sees.code = true,
            other => {
                return Err(format!(
                    "unknown option {other:?}: merge, sees-signal, sees-handlers, sees-tracer, sees-code are known"
                ));
            }
        }
    }
    Ok(Program {
        name: name.into(),
        sources: words(sources),
        flags: words(flags),
        arguments: words(arguments),
        stdin_lines: parse_stdin(stdin)?,
        ending: parse_ending(ending)?,
        merge,
        sees,
    })
}

fn words(column: &str) -> Vec<String> {
    if column == "-" { Vec::new() } else { column.split_whitespace().map(String::from).collect() }
}

fn parse_stdin(column: &str) -> Result<u32, String> {
    match column.strip_prefix("lines ") {
        Some(count) => count.parse().map_err(|e| format!("stdin {column:?}: {e}")),
        None if column == "-" => Ok(0),
        None => Err(format!("stdin {column:?}: - or \"lines N\" expected")),
    }
}

fn parse_ending(column: &str) -> Result<Option<Ending>, String> {
    if column == "library" {
        return Ok(None);
    }
    let (kind, number) = column.split_once(':').ok_or("ending: exit:N, signal:N or library expected")?;
    let number = number.parse().map_err(|e| format!("ending {column:?}: {e}"))?;
    match kind {
        "exit" => Ok(Some(Ending::Exit(number))),
        "signal" => Ok(Some(Ending::Signal(number))),
        _ => Err(format!("ending {column:?}: exit:N, signal:N or library expected")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_this_repository_is_well_formed_and_its_sources_exist() {
        let programs = programs().unwrap();
        assert!(programs.len() > 60);
        for source in programs.iter().flat_map(|p| &p.sources).filter(|s| !s.starts_with('@')) {
            assert!(folder().join(source).is_file(), "{source} is missing");
        }
    }

    #[test]
    fn every_source_of_the_folder_is_used() {
        let programs = programs().unwrap();
        for entry in std::fs::read_dir(folder()).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let source = name.ends_with(".c") || name.ends_with(".cc") || name.ends_with(".S");
            assert!(
                !source || programs.iter().any(|p| p.sources.contains(&name)),
                "{name} is in no line of list.tsv"
            );
        }
    }

    #[test]
    fn executables_are_shared_only_by_equal_builds() {
        let programs = programs().unwrap();
        for a in &programs {
            for b in programs.iter().filter(|b| b.executable() == a.executable()) {
                assert_eq!((&a.sources, &a.flags), (&b.sources, &b.flags), "{} and {}", a.name, b.name);
            }
        }
    }

    #[test]
    fn bad_lines_are_named() {
        for (line, part) in [
            ("a\ta.c\t-\t-\t-\texit:0", "7 columns"),
            ("a\ta.c\t-\t-\t-\texit:x\t-", "ending"),
            ("a\ta.c\t-\t-\t-\tgone\t-", "ending"),
            ("a\ta.c\t-\t-\t5\texit:0\t-", "stdin"),
            ("a\ta.c\t-\t-\t-\texit:0\tquick", "unknown option"),
            ("\ta.c\t-\t-\t-\texit:0\t-", "needs a name"),
            ("a\ta.c\t-\t-\t-\texit:0\t-\na\ta.c\t-\t-\t-\texit:0\t-", "line 2: a is there twice"),
        ] {
            let error = parse(line).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
