//! `sonde doctor`: what this machine allows, and what to do about the rest.

use std::io::{self, Write};

use anyhow::Result;
use sonde_launch::examine::{self, Finding, State};

use crate::outcome::{CannotWrite, NotUsable};

/// Show what this machine allows: triggers, ways into programs, processor; and what to do about the rest
///
/// Everything is tried, not looked up. Status 1 if `sonde run` cannot work here.
#[derive(clap::Args, Debug)]
pub struct Args {}

/// Examines and tells.
pub fn run(_: &Args) -> Result<()> {
    let findings = examine::examine();
    let mut out = io::stdout().lock();
    findings.iter().try_for_each(|finding| write(&mut out, finding)).map_err(CannotWrite)?;
    match findings.iter().filter(|f| f.state == State::Missing).count() {
        0 => Ok(()),
        missing => Err(NotUsable(missing).into()),
    }
}

fn write(out: &mut impl Write, finding: &Finding) -> io::Result<()> {
    let state = match finding.state {
        State::Good => "ok",
        State::Limited => "limited",
        State::Missing => "missing",
    };
    writeln!(out, "{state:8} {:14} {}", finding.subject, finding.detail)?;
    match &finding.advice {
        Some(advice) => writeln!(out, "         {:14} -> {advice}", ""),
        None => Ok(()),
    }
}
