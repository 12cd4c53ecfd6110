//! The sections of a report, by name.

use sonde_summary::Kind;

/// A part of the report that can be asked for by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// How the runs were taken.
    Runs,
    /// Functions by weight.
    Functions,
    /// Totals per data object.
    Data,
    /// A tree.
    Ranges(Kind),
    /// Hot methods, call pairs and code regions.
    Calls,
    /// The calling-context tree.
    Contexts,
    /// Loops.
    Loops,
    /// Values of loads.
    Values,
    /// Hot data streams.
    Streams,
    /// Coverage by width of the value trees (figure 11).
    Widths,
    /// The memory map (figure 12).
    Map,
    /// What the cache model counted.
    Cache,
    /// What was not seen.
    Missing,
}

impl Section {
    /// All sections, in the order in which they are shown.
    pub fn all() -> Vec<Section> {
        let first = [Section::Runs, Section::Functions, Section::Data];
        let last = [
            Section::Calls,
            Section::Contexts,
            Section::Loops,
            Section::Values,
            Section::Streams,
            Section::Widths,
            Section::Map,
            Section::Cache,
            Section::Missing,
        ];
        first.into_iter().chain(Kind::ALL.map(Section::Ranges)).chain(last).collect()
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Section::Runs => "runs",
            Section::Functions => "functions",
            Section::Data => "data",
            Section::Ranges(kind) => kind.name(),
            Section::Calls => "calls",
            Section::Contexts => "contexts",
            Section::Loops => "loops",
            Section::Values => "values",
            Section::Streams => "streams",
            Section::Widths => "widths",
            Section::Map => "map",
            Section::Cache => "cache",
            Section::Missing => "missing",
        }
    }

    /// The section of this name.
    pub fn named(name: &str) -> Option<Section> {
        Section::all().into_iter().find(|section| section.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_again_and_differ() {
        for section in Section::all() {
            assert_eq!(Section::named(section.name()), Some(section));
        }
        assert_eq!(Section::named("nothing"), None);
    }
}
