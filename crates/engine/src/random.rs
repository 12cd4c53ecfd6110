//! Small deterministic random numbers (xorshift*), for the gaps between bursts.

/// The next state and a number from it. A state of 0 is taken as 1.
pub fn next(state: u64) -> (u64, u64) {
    let mut x = state.max(1);
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    (x, x.wrapping_mul(0x2545_f491_4f6c_dd1d))
}

/// `base` varied by up to `thousandths` of it in either direction.
pub fn vary(base: u64, thousandths: u32, random: u64) -> u64 {
    let span = (u128::from(base) * u128::from(thousandths) / 1000) as u64;
    if span == 0 {
        return base;
    }
    base - span + random % (2 * span + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varied_gaps_stay_in_their_range_and_average_to_the_base() {
        let (mut state, mut sum) = (42, 0u64);
        for _ in 0..10_000 {
            let (s, r) = next(state);
            state = s;
            let v = vary(1000, 500, r);
            assert!((500..=1500).contains(&v));
            sum += v;
        }
        let mean = sum / 10_000;
        assert!((985..=1015).contains(&mean), "mean {mean}");
    }
}
