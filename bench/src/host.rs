//! What kind of machine this is, and when: every committed result says so.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

/// Date, processor, cores, kernel and the command line, as the head of a results page.
pub fn heading(title: &str) -> String {
    let command: Vec<String> = std::env::args().skip(1).collect();
    format!(
        "# {title}\n\n{}, {}, {} cores, Linux {}. Command: `sonde-bench {}`\n",
        date(),
        processor(),
        cores(),
        kernel(),
        command.join(" ")
    )
}

/// Prints a page of results and writes it to a file; `-` is for printing only.
pub fn keep(path: &Path, page: &str) -> Result<()> {
    println!("{page}");
    if path.as_os_str() == "-" {
        return Ok(());
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    folder
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(path, page))
        .with_context(|| format!("cannot write {}", path.display()))
}

fn date() -> String {
    let output = Command::new("date").args(["-u", "+%Y-%m-%d"]).output();
    output.map_or_else(|_| "unknown date".into(), |o| String::from_utf8_lossy(&o.stdout).trim().into())
}

fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|l| l.strip_prefix("model name")).and_then(|l| l.split_once(':'));
    let name = model.map_or("unknown processor", |(_, name)| name.trim());
    let guest = if text.contains(" hypervisor") { " (virtual machine)" } else { "" };
    format!("{name}{guest}")
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn kernel() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    // Only the version: the rest names somebody's build.
    release.split('-').next().unwrap_or_default().trim().into()
}
