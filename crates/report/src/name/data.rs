//! Names for stretches of data: variable, section, or the kind of memory.

use super::{Namer, region_name};
use crate::figures::size;
use sonde_place::{Kind, Place};
use sonde_symbol::Layout;

/// A name for a stretch of data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataName {
    /// In words.
    pub text: String,
    /// Section of its first address.
    pub section: Option<String>,
    /// The variable that all of it lies in.
    pub variable: Option<String>,
}

/// Section and variable of an address.
type Part = (String, Option<String>);

impl Namer<'_> {
    /// A stretch of data.
    pub fn data(&mut self, lo: u64, hi: u64) -> DataName {
        let (first, last) = (Place(lo), Place(hi));
        let words = |text| DataName { text, ..DataName::default() };
        let Some(a) = self.region(first).filter(|_| first.slot() == last.slot()) else {
            return self.used_regions(first, last);
        };
        let wide = size((hi - lo).saturating_add(1));
        words(match a.kind {
            Kind::Module => return self.module_data(first, last),
            Kind::Unknown => format!("unmapped when looked at, {:#x}", first.offset()),
            Kind::File => format!("file {}+{:#x}, {wide}", a.name, first.offset()),
            _ if lo == hi => self.offset(first),
            Kind::Stack => {
                let below = (1u64 << 47).saturating_sub(first.offset());
                format!("{}, {wide}, {} below the top", region_name(a), size(below))
            }
            Kind::Kernel => format!("{}+{:#x}", region_name(a), first.offset()),
            Kind::Heap | Kind::Anonymous => format!("{}, {wide}", region_name(a)),
        })
    }

    /// What lies where in the module of this number, and the address, as the file counts, of its offset 0.
    pub(crate) fn layout(&mut self, slot: u16) -> Option<(u64, Layout)> {
        let (region, base) = self.image_address(Place::new(slot, 0))?;
        Some((base, self.symbols.layout(&region.name, &region.build_id)))
    }

    /// The region of this number in a few words.
    pub(crate) fn memory(&self, slot: u16) -> String {
        let Some(region) = self.region(Place::new(slot, 0)) else { return "unknown".into() };
        match region.kind {
            Kind::Unknown => "unmapped when looked at".into(),
            Kind::File => format!("file {}", region.name),
            _ => region_name(region),
        }
    }

    /// The variable at a place of a module.
    pub(crate) fn variable(&mut self, place: Place) -> Option<String> {
        let (region, address) = self.image_address(place)?;
        self.symbols.variable(&region.name, &region.build_id, address).map(|variable| variable.name)
    }

    /// First place and bytes of the variable at a place of a module.
    pub(crate) fn variable_at(&mut self, place: Place) -> Option<(u64, u64)> {
        let (region, address) = self.image_address(place)?;
        let variable = self.symbols.variable(&region.name, &region.build_id, address)?;
        Some((place.0.wrapping_sub(address - variable.start), variable.size))
    }

    fn part(&mut self, place: Place) -> Option<Part> {
        let (region, address) = self.image_address(place)?;
        let section = self.symbols.data(&region.name, &region.build_id, address).section?;
        let variable = self.symbols.variable(&region.name, &region.build_id, address);
        Some((section, variable.map(|v| v.name)))
    }

    fn module_data(&mut self, first: Place, last: Place) -> DataName {
        let ends = (self.part(first), self.part(last));
        let module = self.region(first).map_or_else(String::new, region_name);
        let variable = match &ends {
            (Some((_, Some(a))), Some((_, Some(b)))) if a == b => Some(a.clone()),
            _ => None,
        };
        let section = ends.0.as_ref().map(|(section, _)| section.clone());
        // The system puts what a program asks for right behind a module, where it cannot be told from uninitialized data.
        if ends == (None, None) && self.is_behind(first) {
            let wide = size((last.0 - first.0).saturating_add(1));
            return DataName { text: format!("anonymous memory behind {module}, {wide}"), section, variable };
        }
        let used = if variable.is_none() && first != last { self.used_objects(first, last) } else { None };
        if let Some(text) = used {
            return DataName { text, section, variable };
        }
        // What was used is not known: where it begins and ends is all that can be said.
        let text = match ends {
            (Some((section, Some(of))), _) if variable.is_some() => format!("{module}:{section} {of}"),
            (Some((section, Some(of))), _) => format!("{module}:{section} {of} and behind"),
            (Some((a, _)), Some((b, _))) if a == b => format!("{module}:{a}"),
            (Some((a, _)), Some((b, _))) => format!("{module}:{a} to {b}"),
            // A range is a power of two and may reach over the end of a module.
            (Some((a, _)), None) | (None, Some((a, _))) => format!("{module}:{a}"),
            (None, None) => format!("{module}+{:#x}", first.offset()),
        };
        DataName { text, section, variable }
    }
}
