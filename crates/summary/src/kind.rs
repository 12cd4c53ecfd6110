//! The kinds of range-adaptive trees (Mysore et al. 2008, sections 5.1 to 5.5).

use sonde_event::Detail;

/// What a tree is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Blocks executed, by pc, weighted by instructions (5.1).
    Code,
    /// Addresses loaded from.
    LoadAddresses,
    /// Addresses stored to.
    StoreAddresses,
    /// Values loaded (5.2).
    LoadValues,
    /// Values of loads that miss the first-level cache of the model (5.4).
    Dl1MissValues,
    /// Values of loads that miss the second-level cache of the model (5.4).
    Dl2MissValues,
    /// Instructions that read or write a memory operand of 4 or 8 bytes whose value needs fewer than 16 bits besides its
    /// sign, by pc (5.4). Operands of 1 and 2 bytes are narrow by declaration, and are left out.
    NarrowPcs,
    /// Addresses at which a zero was loaded (5.4, figure 12).
    ZeroLoads,
    /// Branches taken: from the pc of the branch to the pc it leads to (5.5, two dimensions).
    Edges,
    /// Code by data: the pc of a reference and the line of 64 bytes that its address lies in (5.5, two dimensions).
    CodeData,
}

/// What the numbers of one dimension are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// Places of code.
    Code,
    /// Places of data.
    Data,
    /// Values, which mean the same in every run.
    Value,
}

impl Kind {
    /// All kinds, in the order of their codes.
    pub const ALL: [Kind; 10] = [
        Kind::Code,
        Kind::LoadAddresses,
        Kind::StoreAddresses,
        Kind::LoadValues,
        Kind::Dl1MissValues,
        Kind::Dl2MissValues,
        Kind::NarrowPcs,
        Kind::ZeroLoads,
        Kind::Edges,
        Kind::CodeData,
    ];

    /// The name on the command line, in JSON and in the file's documentation.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Code => "code",
            Kind::LoadAddresses => "loads",
            Kind::StoreAddresses => "stores",
            Kind::LoadValues => "load-values",
            Kind::Dl1MissValues => "dl1-miss-values",
            Kind::Dl2MissValues => "dl2-miss-values",
            Kind::NarrowPcs => "narrow",
            Kind::ZeroLoads => "zero-loads",
            Kind::Edges => "edges",
            Kind::CodeData => "code-data",
        }
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// What a recording must have for it.
    pub fn needs(self) -> Detail {
        match self {
            Kind::Code | Kind::Edges => Detail::Blocks,
            Kind::LoadAddresses | Kind::StoreAddresses | Kind::CodeData => Detail::Addresses,
            _ => Detail::Values,
        }
    }

    /// What each dimension holds.
    pub fn domains(self) -> &'static [Domain] {
        match self {
            Kind::Code | Kind::NarrowPcs => &[Domain::Code],
            Kind::LoadAddresses | Kind::StoreAddresses | Kind::ZeroLoads => &[Domain::Data],
            Kind::LoadValues | Kind::Dl1MissValues | Kind::Dl2MissValues => &[Domain::Value],
            Kind::Edges => &[Domain::Code, Domain::Code],
            Kind::CodeData => &[Domain::Code, Domain::Data],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_again() {
        for kind in Kind::ALL {
            assert_eq!(Kind::named(kind.name()), Some(kind));
        }
        assert_eq!(Kind::named("nothing"), None);
    }
}
