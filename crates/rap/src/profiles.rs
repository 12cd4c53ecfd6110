//! Several profiles at once (paper section 3.2): one tree for each kind of event, such as program counters and load values,
//! fed side by side and asked apart.

use crate::config::{Config, ConfigError};
use crate::key::Key;
use crate::snapshot::Snapshot;
use crate::tree::Tree;
use std::fmt;

/// Most profiles that can be kept at once: a wrong number from outside must not take all memory.
pub const MAX_PROFILES: usize = 4096;

/// A fixed number of trees with the same parameters, by number from 0.
///
/// ```
/// use sonde_rap::{Config, profiles::Profiles};
/// const CODE: usize = 0;
/// const VALUES: usize = 1;
/// let mut profiles = Profiles::<u64>::new(2, &Config::new())?;
/// profiles.add_points(0x40_1000, 1, CODE)?;
/// profiles.add_points(0, 20, VALUES)?;
/// assert_eq!(profiles.snapshot(VALUES)?.events, 20);
/// assert!(profiles.add_points(0, 1, 2).is_err());
/// # Ok::<(), sonde_rap::profiles::ProfilesError>(())
/// ```
pub struct Profiles<K: Key> {
    trees: Vec<Tree<K>>,
}

impl<K: Key> Profiles<K> {
    /// `number` empty profiles with the same parameters (`rap_init` in the paper).
    pub fn new(number: usize, config: &Config) -> Result<Self, ProfilesError> {
        if !(1..=MAX_PROFILES).contains(&number) {
            return Err(ProfilesError::Number(number));
        }
        let trees: Result<_, _> = (0..number).map(|_| Tree::new(config.clone())).collect();
        Ok(Profiles { trees: trees.map_err(ProfilesError::Config)? })
    }

    /// Counts `count` events with the same key in one of the profiles (`rap_add_points`).
    pub fn add_points(&mut self, key: K, count: u64, profile: usize) -> Result<(), ProfilesError> {
        self.tree(profile)?.add_weighted(key, count);
        Ok(())
    }

    /// The summary of one profile so far (`rap_finalize`); counting can go on.
    pub fn snapshot(&mut self, profile: usize) -> Result<Snapshot<K>, ProfilesError> {
        Ok(self.tree(profile)?.snapshot())
    }

    /// One of the trees, for everything else.
    pub fn tree(&mut self, profile: usize) -> Result<&mut Tree<K>, ProfilesError> {
        let number = self.trees.len();
        self.trees.get_mut(profile).ok_or(ProfilesError::NoSuchProfile { profile, number })
    }

    /// How many profiles there are.
    pub fn number(&self) -> usize {
        self.trees.len()
    }
}

/// Why a call on several profiles failed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ProfilesError {
    /// No profiles, or more than [`MAX_PROFILES`].
    Number(usize),
    /// The parameters are not valid.
    Config(ConfigError),
    /// The profile's number is not below the number of profiles.
    NoSuchProfile {
        /// The number that was given.
        profile: usize,
        /// How many there are.
        number: usize,
    },
}

impl fmt::Display for ProfilesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProfilesError::Number(got) => {
                write!(f, "1 to {MAX_PROFILES} profiles can be kept at once, not {got}")
            }
            ProfilesError::Config(error) => error.fmt(f),
            ProfilesError::NoSuchProfile { profile, number } => {
                write!(f, "there is no profile {profile}: they are numbered 0 to {}", number - 1)
            }
        }
    }
}

impl std::error::Error for ProfilesError {}
