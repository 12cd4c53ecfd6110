//! Shares with their errors out of a report of Sonde: the only place that knows how the report's JSON calls them
//! (docs/report.schema.json).

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use sonde_harness::process::{self, Ending, Job, Outcome};

/// A share, and how much more or less it may be with 95 % probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    /// What is said.
    pub share: f64,
    /// The error that is said.
    pub plus_minus: f64,
}

impl Bar {
    /// Whether the truth lies in it.
    pub fn holds(&self, truth: f64) -> bool {
        (self.share - truth).abs() <= self.plus_minus
    }
}

/// Parts of the report that are looked at: what it is called, where its rows are, what names a row, and which share is its own.
const SECTIONS: [(&str, &str, &str, &str); 5] = [
    ("functions", "/functions", "name", ""),
    ("lines", "/lines", "name", ""),
    ("loops", "/loops/loops", "name", ""),
    ("contexts", "/calls/contexts", "name", ""),
    ("objects", "/data/objects", "variable", "/loads"),
];

/// The row of a section that this name has. Several are added up, with their errors as if they were independent: a function whose
/// caller a burst did not see is a context of its own. None if the report has no such row.
pub fn bar(report: &Value, section: &str, name: &str) -> Option<Bar> {
    let (_, rows, key, part) = SECTIONS.iter().find(|(called, ..)| *called == section)?;
    let rows = report.pointer(rows)?.as_array()?;
    let its = rows.iter().filter(|row| row[key].as_str().is_some_and(|called| is_called(called, name)));
    let bars = its.filter_map(|row| {
        let row = row.pointer(part)?;
        let share = row.get("own_share").or_else(|| row.get("share"))?.as_f64()?;
        Some(Bar { share, plus_minus: row["plus_minus"].as_f64()? })
    });
    bars.reduce(|a, b| Bar { share: a.share + b.share, plus_minus: a.plus_minus.hypot(b.plus_minus) })
}

/// Loops and lines have their place behind the function.
fn is_called(called: &str, name: &str) -> bool {
    called.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(", "))
}

/// All functions of a report: module, name and share.
pub fn functions(report: &Value) -> Vec<(String, String, f64)> {
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let rows = report["functions"].as_array().into_iter().flatten();
    rows.filter_map(|row| Some((text(row, "module"), text(row, "name"), row["share"].as_f64()?))).collect()
}

/// Bursts of a report.
pub fn bursts(report: &Value) -> u64 {
    report.pointer("/totals/bursts").and_then(Value::as_u64).unwrap_or(0)
}

/// Rows that a report is asked for: more than any section has that matters.
const ROWS: &str = "500";

/// Runs a job under `sonde run` with default options and this seed; its report.
pub fn report(sonde: &Path, job: &Job, seed: u64, folder: &Path) -> Result<Value> {
    let profile = folder.join("profile");
    let words =
        ["run".into(), "--quiet".into(), "--seed".into(), OsString::from(seed.to_string()), "-o".into()];
    let mut command: Vec<OsString> = vec![sonde.into()];
    command.extend(words);
    command.extend([profile.clone().into(), "--".into()]);
    command.extend(job.command.iter().cloned());
    good(&Job { command, ..job.clone() })?;
    let words: [OsString; 6] =
        [sonde.into(), "report".into(), "--json".into(), "--top".into(), ROWS.into(), profile.into()];
    let told = good(&Job { command: words.to_vec(), stdin: Vec::new(), discard: false, ..job.clone() })?;
    serde_json::from_slice(&told.stdout).context("the report is no JSON")
}

/// Runs a job that must succeed.
pub fn good(job: &Job) -> Result<Outcome> {
    let outcome = process::run(job)?;
    if outcome.ending != Ending::Exit(0) {
        let told = String::from_utf8_lossy(&outcome.stderr).into_owned();
        bail!("{}: {}; {}", process::shell_line(job), outcome.ending, told.trim());
    }
    ensure!(!job.command.is_empty(), "nothing to run");
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rows_are_found_by_name_and_added_up() {
        let row = |name: &str, share: f64| json!({"name": name, "own_share": share, "share": 1.0, "plus_minus": 0.1});
        let report = json!({
            "functions": [{"name": "chase", "module": "m", "share": 0.6, "plus_minus": 0.05}],
            "loops": {"loops": [row("chase2, a.c:1", 0.9), row("chase, a.c:3-4", 0.5)]},
            "calls": {"contexts": [row("chase", 0.1), row("chase", 0.4)]},
            "data": {"objects": [{"variable": "nodes", "loads": {"share": 0.7, "plus_minus": 0.2}}, {"variable": null}]},
            "totals": {"bursts": 9},
        });
        let share = |section, name| bar(&report, section, name).map(|bar| bar.share);
        assert_eq!(share("functions", "chase"), Some(0.6));
        assert_eq!(share("loops", "chase"), Some(0.5));
        assert_eq!(share("contexts", "chase"), Some(0.5));
        assert_eq!(share("objects", "nodes"), Some(0.7));
        assert_eq!((share("functions", "compute"), share("lines", "chase")), (None, None));
        assert!(bar(&report, "functions", "chase").unwrap().holds(0.64));
        assert!(!bar(&report, "functions", "chase").unwrap().holds(0.66));
        assert_eq!((functions(&report).len(), bursts(&report)), (1, 9));
    }
}
