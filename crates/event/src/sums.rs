//! Counts of two runs added up, field by field.

/// Adds all fields of a struct of counts to those of another. What does not fit stays at the most there is: counts read
/// from a damaged file must not become small ones. A field that is not named does not compile, so none is forgotten.
///
/// ```
/// #[derive(Debug, PartialEq)]
/// struct Seen {
///     loads: u64,
///     stores: u64,
/// }
/// let mut seen = Seen { loads: 1, stores: u64::MAX };
/// sonde_event::add_counts!(Seen { loads, stores }: &mut seen, &Seen { loads: 2, stores: 2 });
/// assert_eq!(seen, Seen { loads: 3, stores: u64::MAX });
/// ```
#[macro_export]
macro_rules! add_counts {
    ($counts:ident { $($field:ident),+ $(,)? }: $to:expr, $from:expr) => {{
        let to: &mut $counts = $to;
        let $counts { $($field),+ } = $from;
        $(to.$field = to.$field.saturating_add(*$field);)+
    }};
}

/// The sum of counts; at most what there is.
pub fn total(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}
