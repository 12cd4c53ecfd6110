//! Which analyses are wanted, by name.

use crate::config::AnalysisError;
use sonde_event::Detail;
use sonde_summary::{Kind, What};

/// The analyses of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Trees.
    pub kinds: What,
    /// Code regions, methods, call pairs, contexts.
    pub calls: bool,
    /// Executions and iterations of loops.
    pub loops: bool,
    /// Values of each load.
    pub values: bool,
    /// Hot data streams.
    pub streams: bool,
}

impl Default for Wanted {
    /// What most questions need and costs little. Values and streams look at every reference by
    /// itself, which costs most.
    fn default() -> Wanted {
        Wanted { kinds: What::default(), calls: true, loops: true, values: false, streams: false }
    }
}

impl Wanted {
    /// Names that are not kinds of trees.
    pub const NAMES: [&str; 4] = ["calls", "loops", "values", "streams"];

    /// Everything there is.
    pub fn all() -> Wanted {
        Wanted { kinds: What::all(), calls: true, loops: true, values: true, streams: true }
    }

    /// From names with commas between them; `all` and `default` are names too. Code is always counted: it costs nothing
    /// more, and nothing can be named without it.
    pub fn parse(text: &str) -> Result<Wanted, AnalysisError> {
        let kinds = What::of(&[Kind::Code]);
        let mut wanted = Wanted { kinds, calls: false, loops: false, values: false, streams: false };
        let mut any = false;
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            any = true;
            match name {
                "all" => wanted.add(&Wanted::all()),
                "default" => wanted.add(&Wanted::default()),
                "calls" => wanted.calls = true,
                "loops" => wanted.loops = true,
                "values" => wanted.values = true,
                "streams" => wanted.streams = true,
                _ => {
                    let kind = Kind::named(name).ok_or_else(|| AnalysisError::Unknown(name.to_owned()))?;
                    wanted.add_kinds(&[kind]);
                }
            }
        }
        if any { Ok(wanted) } else { Err(AnalysisError::Unknown(text.to_owned())) }
    }

    fn add_kinds(&mut self, kinds: &[Kind]) {
        self.kinds = What::of(&[self.kinds.kinds(), kinds].concat());
    }

    fn add(&mut self, other: &Wanted) {
        self.add_kinds(other.kinds.kinds());
        self.calls |= other.calls;
        self.loops |= other.loops;
        self.values |= other.values;
        self.streams |= other.streams;
    }

    /// The names of what needs more than paths and the values of loads that it asks for: what cannot be had of a program
    /// that leaves out the others. Loops tell recursion from the addresses of stack frames.
    pub fn beyond_load_values(&self) -> Vec<&'static str> {
        let without = Wanted { values: false, ..self.clone() };
        let (_, mut beyond) = without.possible(Detail::Blocks);
        beyond.extend(self.loops.then_some("loops"));
        beyond
    }

    /// What a recording of this detail can give, and the names of what it cannot.
    pub fn possible(&self, detail: Detail) -> (Wanted, Vec<&'static str>) {
        let (kinds, cannot) = self.kinds.possible(detail);
        let mut cannot: Vec<&str> = cannot.into_iter().map(Kind::name).collect();
        let (values, streams) = (detail >= Detail::Values, detail >= Detail::Addresses);
        let lacks = [("values", self.values && !values), ("streams", self.streams && !streams)];
        cannot.extend(lacks.into_iter().filter(|(_, lacks)| *lacks).map(|(name, _)| name));
        let can = Wanted { kinds, values: self.values && values, streams: self.streams && streams, ..*self };
        (can, cannot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_make_a_choice() {
        assert_eq!(Wanted::parse("all").unwrap(), Wanted::all());
        assert_eq!(Wanted::parse("default").unwrap(), Wanted::default());
        let some = Wanted::parse("streams, loads").unwrap();
        assert!(
            some.streams && !some.calls && some.kinds.has(Kind::LoadAddresses) && some.kinds.has(Kind::Code)
        );
        for text in ["", " ,", "calls,everything"] {
            assert!(Wanted::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_recording_of_blocks_has_no_streams() {
        let (can, cannot) = Wanted::all().possible(Detail::Blocks);
        assert!(can.calls && !can.streams);
        assert!(cannot.contains(&"streams") && cannot.contains(&"loads"));
        assert!(Wanted::all().possible(Detail::Values).1.is_empty());
    }

    #[test]
    fn values_can_be_had_of_loads_alone_with_calls_and_without_streams() {
        let beyond = |names: &str| Wanted::parse(names).unwrap().beyond_load_values();
        assert!(beyond("values").is_empty() && beyond("values,calls,edges").is_empty());
        assert_eq!(beyond("values,streams"), ["streams"]);
        assert_eq!(beyond("loops"), ["loops"]);
        assert_eq!(beyond("values,load-values"), ["load-values"]);
        assert!(beyond("default").contains(&"loads") && beyond("all").len() > beyond("default").len());
    }
}
