//! `sonde lab`: the papers' tables on programs and traces of one's own, each beside the paper's figures.

mod bursts;
mod checks;
mod layout;
mod live;
mod loops;
mod ranges;
mod source;
mod streams;
mod table;
mod values;

use anyhow::Result;
use clap::Subcommand;

/// The papers' experiments on your own programs: exhaustive truth against each estimate.
///
/// Each experiment runs the program once in exhaustive mode (or reads a trace of one), and compares estimates with the
/// truth of that very run; only `bursts`, `checks` and `values --live` run it several times.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Subcommand, Debug)]
enum Experiment {
    /// Range-adaptive trees against exact counts: nodes and errors (paper 1, figures 8 and 10)
    Ranges(source::Args),
    /// DAProf and frequent loop detection against exact loops (paper 5, sections 4 and 5)
    Loops(loops::LoopsArgs),
    /// Value slots and simple sampling against exact values (paper 2, section 5)
    Values(values::ValuesArgs),
    /// What checks cost, and what streams are seen, with fewer and fewer of them (paper 4, figures 6 and 8)
    Checks(checks::ChecksArgs),
    /// Hot data streams of bursts against those of the full trace (paper 4, figure 7)
    Streams(source::Args),
    /// Default bursts against the exhaustive run: what shares of functions and code lines have in common
    Bursts(source::Args),
}

/// Runs the experiment.
pub fn run(args: &Args) -> Result<()> {
    let (args, table) = match &args.experiment {
        Experiment::Ranges(args) => (args, ranges::table(args)?),
        Experiment::Loops(args) => (&args.source, loops::table(args)?),
        Experiment::Values(args) => (&args.source, values::table(args)?),
        Experiment::Checks(args) => (&args.source, checks::table(args)?),
        Experiment::Streams(args) => (args, streams::table(args)?),
        Experiment::Bursts(args) => (args, bursts::table(args)?),
    };
    table.print(args)
}
