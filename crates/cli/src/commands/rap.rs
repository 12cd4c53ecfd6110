//! `sonde rap`: summarizes any stream of numbers with a range-adaptive tree (Mysore et al. 2008).

mod args;
mod feed;
mod input;
mod keys;
mod layout;
mod progress;
mod report;
mod show;
mod summary;

use std::io::{self, BufWriter, Write};

use anyhow::{Context, Result};
use sonde_numbers::OnBad;

pub use args::Args;

use crate::outcome::CannotWrite;
use feed::Feed;
use input::Inputs;
use keys::CliKey;
use layout::{Layout, Width};
use progress::Progress;
use summary::Counted;

/// Reads, counts and reports.
pub fn run(args: &Args) -> Result<()> {
    args.config().validate().context("bad options")?;
    let inputs = Inputs::open(&args.files)?;
    let layout = layout::decide(args, &inputs.sample)?;
    match (layout.width, layout.dimensions) {
        (Width::W32, 2) => count::<[u32; 2]>(args, inputs, &layout),
        (Width::W32, 3) => count::<[u32; 3]>(args, inputs, &layout),
        (Width::W32, _) => count::<u32>(args, inputs, &layout),
        (Width::W64, 2) => count::<[u64; 2]>(args, inputs, &layout),
        (Width::W64, 3) => count::<[u64; 3]>(args, inputs, &layout),
        (Width::W64, _) => count::<u64>(args, inputs, &layout),
        (Width::W128, _) => count::<u128>(args, inputs, &layout),
    }
}

fn count<K: CliKey>(args: &Args, inputs: Inputs, layout: &Layout) -> Result<()> {
    let progress = Progress::new(inputs.total_bytes, args.quiet);
    let mut feed = Feed::<K>::new(args.config(), args.exact).context("bad options")?;
    let on_bad = if args.skip_bad { OnBad::Skip } else { OnBad::Stop };
    let counts = inputs.read(layout, on_bad, &progress, &mut feed)?;
    drop(progress);
    let (mut tree, exact) = feed.finish()?;
    let snapshot = tree.snapshot();
    let counted = Counted {
        tree: &tree,
        snapshot: &snapshot,
        exact: exact.map(|exact| exact.sorted()),
        counts,
        notation: layout.text.notation,
        threshold: args.hot,
    };
    write_result(args, &counted).map_err(|error| CannotWrite(error).into())
}

fn write_result<K: CliKey>(args: &Args, counted: &Counted<'_, K>) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    if args.dump {
        counted.snapshot.dump(&mut out)?;
    } else if args.json {
        serde_json::to_writer_pretty(&mut out, &counted.summary()).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        report::write(&mut out, &counted.summary())?;
    }
    out.flush()
}
