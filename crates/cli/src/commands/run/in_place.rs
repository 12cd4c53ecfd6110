//! What was changed in the program's own code so that it counts checks.

use serde::Serialize;
use sonde_launch::InPlaceFacts;

use crate::quantity::{count, size};

/// Changes of a program's code.
#[derive(Debug, Default, Serialize)]
pub struct InPlace {
    pub modules: usize,
    pub places: usize,
    pub missed: usize,
    pub functions_left_alone: usize,
    pub stub_bytes: u64,
    pub not_changed: Vec<String>,
    pub error: Option<String>,
}

impl InPlace {
    /// From what the run came to.
    pub fn new(found: Result<InPlaceFacts, String>) -> InPlace {
        match found {
            Ok(facts) => InPlace {
                modules: facts.modules,
                places: facts.placed,
                missed: facts.missed,
                functions_left_alone: facts.opaque,
                stub_bytes: facts.stub_bytes,
                not_changed: facts.left,
                error: None,
            },
            Err(why) => InPlace { error: Some(why), ..InPlace::default() },
        }
    }

    /// A sentence each.
    pub fn in_words(&self) -> Vec<String> {
        if let Some(why) = &self.error {
            return vec![format!(
                "the program's code was not changed, and nothing recorded: {why}; leave --in-place out"
            )];
        }
        let mut lines = vec![format!(
            "{} of {} count checks now, through {} beside them",
            count(self.places as u64, "place", "places"),
            count(self.modules as u64, "file", "files"),
            size(self.stub_bytes)
        )];
        if self.missed + self.functions_left_alone > 0 {
            lines.push(format!(
                "{} that should count could not be made to; {} left alone altogether",
                count(self.missed as u64, "place", "places"),
                count(self.functions_left_alone as u64, "function", "functions"),
            ));
        }
        lines.extend(self.not_changed.iter().map(|file| format!("not changed: {file}")));
        lines
    }
}
