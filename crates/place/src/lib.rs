//! Stable places for run-time addresses.
//!
//! Where a module, the heap or a stack lies in memory is drawn anew in every run, so that addresses of two runs cannot
//! be compared or added up. A [`Place`] can: it is a region (a module by its build-id, the heap, the stack, a mapped
//! file ...) and an offset in it, packed into one number, so that trees over addresses are trees over places. Regions
//! are numbered in the order in which a run meets them; [`Regions::remap`] gives the places of one run in the numbers of
//! another, which moves whole aligned stretches of 2^48 and so keeps every range of a tree a range.
//!
//! Duties of the caller: tell [`Places`] the mappings as they appear ([`Places::map`]), before or soon after addresses in
//! them are asked for. Non-goals: names within a region (`sonde-symbol`).
//!
//! ```
//! use sonde_event::maps::Mapping;
//! use sonde_place::{Place, Places};
//!
//! let mut places = Places::new();
//! places.map(&Mapping::parse("55d000000000-55d000002000 r-xp 00000000 fe:01 131 /opt/program").unwrap());
//! let place = places.find(0x55d0_0000_1234).unwrap();
//! assert_eq!(place.offset(), 0x1234);
//! assert_eq!(places.regions().get(place).unwrap().name, "/opt/program");
//! assert_eq!(places.find(0x1000), None);
//! ```
#![forbid(unsafe_code)]

mod find;
mod place;
mod region;

pub use find::Places;
pub use place::{OFFSET_BITS, Place};
pub use region::{Kind, Region, Regions};
