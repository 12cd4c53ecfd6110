//! Paper 4, figure 7: what hot data streams of bursts have in common with those of the full trace.

use anyhow::Result;
use sonde_event::{Detail, Reader};
use sonde_streams::StreamsConfig;
use sonde_streams::bursts::{FIGURE_7, OverlapExperiment, OverlapRow};

use super::source::Args;
use super::table::{Table, percent};

/// The table.
pub fn table(args: &Args) -> Result<Table> {
    let mut experiment = OverlapExperiment::new(StreamsConfig::default(), &FIGURE_7)?;
    let reader: &mut dyn Reader = &mut experiment;
    let fed = args.feed(Detail::Addresses, reader)?;
    let (full, rows) = experiment.finish();
    let row = |row: &OverlapRow| {
        vec![
            format!("{}:{}", row.setting.check, row.setting.instr),
            percent(row.setting.rate()),
            percent(row.recorded),
            row.bursts.to_string(),
            row.profile.streams.len().to_string(),
            percent(row.overlap),
        ]
    };
    let rows: Vec<Vec<String>> = rows.iter().map(row).collect();
    Ok(Table {
        title: format!("hot data streams of bursts against the full trace: {}", fed.name),
        paper: vec!["figure 7; at equal rates longer bursts overlap more".into()],
        columns: vec!["nCheck0:nInstr0", "rate %", "recorded %", "bursts", "streams", "overlap %"],
        rows,
        layout: None,
        notes: vec![
            format!(
                "the full trace: {} references, {} streams kept, covering {} %",
                full.references,
                full.streams.len(),
                percent(full.coverage())
            ),
            "a burst of one check seldom holds the ten references that make a stream".into(),
        ],
    })
}
