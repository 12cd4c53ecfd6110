//! Passes that are counted where the log has them, without a list of their own: where events count as they are, most are.

use crate::columns::Around;
use crate::one_by_one::push_edge;
use crate::summaries::Summaries;
use crate::ways::Look;
use sonde_event::{Passes, PathSize};

impl Summaries {
    /// Whether the references of all passes can be computed together. Exits that were never taken before are looked at.
    pub(crate) fn are_plain(&mut self, passes: &Passes<'_>) -> bool {
        let mut with_next = false;
        for taken in passes.taken() {
            let look = match self.ways.look(taken.exit) {
                Look::Unknown if self.code.has_room_for(taken.exit) => {
                    let Some(run) = passes.run(taken.first as usize) else { return false };
                    self.ways.is_plain(taken.exit, &run, &mut self.code, &mut self.places);
                    self.ways.look(taken.exit)
                }
                known => known,
            };
            match look {
                Look::Together => {}
                Look::WithNext => with_next = true,
                Look::Unknown | Look::Odd => return false,
            }
        }
        // Only of the last one it can be unknown where it led.
        !with_next || passes.list().len().checked_sub(1).and_then(|last| passes.next_pc(last)).is_some()
    }

    /// Counts passes all of which are plain, each as it is.
    pub(crate) fn count_logged(&mut self, passes: &Passes<'_>) {
        self.place_pending();
        for taken in passes.taken() {
            let unknown = passes.size(taken.exit).unknown_loads;
            self.missing.without_value += u64::from(taken.times) * u64::from(unknown);
        }
        let mut batch = std::mem::take(&mut self.batch);
        if self.wants.edges {
            self.add_edges(passes, &mut batch);
        }
        let mut around = Around {
            ways: &self.ways,
            code: &mut self.code,
            places: &mut self.places,
            pending: &mut self.pending,
            missing: &mut self.missing,
        };
        let next_pc = |index| passes.next_pc(index).unwrap_or(0);
        self.columns.fill_logged(&mut batch, passes, &mut around, next_pc);
        self.send(&mut batch);
        self.batch = batch;
    }

    /// Branches of which only the log tells where they led.
    fn add_edges(&mut self, passes: &Passes<'_>, batch: &mut crate::batch::Batch) {
        let is_indirect = |exit| passes.size(exit).flags & PathSize::INDIRECT != 0;
        if !passes.taken().iter().any(|taken| is_indirect(taken.exit)) {
            return;
        }
        let mut edges = Vec::new();
        for (index, pass) in passes.list().iter().enumerate().filter(|(_, pass)| is_indirect(pass.exit)) {
            let Some(run) = passes.run(index) else { continue };
            debug_assert_eq!(run.exit(), Some(pass.exit));
            let delta = self.code.delta(&run, &mut self.places);
            push_edge(&run, delta, &mut self.places, &mut edges, &mut self.missing);
        }
        self.columns.add_edges(batch, &edges);
    }
}
