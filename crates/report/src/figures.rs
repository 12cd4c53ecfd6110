//! Numbers and names as people write them; the whole program uses these.

/// A number with its thousands apart.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of things: `1 run`, `2 runs`.
pub fn count(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(n), if n == 1 { one } else { many })
}

/// Bytes for people: `64 KiB`, `1.5 MiB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", format!("{value:.1}").trim_end_matches(".0"), UNITS[unit])
}

/// The last part of a path.
pub fn short(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, file)| file)
}

/// Lines of a file: `file.c:7`, `file.c:7-9`.
pub(crate) fn lines(file: &str, (first, last): (u32, u32)) -> String {
    if first == last { format!("{file}:{first}") } else { format!("{file}:{first}-{last}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_people_write_them() {
        assert_eq!((grouped(0).as_str(), grouped(12).as_str()), ("0", "12"));
        assert_eq!((grouped(123_456).as_str(), grouped(1_234_567).as_str()), ("123,456", "1,234,567"));
        assert_eq!(count(1, "run", "runs"), "1 run");
        assert_eq!(count(2000, "run", "runs"), "2,000 runs");
        assert_eq!(
            (size(512).as_str(), size(65_536).as_str(), size(1536).as_str()),
            ("512 B", "64 KiB", "1.5 KiB")
        );
        assert_eq!((short("/a/b.c"), short("b.c")), ("b.c", "b.c"));
        assert_eq!((lines("a.c", (7, 7)).as_str(), lines("a.c", (7, 9)).as_str()), ("a.c:7", "a.c:7-9"));
    }
}
