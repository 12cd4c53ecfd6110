//! Why a profile could not be read, written or put together. Each message holds its cause, which is therefore not given as
//! a source again: whoever prints both would say it twice.

use crate::check::Invalid;
use sonde_summary::{Kind, Unit};
use std::io;
use std::path::PathBuf;

/// What went wrong with a profile.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The system refused.
    #[error("cannot {action} {}: {cause}", path.display())]
    System {
        /// What was tried.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why not.
        cause: io::Error,
    },
    /// Reading or writing failed where no file is known.
    #[error("cannot {action} the profile: {cause}")]
    Stream {
        /// What was tried.
        action: &'static str,
        /// Why not.
        cause: io::Error,
    },
    /// Something in a file.
    #[error("{}: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: Box<ProfileError>,
    },
    /// It is something else.
    #[error("this is not a profile of Sonde (it does not begin as one)")]
    NotAProfile,
    /// A later version of Sonde wrote it.
    #[error("version {found} of the format is not known, only versions up to {known}: use a newer Sonde")]
    TooNew {
        /// The file's version.
        found: u32,
        /// The last version that can be read.
        known: u32,
    },
    /// The end is missing.
    #[error("the file is cut off: it was not copied or written to its end; take the profile again")]
    Truncated,
    /// What was read is not what was written.
    #[error("the file is damaged ({what}): copy it or take the profile again")]
    Damaged {
        /// What does not fit.
        what: String,
    },
    /// More than was allowed.
    #[error("{what} exceeds the limit of {limit} {of}: raise the limit if you trust the file")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// How large it may be.
        limit: u64,
        /// What the limit counts.
        of: &'static str,
    },
    /// It is a profile that cannot be true.
    #[error("the profile cannot be true: {0}")]
    Invalid(Invalid),
    /// Weights of two profiles that have nothing in common.
    #[error(
        "one profile counts in {}, the other in {}, which can be neither compared nor added up: take both with the same policy",
        ours.word(), theirs.word()
    )]
    Units {
        /// Unit of the first.
        ours: Unit,
        /// Unit of the other.
        theirs: Unit,
    },
    /// Cache models of two profiles differ, so that their misses cannot be added up.
    #[error("one profile modelled the caches {ours}, the other {theirs}: take both with the same --cache")]
    CacheModels {
        /// Of the first.
        ours: String,
        /// Of the other.
        theirs: String,
    },
    /// Trees that cannot be put together.
    #[error("trees over {} cannot be put together: {cause}", kind.name())]
    Trees {
        /// What the trees are over.
        kind: Kind,
        /// Why not.
        cause: sonde_rap::MergeError,
    },
}

impl From<Invalid> for ProfileError {
    fn from(invalid: Invalid) -> ProfileError {
        ProfileError::Invalid(invalid)
    }
}

impl ProfileError {
    pub(crate) fn damaged(what: impl Into<String>) -> ProfileError {
        ProfileError::Damaged { what: what.into() }
    }
}
