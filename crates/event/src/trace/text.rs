//! The chunks that are text: what was recorded, how it ended, what was mapped.

use crate::maps::Mapping;
use serde::{Deserialize, Serialize};
use sonde_x64::plan::Detail;
use std::collections::BTreeMap;
use std::fmt::Write;

/// What was recorded and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Meta {
    /// Version of Sonde.
    pub sonde: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The file that was run.
    pub path: String,
    /// `blocks`, `addresses` or `values`: what the log contains, needed to read it.
    pub detail: String,
    /// When it was recorded: `bursts`, `always` or `counter`, with its settings.
    pub policy: String,
    /// What started bursts.
    pub trigger: String,
    /// How the probe got in.
    pub loader: String,
    /// Seconds since 1970 at the start.
    pub started: u64,
    /// Where it was recorded.
    pub machine: Machine,
}

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Model of the processor.
    pub processor: String,
    /// Processors.
    pub processors: u32,
    /// Kernel release.
    pub kernel: String,
}

impl Meta {
    /// The detail, if it is one that this version knows.
    pub fn detail(&self) -> Option<Detail> {
        [Detail::Blocks, Detail::Addresses, Detail::Values]
            .into_iter()
            .find(|detail| detail_name(*detail) == self.detail)
    }
}

/// The name of a detail in files and on the command line.
pub fn detail_name(detail: Detail) -> &'static str {
    match detail {
        Detail::Blocks => "blocks",
        Detail::Addresses => "addresses",
        Detail::Values => "values",
    }
}

/// How it ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct End {
    /// Exit status, if the program ended by itself.
    pub status: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// CPU time of the program in seconds.
    pub cpu_seconds: f64,
    /// Wall time in seconds.
    pub wall_seconds: f64,
    /// Time-stamp ticks in a second.
    pub ticks_per_second: f64,
    /// Bytes of log.
    pub log_bytes: u64,
    /// The probe's counters that are not 0, by name.
    pub counters: BTreeMap<String, u64>,
}

/// Mappings as text: the line of `/proc/PID/maps` without device and inode, the build-id in front.
pub fn write_mappings(mappings: &[Mapping]) -> String {
    let mut text = String::new();
    for m in mappings {
        let id: String = m.build_id.iter().map(|b| format!("{b:02x}")).collect();
        let id = if id.is_empty() { "-" } else { &id };
        // A name with a line break could not be read back.
        let name: String = m.name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        let _ = writeln!(text, "{id} {:x}-{:x} {} {:x} {name}", m.start, m.end, m.permissions, m.offset);
    }
    text
}

/// Reads them back; lines that make no sense are passed over.
pub fn read_mappings(text: &str) -> Vec<Mapping> {
    text.lines().filter_map(read_mapping).collect()
}

fn read_mapping(line: &str) -> Option<Mapping> {
    let (id, rest) = line.split_once(' ')?;
    let mut fields = rest.splitn(4, ' ');
    let (range, permissions, offset) = (fields.next()?, fields.next()?, fields.next()?);
    let name = fields.next()?;
    let mut mapping = Mapping::parse(&format!("{range} {permissions} {offset} - - {name}"))?;
    if id != "-" {
        mapping.build_id = hex(id)?;
    }
    Some(mapping)
}

fn hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_come_back() {
        let mapping = |name: &str, build_id: &[u8]| Mapping {
            start: 0x1000,
            end: 0x2000,
            offset: 0x30,
            permissions: "r-xp".into(),
            name: name.into(),
            build_id: build_id.into(),
        };
        let all = [mapping("/a file", &[1, 0xab]), mapping("", &[]), mapping("[heap]", &[])];
        assert_eq!(read_mappings(&write_mappings(&all)), all);
        let odd = read_mappings(&write_mappings(&[mapping("/a\nb", &[])]));
        assert_eq!(odd[0].name, "/a?b");
        assert_eq!(read_mappings("zz\n- 1-2\nabc 1-2 r 0 x\n"), []);
    }
}
