//! Where the reader's batches go: into the tree, and into exact counts if they were asked for.

use anyhow::{Result, bail};
use sonde_numbers::Sink;
use sonde_rap::exact::ExactCounts;
use sonde_rap::{Config, ConfigError, Tree};

use super::keys::CliKey;

/// A sink that counts.
pub struct Feed<K: CliKey> {
    tree: Tree<K>,
    exact: Option<ExactCounts<K>>,
    /// `None` once the weights add up to more than can be counted.
    events: Option<u64>,
}

impl<K: CliKey> Feed<K> {
    /// Nothing counted yet.
    pub fn new(config: Config, exact: bool) -> Result<Self, ConfigError> {
        Ok(Feed { tree: Tree::new(config)?, exact: exact.then(ExactCounts::new), events: Some(0) })
    }

    /// What was counted, unless it was more than can be counted.
    pub fn finish(mut self) -> Result<(Tree<K>, Option<ExactCounts<K>>)> {
        if self.events.is_none() {
            bail!("the weights add up to more than 2^64 - 1 events: scale them down");
        }
        self.tree.finish();
        Ok((self.tree, self.exact))
    }
}

impl<K: CliKey> Sink<K> for Feed<K> {
    fn keys(&mut self, keys: &[K]) {
        self.events = self.events.and_then(|events| events.checked_add(keys.len() as u64));
        if self.events.is_some() {
            self.tree.add_slice(keys);
            if let Some(exact) = &mut self.exact {
                exact.add_slice(keys);
            }
        }
    }

    fn weighted(&mut self, keys: &[K], weights: &[u64]) {
        for (&key, &weight) in keys.iter().zip(weights) {
            self.events = self.events.and_then(|events| events.checked_add(weight));
            if self.events.is_some() {
                self.tree.add_weighted(key, weight);
                if let Some(exact) = &mut self.exact {
                    exact.add_weighted(key, weight);
                }
            }
        }
    }
}
