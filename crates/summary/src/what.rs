//! Which kinds are kept.

use crate::error::SummaryError;
use crate::kind::Kind;
use sonde_event::Detail;

/// A set of kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct What {
    kinds: Vec<Kind>,
}

impl Default for What {
    /// What most questions need. The values of misses and code by data cost the most, for questions that are rarer.
    fn default() -> What {
        What::of(&[
            Kind::Code,
            Kind::LoadAddresses,
            Kind::StoreAddresses,
            Kind::LoadValues,
            Kind::ZeroLoads,
            Kind::Edges,
        ])
    }
}

impl What {
    /// Every kind.
    pub fn all() -> What {
        What::of(&Kind::ALL)
    }

    /// These kinds.
    pub fn of(kinds: &[Kind]) -> What {
        let mut kinds = kinds.to_vec();
        kinds.sort_unstable();
        kinds.dedup();
        What { kinds }
    }

    /// From names with commas between them; `all` and `default` are names too.
    pub fn parse(text: &str) -> Result<What, SummaryError> {
        let mut kinds = Vec::new();
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match name {
                "all" => kinds.extend(Kind::ALL),
                "default" => kinds.extend(What::default().kinds),
                _ => kinds.push(Kind::named(name).ok_or_else(|| SummaryError::UnknownKind(name.to_owned()))?),
            }
        }
        if kinds.is_empty() {
            return Err(SummaryError::UnknownKind(text.to_owned()));
        }
        Ok(What::of(&kinds))
    }

    /// The kinds in order.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// Whether a kind is among them.
    pub fn has(&self, kind: Kind) -> bool {
        self.kinds.contains(&kind)
    }

    /// Those for which a recording of this detail has what it takes, and those for which it has not.
    pub fn possible(&self, detail: Detail) -> (What, Vec<Kind>) {
        let (can, cannot) = self.kinds.iter().partition(|kind| kind.needs() <= detail);
        (What { kinds: can }, cannot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_make_a_set() {
        assert_eq!(What::parse("all").unwrap(), What::all());
        assert_eq!(What::parse("edges, code,code").unwrap().kinds(), [Kind::Code, Kind::Edges]);
        assert!(What::parse("default,narrow").unwrap().has(Kind::NarrowPcs));
        for text in ["", ",", "loads,everything"] {
            assert!(What::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_recording_of_blocks_has_code_and_edges() {
        let (can, cannot) = What::all().possible(Detail::Blocks);
        assert_eq!(can.kinds(), [Kind::Code, Kind::Edges]);
        assert_eq!(cannot.len(), Kind::ALL.len() - 2);
        assert!(!What::all().possible(Detail::Addresses).0.has(Kind::ZeroLoads));
    }
}
