//! Which checks are left out: the bars of figures 6 and 8.

use crate::loops::Loop;
use crate::module::Module;
use std::str::FromStr;

/// Which entry checks are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Entries {
    /// All.
    #[default]
    All,
    /// All but those of functions that call nothing (EL).
    NoLeaves,
    /// Those of the set C (EC).
    Cycles,
    /// None (EN): a limit, not for use; a recursion may run without a check.
    None,
}

/// A way of leaving checks out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scheme {
    /// Which entry checks are kept.
    pub entries: Entries,
    /// Back-edges of loops with at most so many references, and no calls, keep none; none: all keep theirs.
    pub boring: Option<u32>,
}

impl Scheme {
    /// The bars of figure 6, by name.
    pub const ALL: [(&str, Scheme); 8] = {
        const fn scheme(entries: Entries, boring: Option<u32>) -> Scheme {
            Scheme { entries, boring }
        }
        [
            ("orig", scheme(Entries::All, None)),
            ("EL", scheme(Entries::NoLeaves, None)),
            ("EC", scheme(Entries::Cycles, None)),
            ("EN", scheme(Entries::None, None)),
            ("L4", scheme(Entries::All, Some(4))),
            ("L10", scheme(Entries::All, Some(10))),
            ("LN", scheme(Entries::All, Some(u32::MAX))),
            ("EC+L4", scheme(Entries::Cycles, Some(4))),
        ]
    };

    /// Which functions of a module keep their entry check.
    pub(crate) fn entries_of(self, module: &Module) -> Vec<bool> {
        match self.entries {
            Entries::All => vec![true; module.starts.len()],
            Entries::NoLeaves => (0..module.starts.len()).map(|f| !module.graph.is_leaf(f)).collect(),
            Entries::Cycles => module.graph.checked(),
            Entries::None => vec![false; module.starts.len()],
        }
    }

    /// Whether a backward branch keeps its check. What closes no cycle needs none, and has none in the paper; `orig` counts
    /// it all the same, to be what a check at every backward branch costs.
    pub(crate) fn keeps(self, one: &Loop) -> bool {
        match self.boring {
            None if self.entries == Entries::All => true,
            _ if !one.cycle => false,
            None => true,
            // The limit: no back-edge at all.
            Some(u32::MAX) => false,
            Some(k) => !one.is_boring(k),
        }
    }

    /// Its name, for those of figure 6.
    pub fn name(self) -> Option<&'static str> {
        Scheme::ALL.into_iter().find(|(_, scheme)| *scheme == self).map(|(name, _)| name)
    }
}

impl FromStr for Scheme {
    type Err = String;

    fn from_str(text: &str) -> Result<Scheme, String> {
        let found = Scheme::ALL.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        found.map(|(_, scheme)| scheme).ok_or_else(|| {
            let names: Vec<&str> = Scheme::ALL.iter().map(|(name, _)| *name).collect();
            format!("{text:?} is no scheme of checks; there are {}", names.join(", "))
        })
    }
}

/// The branches of a module that keep no check, by their place in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// File offsets of calls, backward tail calls and backward branches without a check, in order.
    pub unchecked: Vec<u64>,
    /// Functions.
    pub functions: usize,
    /// Those of them that keep their entry check.
    pub checked_functions: usize,
    /// Loops.
    pub loops: usize,
    /// Those of them that keep their check.
    pub checked_loops: usize,
}

impl Plan {
    /// What a scheme means for a module.
    pub fn new(module: &Module, scheme: Scheme) -> Plan {
        let checked = scheme.entries_of(module);
        let keeps = |l: &&Loop| scheme.keeps(l);
        let calls = module.calls.iter().filter(|(_, callee)| !checked[*callee]).map(|(at, _)| *at);
        let all = scheme.entries == Entries::None;
        let indirect = module.indirect.iter().copied().filter(|_| all);
        let loops = module.loops.iter().filter(|l| !keeps(l)).map(|l| l.branch);
        let mut unchecked: Vec<u64> =
            calls.chain(indirect).chain(loops).filter_map(|at| module.file_offset(at)).collect();
        unchecked.sort_unstable();
        unchecked.dedup();
        Plan {
            unchecked,
            functions: module.starts.len(),
            checked_functions: checked.iter().filter(|c| **c).count(),
            loops: module.loops.len(),
            checked_loops: module.loops.iter().filter(keeps).count(),
        }
    }
}
