//! The invariance of values from what slots have counted (A.6).

/// What slots have counted while one value was watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// The value.
    pub value: u64,
    /// Samples with it.
    pub hits: u64,
    /// Samples with others.
    pub misses: u64,
    /// Hits of slots that saw many of them and hardly a miss.
    pub lasting: u64,
}

/// No value gets more than this of the samples of which nothing but the number is known: they come from times when the
/// watched value had less.
const MOST_OF_UNKNOWN: f64 = 0.2;

/// How many of a load's `total` samples had each of these values, by the paper's estimate: its own hits; the misses of
/// the others, shared by hits; and an equal share, at most a fifth, of what is not accounted for.
pub fn samples_of(watched: &[Watched], total: u64) -> Vec<f64> {
    let hits: u64 = watched.iter().map(|w| w.hits).sum();
    let misses: u64 = watched.iter().map(|w| w.misses).sum();
    let unknown = total.saturating_sub(hits + misses) as f64;
    let of_unknown = (unknown / watched.len().max(1) as f64).min(MOST_OF_UNKNOWN * unknown);
    // Each value's share of the misses per hit of the receiver; a value's own misses are not its own samples.
    let per_hit = |w: &Watched| if hits > w.hits { w.misses as f64 / (hits - w.hits) as f64 } else { 0.0 };
    let all_per_hit: f64 = watched.iter().map(per_hit).sum();
    watched.iter().map(|w| (w.hits as f64) * (1.0 + all_per_hit - per_hit(w)) + of_unknown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(counts: &[(u64, u64)]) -> Vec<Watched> {
        let numbered = counts.iter().enumerate();
        numbered
            .map(|(i, (hits, misses))| Watched { value: i as u64, hits: *hits, misses: *misses, lasting: 0 })
            .collect()
    }

    fn near(a: &[f64], b: &[f64]) {
        assert!(a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9), "{a:?} {b:?}");
    }

    #[test]
    fn one_value_has_its_hits_and_a_fifth_of_the_unknown() {
        near(&samples_of(&watched(&[(90, 10)]), 100), &[90.0]);
        near(&samples_of(&watched(&[(90, 10)]), 150), &[90.0 + 10.0]);
    }

    #[test]
    fn misses_go_to_the_others_by_their_hits() {
        // 30 misses of the first: 10/40 and 30/40 of them; 8 of the second: 60/90, 30/90; 0 of the third.
        let got = samples_of(&watched(&[(60, 30), (10, 8), (30, 0)]), 138);
        near(&got, &[60.0 + 8.0 * 60.0 / 90.0, 10.0 + 30.0 * 0.25, 30.0 + 30.0 * 0.75 + 8.0 * 30.0 / 90.0]);
        assert!((got.iter().sum::<f64>() - 138.0).abs() < 1e-9);
    }

    #[test]
    fn the_unknown_is_shared_equally_up_to_a_fifth() {
        // 100 of which nothing is known: 20 each for two values, 10 each for ten.
        near(&samples_of(&watched(&[(5, 0), (5, 0)]), 110), &[25.0, 25.0]);
        near(&samples_of(&watched(&[(1, 0); 10]), 110), &[11.0; 10]);
    }

    #[test]
    fn nothing_gives_nothing() {
        assert!(samples_of(&[], 10).is_empty());
        near(&samples_of(&watched(&[(0, 0)]), 0), &[0.0]);
    }
}
