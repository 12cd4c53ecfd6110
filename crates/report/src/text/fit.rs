//! Names cut to the columns that a line has left, so that a person still knows what is meant: places go before names, and
//! names are shortened, not only cut.

use sonde_symbol::shorten;

/// Fewest columns of a function beside another one.
const FEWEST: usize = 10;

/// Cut to a number of columns, the middle left out: both ends of a name say something.
pub fn fit(text: &str, columns: usize) -> String {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= columns.max(4) {
        return text.to_owned();
    }
    let keep = columns.max(4) - 1;
    let (head, tail) = (keep.div_ceil(2), keep / 2);
    let mut all: String = chars[..head].iter().collect();
    all.push('…');
    all.extend(&chars[chars.len() - tail..]);
    all
}

/// A name of code cut to a number of columns: functions are shortened before places are cut. Places go in the order in which
/// they can be missed: where an inlined function is written down, the inlined function, an offset.
pub fn fit_code(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    if let Some((many, most)) = text.split_once(", most in ") {
        return fit_many(many, most, columns);
    }
    match text.split_once(", inlined in ") {
        Some((inner, outer)) => fit_inlined(inner, Named::of(outer), columns),
        None => Named::of(text).fitted(columns),
    }
}

/// A function in words: its name, and what is said behind it.
#[derive(Clone, Copy)]
struct Named<'a> {
    name: &'a str,
    /// Such as ` and 2 more`.
    more: &'a str,
    /// Such as `, deflate.c:7` or ` (libz.so+0x12)`.
    place: &'a str,
}

impl<'a> Named<'a> {
    fn of(text: &'a str) -> Named<'a> {
        let (rest, place) = text.split_at(place_of(text).unwrap_or(text.len()));
        let more = rest.rfind(" and ").filter(|at| {
            let count = rest[at + 5..].strip_suffix(" more");
            count.is_some_and(|count| !count.is_empty() && count.bytes().all(|b| b.is_ascii_digit()))
        });
        let (name, more) = rest.split_at(more.unwrap_or(rest.len()));
        Named { name, more, place }
    }

    /// In so many columns, the name in at least so many.
    fn within(self, columns: usize, least: usize) -> String {
        let fixed = width(self.more) + width(self.place);
        let name = shorten(self.name, columns.saturating_sub(fixed).max(least));
        format!("{name}{}{}", self.more, self.place)
    }

    fn fitted(self, columns: usize) -> String {
        // An offset says less than the rest of a name, and so does a line if nothing of the name is left beside it.
        let left = columns.saturating_sub(width(self.place) + width(self.more));
        let crowded = left < width(&shorten(self.name, 2 * FEWEST)).min(FEWEST + 4);
        let bare = if self.place.starts_with(" (") || crowded { Named { place: "", ..self } } else { self };
        let text = bare.within(columns, FEWEST);
        if width(&text) <= columns {
            text
        } else {
            fit(&Named { more: "", ..bare }.within(columns, FEWEST), columns)
        }
    }
}

/// Where the place begins that a name ends with: a file and lines, or a module and an offset.
fn place_of(text: &str) -> Option<usize> {
    if let Some(at) = text.rfind(", ").filter(|at| is_line(&text[at + 2..])) {
        return Some(at);
    }
    let at = text.rfind(" (")?;
    let inside = text[at + 2..].strip_suffix(')')?;
    (inside.contains("+0x") && !inside.contains([' ', '(', '<'])).then_some(at)
}

/// Whether it is a file and lines, rather than a part of a name with commas.
fn is_line(text: &str) -> bool {
    let Some((file, lines)) = text.rsplit_once(':') else { return false };
    !file.contains([' ', '<', '('])
        && !lines.is_empty()
        && lines.chars().all(|c| c.is_ascii_digit() || c == '-')
}

/// `inner at place, inlined in outer`.
fn fit_inlined(inner: &str, outer: Named<'_>, columns: usize) -> String {
    const INTO: &str = ", inlined in ";
    let (name, at) = inner.rfind(" at ").map_or((inner, ""), |at| inner.split_at(at));
    // Where it was inlined says more than where it is written down.
    for (place, least) in [(at, 16), ("", 16), ("", FEWEST)] {
        let fixed = width(place) + INTO.len() + width(outer.more) + width(outer.place);
        let room = columns.saturating_sub(fixed);
        // What the shorter one leaves goes to the longer one.
        let short = width(&shorten(name, (room / 2).max(least)));
        let outside = shorten(outer.name, room.saturating_sub(short).max(least));
        let inside = shorten(name, room.saturating_sub(width(&outside)).max(least));
        let whole = format!("{inside}{place}{INTO}{outside}{}{}", outer.more, outer.place);
        if width(&whole) <= columns {
            return whole;
        }
    }
    outer.fitted(columns)
}

/// A stretch of many: how many, and the name of the heaviest.
fn fit_many(many: &str, most: &str, columns: usize) -> String {
    let room = |many: &str| columns.saturating_sub(width(many) + ", most in ".len());
    // Which module it is in can be missed before the function can.
    let many = match many.split_once(": ") {
        Some((_, count)) if room(many) < 2 * FEWEST => count,
        _ => many,
    };
    fit(&format!("{many}, most in {}", shorten(most, room(many).max(FEWEST))), columns)
}

fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(fit("abcdefghij", 7), "abc…hij");
        assert_eq!(fit("abc", 7), "abc");
        assert_eq!(fit("äöüäöüäöü", 5).chars().count(), 5);
    }

    #[test]
    fn names_of_code_keep_their_places() {
        let text = "bool a::operator< <int>(int, int) at stl_x.h:120, inlined in sort_all(std::vector<int>&), main.cpp:33";
        assert_eq!(fit_code(text, 200), text);
        let short = fit_code(text, 78);
        assert_eq!(short, "a::operator< <int>(..) at stl_x.h:120, inlined in sort_all(..), main.cpp:33");
        assert_eq!(
            fit_code("std::vector<int>::at(int) and 2 more, main.cpp:7", 40),
            "std::vector::at and 2 more, main.cpp:7"
        );
        assert_eq!(fit_code(text, 52), "a::operator<, inlined in sort_all(..), main.cpp:33");
        assert_eq!(
            fit_code("std::sort_loop<long, int>(long, int) [clone .isra.0]", 24),
            "std::sort_loop<..>(..)"
        );
        let copy = "std::char_traits<char>::copy(char*, char const*) at char_traits.h:431, inlined in void std::__introsort_loop<item*, long>(item*, item*), stl_algo.h:1921";
        assert_eq!(fit_code(copy, 60), "copy, inlined in std::__introsort_loop<..>, stl_algo.h:1921");
        assert_eq!(fit_code(copy, 40), "std::__introsort_loop, stl_algo.h:1921");
    }

    #[test]
    fn offsets_go_before_names_do() {
        let put = "std::num_put<char, std::ostreambuf_iterator<char> >::do_put(std::ios_base&, char, long) const (libstdc++.so.6.0.30+0x12ffde)";
        assert_eq!(fit_code(put, 60), "std::num_put<char, ..>::do_put(..) const");
        assert_eq!(fit_code(put, 16), "num_put::do_put");
        assert_eq!(fit_code("decompress_fast (rsprog+0x527b1)", 32), "decompress_fast (rsprog+0x527b1)");
        assert_eq!(fit_code("decompress_fast (rsprog+0x527b1)", 20), "decompress_fast");
        assert_eq!(fit_code("malloc_consolidate, malloc.c:4745-4801", 24), "malloc_consolidate");
        assert_eq!(fit_code("malloc_consolidate, malloc.c:4745", 30), "mall..nsolidate, malloc.c:4745");
    }

    #[test]
    fn the_heaviest_of_many_is_told() {
        let many = "libstdc++.so.6.0.30: 36 functions, most in std::vector<int, std::allocator<int> >::at(unsigned long)";
        assert_eq!(
            fit_code(many, 72),
            "libstdc++.so.6.0.30: 36 functions, most in std::vector<int, ..>::at(..)"
        );
        assert_eq!(fit_code(many, 40), "36 functions, most in std::vector::at");
    }
}
