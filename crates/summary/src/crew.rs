//! Who grows the trees: the thread that reads the stream, or others beside it.
//!
//! Every tree belongs to one thread and gets every batch in the same order, so the result does not depend on how many
//! threads there are or how fast they run. Queues are bounded: a reader that is faster than the trees waits.

use crate::bank::{Bank, Grown};
use crate::batch::Batch;
use crate::config::{Config, Shares, UNDER_WAY};
use crate::error::SummaryError;
use crate::kind::Kind;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

/// What the reading of the stream costs with the keys and rows of all kinds, in the terms of [`cost`].
const READING: u32 = 17;

/// What a tree costs per reference, roughly, in nanoseconds.
fn cost(kind: Kind) -> u32 {
    match kind {
        // With the cache model.
        Kind::Dl1MissValues => 9,
        Kind::CodeData | Kind::LoadAddresses => 2,
        _ => 1,
    }
}

/// A thread with its trees.
struct Worker {
    queue: SyncSender<Arc<Batch>>,
    thread: JoinHandle<Grown>,
}

/// All that grow trees.
pub(crate) struct Crew {
    own: Bank,
    workers: Vec<Worker>,
    /// Batches that everybody is done with, to be filled again: there are never more of them than were under way at once.
    spare: Receiver<Batch>,
    done: SyncSender<Batch>,
}

impl Crew {
    /// With as many threads as were asked for.
    pub fn new(config: &Config, shares: &Shares) -> Result<Crew, SummaryError> {
        let mut hands = shared_out(config.what.kinds(), config.consumers.max(1)).into_iter();
        let own = Bank::new(&hands.next().unwrap_or_default(), config, shares)?;
        let (done, spare) = sync_channel(shares.queue + UNDER_WAY);
        let mut workers = Vec::new();
        for kinds in hands.filter(|kinds| !kinds.is_empty()) {
            let bank = Bank::new(&kinds, config, shares)?;
            workers.push(Worker::start(bank, shares.queue, done.clone())?);
        }
        Ok(Crew { own, workers, spare, done })
    }

    /// One that has nothing to do.
    pub fn idle() -> Crew {
        let (done, spare) = sync_channel(0);
        Crew { own: Bank::default(), workers: Vec::new(), spare, done }
    }

    /// Counts a batch, and empties it.
    pub fn take(&mut self, batch: &mut Batch) {
        if self.workers.is_empty() {
            self.own.take(batch);
            return batch.clear();
        }
        let next = self.spare.try_recv().unwrap_or_default();
        let shared = Arc::new(std::mem::replace(batch, next));
        for worker in &self.workers {
            // A worker that is gone has panicked, which `finish` passes on.
            let _ = worker.queue.send(Arc::clone(&shared));
        }
        self.own.take(&shared);
        give_back(shared, &self.done);
    }

    /// Bytes of the trees in this thread; those of others are known at the end.
    pub fn memory_bytes(&self) -> usize {
        self.own.memory_bytes()
    }

    /// Waits for all.
    pub fn finish(self) -> Grown {
        let mut grown = self.own.finish();
        for worker in self.workers {
            drop(worker.queue);
            match worker.thread.join() {
                Ok(others) => grown.join(others),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        grown
    }
}

/// Whoever is the last to be done with a batch gives it back.
fn give_back(batch: Arc<Batch>, done: &SyncSender<Batch>) {
    if let Some(mut batch) = Arc::into_inner(batch) {
        batch.clear();
        // There is room, unless nobody wants it any more.
        let _ = done.try_send(batch);
    }
}

impl Worker {
    fn start(mut bank: Bank, queue: usize, done: SyncSender<Batch>) -> Result<Worker, SummaryError> {
        let (queue, batches) = sync_channel::<Arc<Batch>>(queue);
        let work = move || {
            for batch in batches {
                bank.take(&batch);
                give_back(batch, &done);
            }
            bank.finish()
        };
        let thread = Builder::new().name("sonde-summary".into()).spawn(work);
        Ok(Worker { queue, thread: thread.map_err(|error| SummaryError::Thread(error.to_string()))? })
    }
}

/// The kinds of each thread, the first being the one that reads: the dearest first, each to who has least to do.
fn shared_out(kinds: &[Kind], threads: usize) -> Vec<Vec<Kind>> {
    let mut hands: Vec<(u32, Vec<Kind>)> = vec![(0, Vec::new()); threads];
    hands[0].0 = READING;
    let mut kinds = kinds.to_vec();
    kinds.sort_by_key(|kind| std::cmp::Reverse(cost(*kind)));
    for kind in kinds {
        // Both share the cache.
        let with = |hand: &Vec<Kind>| kind == Kind::Dl2MissValues && hand.contains(&Kind::Dl1MissValues);
        let together = hands.iter().position(|hand| with(&hand.1));
        let least = (0..hands.len()).min_by_key(|&i| hands[i].0).unwrap_or(0);
        let hand = &mut hands[together.unwrap_or(least)];
        hand.0 += cost(kind);
        hand.1.push(kind);
    }
    hands.into_iter().map(|hand| hand.1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_one_owner_and_the_cache_is_shared() {
        for threads in 1..=12 {
            let hands = shared_out(&Kind::ALL, threads);
            let mut all: Vec<Kind> = hands.concat();
            all.sort_unstable();
            assert_eq!(all, Kind::ALL);
            let has = |hand: &&Vec<Kind>, kind| hand.contains(&kind);
            let first = hands.iter().find(|h| has(h, Kind::Dl1MissValues)).unwrap();
            assert!(has(&first, Kind::Dl2MissValues));
        }
    }
}
