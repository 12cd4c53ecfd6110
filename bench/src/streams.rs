//! The streams that everything is measured on: seeded, so that every run sees the same events. Described in the README.

/// A small fast generator (xorshift64*), good enough to draw streams from.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator with this seed, which must not be 0.
    pub fn new(seed: u64) -> Self {
        assert_ne!(seed, 0, "xorshift never leaves 0");
        Random(seed)
    }

    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// A number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Draws ranks `0..n` with probability proportional to `1 / (rank + 1)^exponent`, through the cumulative sums.
#[derive(Debug)]
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(n: usize, exponent: f64) -> Self {
        let mut sum = 0.0;
        let sums = (1..=n).map(|rank| {
            sum += (rank as f64).powf(-exponent);
            sum
        });
        Zipf(sums.collect())
    }

    fn draw(&self, random: &mut Random) -> usize {
        let at = random.unit() * self.0.last().expect("at least one rank");
        self.0.partition_point(|&sum| sum <= at).min(self.0.len() - 1)
    }
}

/// Zipf with exponent 1.1 over 2^20 keys. The popular keys are spread over all 2^20, as they are in real data; in order of
/// rank they would share the first ranges and be easier to summarize.
pub fn zipf(len: usize) -> Vec<u64> {
    let mut random = Random::new(1);
    let zipf = Zipf::new(1 << 20, 1.1);
    (0..len).map(|_| (zipf.draw(&mut random) as u64).wrapping_mul(0x9_e377) & 0xf_ffff).collect()
}

/// Every 32-bit number equally likely.
pub fn uniform(len: usize) -> Vec<u64> {
    let mut random = Random::new(2);
    (0..len).map(|_| random.below(1 << 32)).collect()
}

/// Addresses of basic blocks of a program that runs loops: 512 loops in 2 MiB of code, chosen by Zipf with exponent 1; a loop has
/// 2 to 12 blocks, some of them behind a branch that is taken one time in eight, and goes round 64 times on average.
pub fn loops(len: usize) -> Vec<u64> {
    let mut random = Random::new(3);
    let bodies: Vec<Vec<(u64, bool)>> = (0..512).map(|_| loop_body(&mut random)).collect();
    let popularity = Zipf::new(bodies.len(), 1.0);
    let mut stream = Vec::with_capacity(len + 16);
    while stream.len() < len {
        let body = &bodies[popularity.draw(&mut random)];
        let rounds = 1 + (-random.unit().max(1e-9).ln() * 64.0) as usize;
        for _ in 0..rounds {
            let taken = body.iter().filter(|(_, rare)| !rare || random.below(8) == 0);
            stream.extend(taken.map(|&(address, _)| address));
            if stream.len() >= len {
                break;
            }
        }
    }
    stream.truncate(len);
    stream
}

fn loop_body(random: &mut Random) -> Vec<(u64, bool)> {
    let mut address = 0x40_0000 + (random.below(2 << 20) & !15);
    let blocks = 2 + random.below(11);
    (0..blocks)
        .map(|block| {
            address += 4 + random.below(40);
            (address, block > 0 && random.below(8) == 0)
        })
        .collect()
}

/// One key, always.
pub fn one_key(len: usize) -> Vec<u64> {
    vec![0x7fff_1234_5678; len]
}

/// 1,400 keys anywhere in 64 bits, equally likely.
pub fn scattered(len: usize) -> Vec<u64> {
    let mut random = Random::new(5);
    let keys: Vec<u64> = (0..1400).map(|_| random.next()).collect();
    (0..len).map(|_| keys[random.below(1400) as usize]).collect()
}

/// Each step of [`loops`] as the edge from one block to the next.
pub fn edges(len: usize) -> Vec<[u64; 2]> {
    loops(len + 1).windows(2).map(|pair| [pair[0], pair[1]]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn streams_have_their_shape() {
        let share_of_first = |keys: &[u64]| {
            let mut counts = HashMap::new();
            keys.iter().for_each(|&key| *counts.entry(key).or_insert(0usize) += 1);
            (counts.len(), *counts.values().max().expect("not empty") as f64 / keys.len() as f64)
        };
        let (keys, first) = share_of_first(&zipf(100_000));
        assert!(keys > 10_000 && (0.11..0.14).contains(&first), "{keys} {first}");
        let (keys, first) = share_of_first(&uniform(100_000));
        assert!(keys > 99_900 && first < 1e-3, "{keys} {first}");
        let (keys, _) = share_of_first(&loops(1_000_000));
        assert!((1_000..4_000).contains(&keys), "{keys}");
        assert_eq!(share_of_first(&scattered(100_000)).0, 1400);
        assert_eq!(share_of_first(&one_key(1000)), (1, 1.0));
    }

    #[test]
    fn streams_are_the_same_every_time() {
        assert_eq!(loops(1000), loops(1000));
        assert_eq!(edges(1000)[5][1], edges(1000)[6][0]);
        assert_eq!(zipf(50), zipf(50));
    }
}
