//! Shares (`1%`, `0.01`) and sizes (`64K`): how they are given on the command line and shown in reports.

use std::time::Duration;

pub use sonde_report::{count, grouped, size};

/// Reads a share of the whole: `1%`, `1 %` or `0.01`.
pub fn parse_share(text: &str) -> Result<f64, String> {
    let (digits, scale) = match text.trim().strip_suffix('%') {
        Some(percent) => (percent.trim_end(), 100.0),
        None => (text.trim(), 1.0),
    };
    let number: f64 = digits.parse().map_err(|_| "expected a share such as 1% or 0.01".to_string())?;
    let share = number / scale;
    if share > 0.0 && share <= 1.0 {
        return Ok(share);
    }
    Err("a share must be above 0 and at most 1 (100%)".into())
}

/// Reads a rate, which is far below 1: a bare `1` is meant to be `1%` more likely than not.
pub fn parse_rate(text: &str) -> Result<f64, String> {
    match parse_share(text) {
        Ok(share) if share == 1.0 && !text.contains('%') => {
            Err("write 1% or 0.01; to record everything use --policy always".into())
        }
        other => other,
    }
}

/// Reads a share that may be nothing: `0%` to `100%`.
pub fn parse_part(text: &str) -> Result<f64, String> {
    let zero = text.trim().trim_end_matches('%').trim_end().parse::<f64>() == Ok(0.0);
    if zero { Ok(0.0) } else { parse_share(text) }
}

/// Reads a limit on a cost in percent, `4%` or `4`, which can be more than everything; `0` and `off` are no limit, given as
/// 0. A bare `0.04` can be meant either way.
pub fn parse_limit(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let digits = text.strip_suffix('%').map_or(text, str::trim_end);
    let expected = || "expected a percentage such as 4%, or off".to_string();
    let percent = if text == "off" { 0.0 } else { digits.parse::<f64>().map_err(|_| expected())? };
    match percent {
        0.0 => Ok(0.0),
        bare if bare > 0.0 && bare < 1.0 && digits.len() == text.len() => {
            Err(format!("write {bare}% or {}%", bare * 100.0))
        }
        percent if (0.01..=1000.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("a limit must be at least 0.01% and at most 1000%, or off".into()),
    }
}

/// Reads a time: `10ms`, `500us`, `1s`, `1.5 ms`. At least 100 us, at most an hour.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let expected = || "expected a time such as 10ms, 500us or 1s".to_string();
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ns" => 1e-9,
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        _ => return Err(expected()),
    };
    let number: f64 = digits.trim_end().parse().map_err(|_| expected())?;
    let seconds = number * unit;
    // A signal costs some 20 us: more often than every 100 us would be little but signals.
    if !(100e-6..=3600.0).contains(&seconds) {
        return Err("a period must be at least 100us and at most 3600s".into());
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// Reads a number of bytes: `65536`, `64K`, `64KiB`, `1M`, `2G`. Units are powers of 1024.
pub fn parse_size(text: &str) -> Result<usize, String> {
    let expected = || "expected a size such as 65536, 64K, 10M or 2G".to_string();
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        _ => return Err(expected()),
    };
    let number: usize = digits.trim_end().parse().map_err(|_| expected())?;
    number.checked_mul(1 << shift).ok_or_else(|| "this size is larger than the address space".into())
}

/// A share in percent with as many decimals as its size needs: `1 %`, `0.25 %`.
pub fn percent(share: f64) -> String {
    let digits = format!("{:.4}", share * 100.0);
    format!("{} %", digits.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares() {
        assert_eq!(parse_share("1%"), Ok(0.01));
        assert_eq!(parse_share(" 0.5 % "), Ok(0.005));
        assert_eq!(parse_share("0.25"), Ok(0.25));
        assert_eq!(parse_share("100%"), Ok(1.0));
        for text in ["", "%", "0", "0%", "-1", "1.5", "NaN", "inf", "x", "1%%"] {
            assert!(parse_share(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn parts_and_times() {
        assert_eq!(parse_part("0%"), Ok(0.0));
        assert_eq!(parse_part("0"), Ok(0.0));
        assert_eq!(parse_part("50%"), Ok(0.5));
        assert!(parse_part("101%").is_err() && parse_part("-1%").is_err() && parse_part("").is_err());
        assert_eq!(parse_duration("10ms"), Ok(Duration::from_millis(10)));
        assert_eq!(parse_duration("1.5 ms"), Ok(Duration::from_micros(1500)));
        assert_eq!(parse_duration("200us"), Ok(Duration::from_micros(200)));
        for text in ["", "10", "ms", "1us", "2h", "1e9s", "NaNs", "-1s", "10 m s"] {
            assert!(parse_duration(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(parse_size("64K"), Ok(65536));
        assert_eq!(parse_size("64 KiB"), Ok(65536));
        assert_eq!(parse_size("3"), Ok(3));
        assert_eq!(parse_size("2g"), Ok(2 << 30));
        for text in ["", "K", "1.5K", "-1", "64T", "99999999999999999999", "18446744073709551615K"] {
            assert!(parse_size(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn shown_numbers() {
        assert_eq!(percent(0.01), "1 %");
        assert_eq!(percent(0.0025), "0.25 %");
        assert_eq!(percent(1.0), "100 %");
    }
}
