//! Hot methods (Nagpurkar et al. 2006, section 3.5): invocations plus backward branches taken, by function.

use crate::profile::CallProfile;
use std::collections::BTreeMap;

/// A function and how hot it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Method {
    /// What the caller's rule calls the function.
    pub function: u64,
    /// Invocations.
    pub calls: u64,
    /// Backward branches taken in it.
    pub backward: u64,
    /// Weight of both.
    pub weight: u64,
}

/// The methods of a profile, heaviest first. `function_of` gives the function that an address lies in; where symbols do
/// not tell, [`CallProfile::function_of`] takes the nearest entry that was called.
pub fn methods(profile: &CallProfile, mut function_of: impl FnMut(u64) -> u64) -> Vec<Method> {
    let mut all: BTreeMap<u64, Method> = BTreeMap::new();
    for invoked in &profile.functions {
        let function = function_of(invoked.entry);
        let method = all.entry(function).or_insert(Method { function, ..Method::default() });
        method.calls += invoked.count;
        method.weight += invoked.weight;
    }
    for back in &profile.backward {
        let function = function_of(back.branch);
        let method = all.entry(function).or_insert(Method { function, ..Method::default() });
        method.backward += back.count;
        method.weight += back.weight;
    }
    let mut all: Vec<Method> = all.into_values().collect();
    all.sort_by_key(|m| (std::cmp::Reverse(m.weight), m.function));
    all
}
