//! A tree of any of the key types, chosen at run time: C has no generics.

use crate::status::{Failure, Status};
use crate::types::*;
use sonde_rap::{Config, HotRange, Key, Snapshot, Tree};

/// One tree of the seven key types.
pub enum AnyTree {
    /// `SONDE_RAP_KEY_U32`
    U32(Tree<u32>),
    /// `SONDE_RAP_KEY_U64`
    U64(Tree<u64>),
    /// `SONDE_RAP_KEY_U128`
    U128(Tree<u128>),
    /// `SONDE_RAP_KEY_U32X2`
    U32x2(Tree<[u32; 2]>),
    /// `SONDE_RAP_KEY_U64X2`
    U64x2(Tree<[u64; 2]>),
    /// `SONDE_RAP_KEY_U32X3`
    U32x3(Tree<[u32; 3]>),
    /// `SONDE_RAP_KEY_U64X3`
    U64x3(Tree<[u64; 3]>),
}

/// Runs the same expression on whichever tree there is.
macro_rules! each {
    ($any:expr, $tree:ident => $body:expr) => {
        match $any {
            AnyTree::U32($tree) => $body,
            AnyTree::U64($tree) => $body,
            AnyTree::U128($tree) => $body,
            AnyTree::U32x2($tree) => $body,
            AnyTree::U64x2($tree) => $body,
            AnyTree::U32x3($tree) => $body,
            AnyTree::U64x3($tree) => $body,
        }
    };
}

/// Makes the tree of a key type from an expression that says how.
macro_rules! build {
    ($key_type:expr, $make:expr) => {
        match $key_type {
            SONDE_RAP_KEY_U32 => AnyTree::U32($make),
            SONDE_RAP_KEY_U64 => AnyTree::U64($make),
            SONDE_RAP_KEY_U128 => AnyTree::U128($make),
            SONDE_RAP_KEY_U32X2 => AnyTree::U32x2($make),
            SONDE_RAP_KEY_U64X2 => AnyTree::U64x2($make),
            SONDE_RAP_KEY_U32X3 => AnyTree::U32x3($make),
            SONDE_RAP_KEY_U64X3 => AnyTree::U64x3($make),
            other => {
                let message = format!("key type {other} does not exist: use one of SONDE_RAP_KEY_*");
                return Err(Failure::new(Status::BadConfig, message));
            }
        }
    };
}

/// A key type that can be told to C and back.
pub trait CKey: Key {
    /// From the parts; fails when a part does not fit.
    fn from_parts(key: &RapKey) -> Result<Self, Failure>;
    /// To the parts; those not used are 0.
    fn to_parts(self) -> RapKey;
}

fn narrow<T: TryFrom<u64>>(part: u64) -> Result<T, Failure> {
    T::try_from(part)
        .map_err(|_| Failure::new(Status::WrongType, format!("{part:#x} does not fit into 32 bits")))
}

macro_rules! scalar_key {
    ($type:ty) => {
        impl CKey for $type {
            fn from_parts(key: &RapKey) -> Result<Self, Failure> {
                narrow(key.part[0])
            }
            fn to_parts(self) -> RapKey {
                RapKey { part: [u64::from(self), 0, 0] }
            }
        }
    };
}
scalar_key!(u32);
scalar_key!(u64);

impl CKey for u128 {
    fn from_parts(key: &RapKey) -> Result<Self, Failure> {
        Ok(u128::from(key.part[1]) << 64 | u128::from(key.part[0]))
    }
    fn to_parts(self) -> RapKey {
        RapKey { part: [self as u64, (self >> 64) as u64, 0] }
    }
}

macro_rules! tuple_key {
    ($type:ty, $dims:literal) => {
        impl CKey for [$type; $dims] {
            fn from_parts(key: &RapKey) -> Result<Self, Failure> {
                let mut point = [0; $dims];
                for (coordinate, &part) in point.iter_mut().zip(&key.part) {
                    *coordinate = narrow(part)?;
                }
                Ok(point)
            }
            fn to_parts(self) -> RapKey {
                let mut key = RapKey::default();
                for (part, coordinate) in key.part.iter_mut().zip(self) {
                    *part = u64::from(coordinate);
                }
                key
            }
        }
    };
}
tuple_key!(u32, 2);
tuple_key!(u64, 2);
tuple_key!(u32, 3);
tuple_key!(u64, 3);

impl AnyTree {
    /// An empty tree.
    pub fn new(key_type: u32, config: Config) -> Result<Self, Failure> {
        let bad = |error| Failure::new(Status::BadConfig, error);
        Ok(build!(key_type, Tree::new(config).map_err(bad)?))
    }

    /// A tree from the bytes of [`AnyTree::to_bytes`].
    pub fn from_bytes(key_type: u32, bytes: &[u8]) -> Result<Self, Failure> {
        Ok(build!(key_type, Tree::from_snapshot(snapshot_of(bytes)?).map_err(bad_data)?))
    }

    /// Adds a key with a weight.
    pub fn add(&mut self, key: &RapKey, weight: u64) -> Result<(), Failure> {
        each!(self, tree => {
            room_for(weight, tree.events())?;
            tree.add_weighted(CKey::from_parts(key)?, weight);
        });
        Ok(())
    }

    /// The one-dimensional fast path: numbers of 64 bits, for trees of u64 keys.
    pub fn add_slice_u64(&mut self, keys: &[u64]) -> Result<(), Failure> {
        match self {
            AnyTree::U64(tree) => {
                room_for(keys.len() as u64, tree.events())?;
                tree.add_slice(keys);
                Ok(())
            }
            _ => Err(Failure::new(Status::WrongType, "the tree's key type is not SONDE_RAP_KEY_U64")),
        }
    }

    /// The one-dimensional fast path: numbers of 32 bits, for trees of u32 keys.
    pub fn add_slice_u32(&mut self, keys: &[u32]) -> Result<(), Failure> {
        match self {
            AnyTree::U32(tree) => {
                room_for(keys.len() as u64, tree.events())?;
                tree.add_slice(keys);
                Ok(())
            }
            _ => Err(Failure::new(Status::WrongType, "the tree's key type is not SONDE_RAP_KEY_U32")),
        }
    }

    /// Whether keys are single numbers of up to 64 bits.
    pub fn takes_numbers(&self) -> bool {
        matches!(self, AnyTree::U32(_) | AnyTree::U64(_))
    }

    /// Flushes buffered events into the tree.
    pub fn finish(&mut self) {
        each!(self, tree => tree.finish());
    }

    /// Where the tree stands.
    pub fn info(&self) -> RapInfo {
        each!(self, tree => RapInfo {
            events: tree.events(),
            nodes: tree.nodes() as u64,
            nodes_max: tree.nodes_max() as u64,
            memory_bytes: tree.memory_bytes() as u64,
            eps_effective: tree.eps_effective(),
        })
    }

    /// The hot ranges at a threshold, in preorder.
    pub fn hot(&mut self, threshold: f64) -> Vec<RapHotRange> {
        each!(self, tree => tree.snapshot().hot(threshold).iter().map(to_c).collect())
    }

    /// Lower and upper bound of the weight of a box.
    pub fn bounds(&mut self, lo: &RapKey, hi: &RapKey) -> Result<(u64, u64), Failure> {
        each!(self, tree => {
            let bounds = tree.snapshot().bounds(CKey::from_parts(lo)?, CKey::from_parts(hi)?);
            Ok((bounds.lower, bounds.upper))
        })
    }

    /// The tree as bytes, with version and checksum.
    pub fn to_bytes(&mut self) -> Vec<u8> {
        each!(self, tree => tree.snapshot().to_bytes())
    }

    /// Adds a tree of the same key type, given as bytes.
    pub fn merge(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        each!(self, tree => tree.merge(&snapshot_of(bytes)?).map_err(bad_data))
    }

    /// The ASCII dump.
    pub fn dump(&mut self) -> Result<Vec<u8>, Failure> {
        let mut text = Vec::new();
        each!(self, tree => tree.snapshot().dump(&mut text))
            .map_err(|error| Failure::new(Status::Io, error))?;
        Ok(text)
    }
}

/// Counts are 64 bits; what does not fit is refused rather than cut off.
fn room_for(weight: u64, events: u64) -> Result<(), Failure> {
    let full =
        || Failure::new(Status::BadArgument, format!("{events} and {weight} events are more than 2^64 - 1"));
    events.checked_add(weight).map(drop).ok_or_else(full)
}

fn snapshot_of<K: Key>(bytes: &[u8]) -> Result<Snapshot<K>, Failure> {
    Snapshot::from_bytes(bytes).map_err(bad_data)
}

fn bad_data(error: impl std::fmt::Display) -> Failure {
    Failure::new(Status::BadData, error)
}

fn to_c<K: CKey>(hot: &HotRange<K>) -> RapHotRange {
    RapHotRange {
        lo: hot.range.lo.to_parts(),
        hi: hot.range.hi.to_parts(),
        own: hot.own,
        total: hot.total,
        lower: hot.lower,
        upper: hot.upper,
        depth: hot.depth as u32,
        parent: hot.parent.map_or(-1, |index| index as i64),
    }
}
