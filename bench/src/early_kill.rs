//! Sonde killed at every moment of its start: what stays behind, in every mode.

use anyhow::Result;
use clap::Args;
use sonde_harness::early_end::{Trials, Way, ways};
use sonde_harness::random::Random;
use sonde_harness::support::Sonde;

use crate::common::Places;

/// Options of `sonde-bench early-kill`.
#[derive(Args, Debug)]
pub struct EarlyKill {
    /// How many runs in each mode
    #[arg(long, default_value_t = 1000)]
    runs: u64,
    /// Only modes with this in their name
    #[arg(long, default_value = "")]
    mode: String,
    /// Chooses the moments where there are more of them than runs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    places: Places,
}

impl EarlyKill {
    /// Runs it all; true when nothing stayed behind and every program that had begun came to its end.
    pub fn run(&self) -> Result<bool> {
        let sonde = self.places.sonde()?;
        sonde.refused().iter().for_each(|refused| println!("{refused}"));
        let mut good = true;
        for way in ways(&sonde).into_iter().filter(|way| way.name.contains(&self.mode)) {
            good &= self.kill_in(&sonde, way)?;
        }
        Ok(good)
    }

    /// The moments of the start one by one, then random ones.
    fn kill_in(&self, sonde: &Sonde, way: Way) -> Result<bool> {
        let (name, folder) = (way.name, tempfile::tempdir()?);
        let mut trials = Trials::new(sonde, way, folder.path())?;
        let all = trials.kill_at(u64::MAX)?.unwrap_or(0).max(1);
        let mut random = Random::named(self.seed, name);
        for run in 0..self.runs {
            trials.kill_at(if run < all { run } else { random.below(all) })?;
        }
        let wrong = trials.wrong();
        println!("{name}: {} of {} wrong, at {all} moments", wrong.len(), self.runs);
        wrong.iter().for_each(|line| println!("  {line}"));
        Ok(wrong.is_empty())
    }
}
