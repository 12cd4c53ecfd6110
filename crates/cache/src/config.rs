//! What the two levels look like, from text or from code, checked once.

use std::fmt;

/// One level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// Bytes of data.
    pub size: u64,
    /// Lines that compete for a place.
    pub ways: u32,
    /// Bytes of a line.
    pub line: u32,
}

impl Geometry {
    /// Sets of `ways` lines.
    pub fn sets(&self) -> u64 {
        self.size / (u64::from(self.line) * u64::from(self.ways)).max(1)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let refuse = |why| Err(ConfigError::Geometry { level: self.to_string(), why });
        if !self.line.is_power_of_two() || !(8..=4096).contains(&self.line) {
            return refuse("a line must be a power of two from 8 to 4096 bytes");
        }
        if !(1..=64).contains(&self.ways) {
            return refuse("there must be 1 to 64 ways");
        }
        if self.size > MOST_BYTES {
            return refuse("it may have at most 1G");
        }
        let set = u64::from(self.line) * u64::from(self.ways);
        if self.size == 0 || !self.size.is_multiple_of(set) || !self.sets().is_power_of_two() {
            return refuse("size / (ways * line) must be a power of two");
        }
        Ok(())
    }
}

impl fmt::Display for Geometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.size {
            size if size > 0 && size.is_multiple_of(1 << 20) => write!(f, "{}M", size >> 20)?,
            size if size > 0 && size.is_multiple_of(1 << 10) => write!(f, "{}K", size >> 10)?,
            size => write!(f, "{size}")?,
        }
        write!(f, ":{}:{}", self.ways, self.line)
    }
}

/// Largest level: what real machines have, with room to spare; the model keeps 16 bytes per line.
const MOST_BYTES: u64 = 1 << 30;
const DEFAULT_FIRST_WAYS: u32 = 8;
const DEFAULT_SECOND_WAYS: u32 = 16;
const DEFAULT_LINE: u32 = 64;

/// Two levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    first: Geometry,
    second: Geometry,
}

impl Default for Config {
    /// 64 KiB and 1 MiB, as in the paper, which does not say the ways: 8 and 16, with lines of 64 bytes.
    fn default() -> Config {
        Config {
            first: Geometry { size: 64 << 10, ways: DEFAULT_FIRST_WAYS, line: DEFAULT_LINE },
            second: Geometry { size: 1 << 20, ways: DEFAULT_SECOND_WAYS, line: DEFAULT_LINE },
        }
    }
}

impl Config {
    /// Two levels, if such caches can be built.
    pub fn new(first: Geometry, second: Geometry) -> Result<Config, ConfigError> {
        first.check()?;
        second.check()?;
        if second.line < first.line {
            return Err(ConfigError::Lines { first: first.line, second: second.line });
        }
        Ok(Config { first, second })
    }

    /// From `SIZE[:WAYS[:LINE]],SIZE[:WAYS[:LINE]]`, sizes with K, M or G.
    pub fn parse(text: &str) -> Result<Config, ConfigError> {
        let (first, second) = text.split_once(',').ok_or_else(|| ConfigError::Levels(text.to_owned()))?;
        Config::new(geometry(first, DEFAULT_FIRST_WAYS)?, geometry(second, DEFAULT_SECOND_WAYS)?)
    }

    /// The first level.
    pub fn first(&self) -> Geometry {
        self.first
    }

    /// The second level.
    pub fn second(&self) -> Geometry {
        self.second
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.first, self.second)
    }
}

fn geometry(text: &str, ways: u32) -> Result<Geometry, ConfigError> {
    let bad = || ConfigError::Text(text.to_owned());
    let mut parts = text.trim().split(':');
    let size = parts.next().and_then(size).ok_or_else(bad)?;
    let mut number = |default: u32| match parts.next() {
        Some(part) => part.parse().map_err(|_| bad()),
        None => Ok(default),
    };
    let (ways, line) = (number(ways)?, number(DEFAULT_LINE)?);
    if parts.next().is_some() {
        return Err(bad());
    }
    Ok(Geometry { size, ways, line })
}

fn size(text: &str) -> Option<u64> {
    let unit = text.chars().last()?.to_ascii_uppercase();
    let shift = match unit {
        'K' => 10,
        'M' => 20,
        'G' => 30,
        _ => return text.parse().ok(),
    };
    text[..text.len() - 1].parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Why a cache was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// Not two levels.
    Levels(String),
    /// Text that is no level.
    Text(String),
    /// A level that cannot be built.
    Geometry {
        /// The level as text.
        level: String,
        /// What is wrong.
        why: &'static str,
    },
    /// The second level has shorter lines than the first.
    Lines {
        /// Bytes of a line of the first.
        first: u32,
        /// Bytes of a line of the second.
        second: u32,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Levels(text) => {
                write!(f, "{text:?} is not two levels of cache; give SIZE[:WAYS[:LINE]],SIZE[:WAYS[:LINE]]")
            }
            ConfigError::Text(text) => {
                write!(f, "{text:?} is no level of cache; give SIZE[:WAYS[:LINE]], such as 32K:8:64")
            }
            ConfigError::Geometry { level, why } => write!(f, "no cache is {level}: {why}"),
            ConfigError::Lines { first, second } => write!(
                f,
                "lines of the second level ({second} bytes) must not be shorter than of the first ({first})"
            ),
        }
    }
}

impl std::error::Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        let config = Config::parse("32K:8:64,1M:16:64").unwrap();
        assert_eq!(config.first(), Geometry { size: 32 << 10, ways: 8, line: 64 });
        assert_eq!(config.to_string(), "32K:8:64,1M:16:64");
        assert_eq!(Config::parse("64K,1M").unwrap(), Config::default());
        assert_eq!(Config::parse(&Config::default().to_string()), Ok(Config::default()));
        assert_eq!(Config::parse("48K:12,2M").unwrap().first().sets(), 64);
    }

    #[test]
    fn what_cannot_be_built_is_refused() {
        for text in [
            "",
            "64K",
            "64K,",
            ",1M",
            "x,1M",
            "64K:0,1M",
            "64K:8:63,1M",
            "48K:8,1M",
            "0,1M",
            "64K:8:64:1,1M",
            "64K:8:128,1M:16:64",
            "64K,2G",
            "64K:8:4,1M",
            "99999999999999999999K,1M",
            "18446744073709551615G,1M",
        ] {
            assert!(Config::parse(text).is_err(), "{text:?}");
        }
    }
}
