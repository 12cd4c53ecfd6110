//! What lies where in a module's memory, all of it at once: whoever shares counts out among variables needs every one that
//! a range touches, and asking for each address would take as long as the range is wide.

use crate::module::Section;
use crate::table::Table;

/// Mappings are of whole pages.
const PAGE: u64 = 4096;

/// A stretch of a section: a variable, or what no variable covers. Addresses are as the file counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// First address.
    pub start: u64,
    /// Behind the last address.
    pub end: u64,
    /// Number of the section in [`Layout::sections`].
    pub section: usize,
    /// Whether a variable lies there, which [`crate::Symbols::variable`] names.
    pub is_variable: bool,
}

/// A module's memory. What lies in no section is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Names of the sections.
    pub sections: Vec<String>,
    /// By address; they do not overlap.
    pub stretches: Vec<Stretch>,
}

impl Layout {
    /// Behind the last page that the module itself has; none if nothing is known.
    pub fn end(&self) -> Option<u64> {
        self.stretches.last().map(|last| last.end.saturating_add(PAGE - 1) & !(PAGE - 1))
    }
}

pub(crate) fn of(sections: &[Section], variables: &Table) -> Layout {
    let mut order: Vec<&Section> = sections.iter().filter(|section| section.size > 0).collect();
    order.sort_by_key(|section| section.address);
    let mut layout = Layout::default();
    let mut variables = variables.spans().peekable();
    let mut from = 0;
    for section in order {
        let (start, end) = (section.address.max(from), section.address.saturating_add(section.size));
        if start >= end {
            continue;
        }
        let number = layout.sections.len();
        layout.sections.push(section.name.clone());
        let mut put = |start, end, is_variable| {
            if start < end {
                layout.stretches.push(Stretch { start, end, section: number, is_variable });
            }
        };
        from = start;
        while let Some((first, behind)) = variables.next_if(|(first, _)| *first < end) {
            // A table may have symbols in no section, or across the end of one.
            let (first, behind) = (first.max(from), behind.min(end));
            if first < behind {
                put(from, first, false);
                put(first, behind, true);
                from = behind;
            }
        }
        put(from, end, false);
        from = end;
    }
    layout
}
