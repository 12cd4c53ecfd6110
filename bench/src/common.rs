//! Options that all commands share: where sonde is, where inputs go.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use sonde_harness::support::Sonde;

/// Where things are.
#[derive(Args, Clone, Debug)]
pub struct Places {
    /// The sonde to look at; by default the one beside this program
    #[arg(long, value_name = "FILE")]
    pub sonde: Option<PathBuf>,
    /// Folder for the inputs of the workloads, kept for the next time
    #[arg(long, value_name = "DIR", default_value = "target/workloads")]
    pub inputs: PathBuf,
    /// Seconds after which a run is killed
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    pub limit: u64,
}

impl Places {
    /// Asks the sonde what it can do; it must have `run`.
    pub fn sonde(&self) -> Result<Sonde> {
        let beside = || Ok::<_, anyhow::Error>(std::env::current_exe()?.with_file_name("sonde"));
        let path = self.sonde.clone().map_or_else(beside, Ok)?;
        let path = path
            .canonicalize()
            .with_context(|| format!("no sonde at {}; build it or use --sonde", path.display()))?;
        let sonde = Sonde::probe(&path);
        ensure!(sonde.runs(), "{} has no command `run`", path.display());
        Ok(sonde)
    }

    /// When to kill a run.
    pub fn limit(&self) -> Duration {
        Duration::from_secs(self.limit)
    }
}
