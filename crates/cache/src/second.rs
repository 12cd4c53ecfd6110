//! The second level, which sees what misses the first. Where that is not known, what it holds is known from two sides: the
//! lines that may have been sent to it, and those that surely were (the "may" and "must" of cache analysis; Ferdinand and
//! Wilhelm 1999).

use crate::config::Geometry;
use crate::recent::{Recent, Use};

/// Whether a line was looked for here at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The first level surely did not have it.
    Surely,
    /// The first level may have had it.
    Maybe,
}

/// The level.
pub struct Second {
    /// Lines that may have been sent, by when that was last.
    possible: Recent,
    /// Only where something was forgotten: else all that is possible is sure.
    sure: Option<Sure>,
    geometry: Geometry,
}

struct Sure {
    /// Lines that surely were sent, by when that was last.
    lines: Recent,
    /// Of each set, when a line of it was last sent that may not have been.
    doubts: Vec<u64>,
}

impl Second {
    /// An empty level.
    pub fn new(geometry: Geometry) -> Second {
        Second { possible: Recent::new(geometry), sure: None, geometry }
    }

    /// The number of the line that holds an address.
    pub fn line(&self, address: u64) -> u64 {
        self.possible.line(address)
    }

    /// What it holds is not known any more.
    pub fn forget(&mut self) {
        self.possible.forget();
        let geometry = self.geometry;
        let sure = self.sure.get_or_insert_with(|| Sure {
            lines: Recent::new(geometry),
            doubts: vec![0; geometry.sets() as usize],
        });
        sure.lines.forget();
    }

    /// Looks for a line, later than all before.
    pub fn look_for(&mut self, line: u64, now: u64, sent: Sent) -> Use {
        let Some(sure) = &mut self.sure else { return self.possible.touch(line, now) };
        let (last, _) = self.possible.times(line);
        let (surely, oldest) = sure.lines.times(line);
        let doubt = &mut sure.doubts[sure.lines.set(line).0];
        let verdict = if last.is_some() && last == surely {
            // It came here, and too few others may have come since to push it out.
            Use::Hit
        } else if surely.is_none() && oldest.is_some_and(|oldest| oldest > *doubt) {
            // If it ever came, as many as fill the set surely came since.
            Use::Miss
        } else {
            Use::Unknown
        };
        self.possible.touch(line, now);
        match sent {
            Sent::Surely => _ = sure.lines.touch(line, now),
            Sent::Maybe => *doubt = now,
        }
        verdict
    }

    /// Most bytes that such a level uses.
    pub fn bytes(geometry: Geometry) -> usize {
        2 * Recent::bytes(geometry) + geometry.sets() as usize * 8
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        let sure = |sure: &Sure| sure.lines.memory_bytes() + sure.doubts.capacity() * 8;
        self.possible.memory_bytes() + self.sure.as_ref().map_or(0, sure)
    }
}
