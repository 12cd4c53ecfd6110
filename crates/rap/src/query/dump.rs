//! The ASCII dump of section 3.2: every node on a line, for other programs and for eyes.

use super::outline::{held_above, outline};
use crate::key::Key;
use crate::range::Range;
use crate::snapshot::Snapshot;
use std::io::{self, Write};

impl<K: Key> Snapshot<K> {
    /// Writes the tree as text.
    ///
    /// A first line starts with `#` and gives the parameters as `name=value`; then each range is a line of five columns,
    /// indented by its depth: lowest and highest key in hexadecimal (coordinates joined by commas), its own count, its
    /// inclusive count, and the most that it can have in truth. Ranges without a count of their own stand where branches
    /// meet. The order is preorder: a range comes before those inside it.
    ///
    /// ```
    /// let mut tree = sonde_rap::textbook::TextbookTree::<u32>::new(sonde_rap::Config::new())?;
    /// tree.add_weighted(0x10, 3);
    /// tree.add_weighted(0x13, 1);
    /// let mut text = Vec::new();
    /// tree.snapshot().dump(&mut text).unwrap();
    /// assert_eq!(String::from_utf8(text).unwrap(), "\
    /// ## rap-dump version=1 dims=1 bits=32 branching=4 eps=0.01 eps_effective=0.01 events=4 nodes=2 nodes_max=2
    /// 0x00000010 0x00000013 0 4 4
    ///   0x00000010 0x00000010 3 3 3
    ///   0x00000013 0x00000013 1 1 1
    /// ");
    /// # Ok::<(), sonde_rap::ConfigError>(())
    /// ```
    pub fn dump(&self, out: &mut impl Write) -> io::Result<()> {
        let (dims, bits) = (K::DIMS, K::DIM_BITS);
        let Snapshot { config, events, eps_effective, nodes_max, nodes } = self;
        let (branching, eps, nodes) = (config.branching, config.eps, nodes.len());
        write!(out, "# rap-dump version=1 dims={dims} bits={bits} branching={branching} eps={eps}")?;
        writeln!(out, " eps_effective={eps_effective} events={events} nodes={nodes} nodes_max={nodes_max}")?;
        let entries = outline(self);
        let above = held_above(&entries);
        let mut depths: Vec<usize> = Vec::with_capacity(entries.len());
        for (entry, above) in entries.iter().zip(above) {
            let depth = entry.parent.map_or(0, |parent| depths[parent] + 1);
            depths.push(depth);
            let range = Range::<K>::aligned(entry.start, entry.free);
            let (lo, hi, upper) = (hex(range.lo), hex(range.hi), entry.total.saturating_add(above));
            writeln!(
                out,
                "{:indent$}{lo} {hi} {} {} {upper}",
                "",
                entry.own,
                entry.total,
                indent = depth * 2
            )?;
        }
        Ok(())
    }
}

/// A key in hexadecimal, all digits, coordinates joined by commas.
fn hex<K: Key>(key: K) -> String {
    let digits = K::DIM_BITS as usize / 4 + 2;
    let coordinates: Vec<String> =
        (0..K::DIMS).map(|dim| format!("{:#0digits$x}", key.coordinate(dim))).collect();
    coordinates.join(",")
}
