//! Names that fit a line: compilers spell out every template argument and parameter, which hides the name itself.

use std::borrow::Cow;

/// A name of at most about `room` characters. One that fits stays as it is. Of a longer one go, until it fits: parameters
/// (`(..)`), template arguments but for what the first one is of (`<item*, ..>`), these too (`<..>`), which keeps paths,
/// operators, lambdas, closures and `impl` blocks; the type of a C++ function's result; the marks of what is gone; the paths
/// inside `<Type as Trait>`, then all of that but the type; the first parts of its path; then its middle. The end of a
/// name, where the function is, stays longest.
///
/// ```
/// let name = "std::vector<std::pair<int, long>, std::allocator<std::pair<int, long> > >::push_back(int const&)";
/// assert_eq!(sonde_symbol::shorten(name, 40), "std::vector<pair, ..>::push_back(..)");
/// assert_eq!(sonde_symbol::shorten(name, 30), "std::vector<..>::push_back(..)");
/// ```
pub fn shorten(name: &str, room: usize) -> Cow<'_, str> {
    let fits = |name: &str| name.chars().count() <= room;
    if fits(name) {
        return name.into();
    }
    let name = without_hash(name);
    for templates in [Templates::First, Templates::None] {
        let short = without_arguments(name, templates).unwrap_or_else(|| name.to_owned());
        for short in [short.as_str(), without_result(&short)] {
            if fits(short) {
                return short.to_owned().into();
            }
        }
    }
    let short = without_arguments(name, Templates::None).unwrap_or_else(|| name.to_owned());
    let mut name = without_result(&short).to_owned();
    for marks in ["(..)", "::<..>", "<..>"] {
        if !fits(&name) {
            let rest = name.replace(marks, "");
            name = rest.trim_end_matches(" const").trim_end().to_owned();
        }
    }
    while !fits(&name)
        && let Some(less) = with_less_in_front(&name)
    {
        name = less;
    }
    cut(name, room).into()
}

/// What of template arguments is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Templates {
    /// What the first one is of.
    First,
    /// Nothing.
    None,
}

/// A name with one thing less in front: the first part of its path, or something of `<Type as Trait>`.
fn with_less_in_front(name: &str) -> Option<String> {
    if let Some(at) = path_end(name) {
        return Some(name[at..].to_owned());
    }
    without_paths_inside(name).filter(|less| less != name).or_else(|| without_trait(name))
}

/// `<alloc::vec::Vec as core::ops::Drop>::drop` as `<Vec as Drop>::drop`.
fn without_paths_inside(name: &str) -> Option<String> {
    let inside = name.strip_prefix('<')?;
    let end = closing('<', inside)?;
    let words: Vec<&str> = inside[..end].split(' ').map(last_part).collect();
    Some(format!("<{}{}", words.join(" "), &inside[end..]))
}

/// The last part of a path, with the marks of a reference or pointer in front.
fn last_part(path: &str) -> &str {
    path.rsplit_once("::").map_or(path, |(_, last)| last)
}

/// `<Vec as Drop>::drop` and `<impl Drop for Vec>::drop` as `Vec::drop`. What a type of one letter stands for is not known:
/// there the trait tells more.
fn without_trait(name: &str) -> Option<String> {
    let inside = name.strip_prefix('<')?;
    let end = closing('<', inside)?;
    let (what, method) = (inside[..end].trim_start_matches("impl "), &inside[end + 1..]);
    let (of, by) = match (what.split_once(" as "), what.split_once(" for ")) {
        (Some((of, by)), _) | (None, Some((by, of))) => (of, by),
        (None, None) => (what, what),
    };
    let of = last_part(of.rsplit(['&', '*', ' ']).next().unwrap_or(of));
    let of = if of.chars().count() < 2 { last_part(by) } else { of };
    Some(format!("{of}{method}"))
}

/// What a template's arguments are of: the last part of the first one's path, such as `pair` or `item*`. Types of the
/// library's own (`__normal_iterator<item*>`) stand for what is in them.
fn first_argument(inside: &str) -> Option<String> {
    let first = &inside[..end_of_first(inside)?];
    let more = if first.len() < inside.len() { ", .." } else { "" };
    let of = said_short(first)?;
    (!of.is_empty() && of.chars().count() <= 24).then(|| format!("{of}{more}"))
}

fn said_short(argument: &str) -> Option<String> {
    let argument = argument.trim().trim_start_matches("const ");
    let bare = argument
        .trim_end_matches([' ', '*', '&'])
        .trim_end_matches(" const")
        .trim_end_matches([' ', '*', '&']);
    let marks: String = argument[bare.len()..].chars().filter(|c| "*&".contains(*c)).collect();
    let head = &bare[..bare.find('<').unwrap_or(bare.len())];
    let name = last_part(head);
    if name.starts_with('_') && head.len() < bare.len() {
        let inner = &bare[head.len() + 1..];
        return said_short(&inner[..end_of_first(inner)?]);
    }
    let plain = name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == ' ');
    let name = if name == "basic_string" { "string" } else { name };
    plain.then(|| format!("{name}{marks}"))
}

/// Where the first of several arguments ends.
fn end_of_first(inside: &str) -> Option<usize> {
    let mut at = 0;
    while let Some(c) = inside[at..].chars().next() {
        match c {
            ',' | '>' => return Some(at),
            '<' | '(' | '{' | '[' => at += 1 + closing(c, &inside[at + 1..])? + 1,
            _ => at += c.len_utf8(),
        }
    }
    Some(at)
}

/// Where the first part of a path ends, if there is one in front: `std::` of `std::swap`.
fn path_end(name: &str) -> Option<usize> {
    let at = name.find("::")?;
    let plain = name[..at].chars().all(|c| c.is_alphanumeric() || c == '_');
    (plain && at > 0).then_some(at + 2)
}

/// A function without the type of its result and the mark of a copy: `void f<..>(..) [clone .isra.0]`.
fn without_result(name: &str) -> &str {
    let name = name.split(" [clone ").next().unwrap_or(name);
    // Only names of functions with parameters have a result in front.
    let head = &name[..name.rfind('(').unwrap_or(0)];
    let (mut depth, mut from) = (0u32, 0);
    for (i, c) in head.char_indices() {
        match c {
            '<' | '(' | '{' | '[' => depth += 1,
            '>' | ')' | '}' | ']' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 && !head[..i].ends_with("operator") => from = i + 1,
            _ => {}
        }
    }
    &name[from..]
}

/// Rust's older names end in a hash.
fn without_hash(name: &str) -> &str {
    match name.rsplit_once("::h") {
        Some((path, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => path,
        _ => name,
    }
}

/// The name without what is in brackets, or nothing if they do not match: then it is no name that we understand.
fn without_arguments(name: &str, templates: Templates) -> Option<String> {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        if let Some(operator) = operator(&out, rest) {
            out.push_str(operator);
            rest = &rest[operator.len()..];
            continue;
        }
        match c {
            '<' | '(' | '{' | '[' => {
                let inside = &rest[1..];
                let end = closing(c, inside)?;
                out.push_str(&group(c, &inside[..end], &out, templates)?);
                rest = &inside[end + 1..];
            }
            '>' if out.ends_with('-') => (out.push(c), rest = &rest[1..]).1,
            '>' | ')' | '}' | ']' => return None,
            _ => (out.push(c), rest = &rest[c.len_utf8()..]).1,
        }
    }
    Some(out)
}

/// What becomes of brackets with something in them, behind what was written so far.
fn group(open: char, inside: &str, before: &str, templates: Templates) -> Option<String> {
    // `operator< <int>`: a blank keeps the brackets apart.
    let of_operator = before
        .trim_end()
        .rsplit_once("operator")
        .is_some_and(|(_, symbol)| !symbol.is_empty() && symbol.chars().all(|c| "<>=-*()[]".contains(c)));
    // `parse::<Reader>`: arguments in newer names of Rust; `module::<impl Trait for Type>::method` in older ones.
    let of_path = before.ends_with("::") && !inside.starts_with("impl ");
    let starts_path = !of_operator
        && !of_path
        && (before.is_empty() || before.ends_with("::") || before.ends_with([' ', '&', '*', '(', '<']));
    Some(match open {
        '<' if inside.is_empty() => "<>".into(),
        // `<Type as Trait>::method`, `<impl Trait for Type>::method`.
        '<' if starts_path => format!("<{}>", without_arguments(inside, templates)?),
        '<' if templates == Templates::First => {
            format!("<{}>", first_argument(inside).unwrap_or_else(|| "..".into()))
        }
        '<' => "<..>".into(),
        '(' if inside.is_empty() || inside == "anonymous namespace" => format!("({inside})"),
        '(' => "(..)".into(),
        // `{lambda(int)#1}`, `{{closure}}`, `{impl#3}`.
        '{' => format!("{{{}}}", without_arguments(inside, templates)?),
        // `[clone .isra.0]`, `[abi:cxx11]`, `[T]`.
        _ => format!("[{}]", without_arguments(inside, templates)?),
    })
}

/// Where the bracket that was just opened closes.
fn closing(open: char, inside: &str) -> Option<usize> {
    let mut open = vec![open];
    let mut at = 0;
    while let Some(c) = inside[at..].chars().next() {
        if let Some(operator) = operator(&inside[..at], &inside[at..]) {
            at += operator.len();
            continue;
        }
        match c {
            '<' | '(' | '{' | '[' => open.push(c),
            '>' if inside[..at].ends_with('-') => {}
            // A comparison inside parentheses, as in a template argument `(a>b)`.
            '>' if open.last() != Some(&'<') => {}
            ')' | '}' | ']' | '>' => {
                // `(a<b)`: a comparison as well.
                while c != '>' && open.last() == Some(&'<') {
                    open.pop();
                }
                if !matches!((open.pop()?, c), ('<', '>') | ('(', ')') | ('{', '}') | ('[', ']')) {
                    return None;
                }
                if open.is_empty() {
                    return Some(at);
                }
            }
            _ => {}
        }
        at += c.len_utf8();
    }
    None
}

/// Symbols of C++ operators, the longer before their beginnings.
const OPERATORS: [&str; 17] = [
    "<=>",
    "<<=",
    ">>=",
    "->*",
    "<<",
    ">>",
    "<=",
    ">=",
    "->",
    "()",
    "[]",
    "<",
    ">",
    "new[]",
    "delete[]",
    " new[]",
    " delete[]",
];

/// The brackets of an operator's name, if `rest` begins with one and `before` ends in `operator`.
fn operator(before: &str, rest: &str) -> Option<&'static str> {
    let path = before.strip_suffix("operator")?;
    let whole_word = !path.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    let symbol = OPERATORS.into_iter().find(|symbol| rest.starts_with(symbol))?;
    whole_word.then_some(symbol)
}

/// Leaves the middle out, nearer to the beginning.
fn cut(name: String, room: usize) -> String {
    let count = name.chars().count();
    if count <= room {
        return name;
    }
    let kept = room.saturating_sub(2).max(4);
    let head = kept / 3;
    let start: String = name.chars().take(head).collect();
    let end: String = name.chars().skip(count - (kept - head).min(count)).collect();
    format!("{start}..{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_go_before_the_name_does() {
        let name = "__gnu_cxx::__normal_iterator<item*, std::vector<item> > std::__unguarded_partition<__gnu_cxx::__normal_iterator<item*, std::vector<item> > >(int, int)";
        assert_eq!(shorten(name, 42), "std::__unguarded_partition<item*>(..)");
        assert_eq!(shorten(name, 36), "std::__unguarded_partition<..>(..)");
        let clone = "void std::__introsort_loop<item*, long>(item*, item*, long) [clone .isra.0]";
        assert_eq!(shorten(clone, 33), "std::__introsort_loop<..>(..)");
        assert_eq!(shorten(name, 29), "std::__unguarded_partition");
        assert_eq!(shorten(name, 25), "__unguarded_partition");
        assert_eq!(without_result("a::operator new(..)"), "a::operator new(..)");
        assert_eq!(without_result("<impl Trait for Type>::method"), "<impl Trait for Type>::method");
        assert_eq!(
            without_result("int (anonymous namespace)::f(..) const"),
            "(anonymous namespace)::f(..) const"
        );
    }

    #[test]
    fn what_a_template_is_of_stays_where_it_fits() {
        let sort = "void std::__introsort_loop<__gnu_cxx::__normal_iterator<item*, std::vector<item, std::allocator<item> > >, long, __gnu_cxx::__ops::_Iter_comp_iter<sort_items(std::vector<item>&)::{lambda(item const&, item const&)#1}> >(int, int)";
        assert_eq!(shorten(sort, 50), "void std::__introsort_loop<item*, ..>(..)");
        assert_eq!(shorten(sort, 36), "std::__introsort_loop<item*, ..>(..)");
        assert_eq!(shorten(sort, 30), "std::__introsort_loop<..>(..)");
        let map = "std::map<std::__cxx11::basic_string<char, std::char_traits<char> >, long>::operator[](std::__cxx11::basic_string<char> const&)";
        assert_eq!(shorten(map, 40), "std::map<string, ..>::operator[](..)");
        assert_eq!(
            shorten("a_function_with_a_longer_name<(1 > 2), int>(int)", 40),
            "a_function_with_a_longer_name<..>(..)"
        );
    }

    #[test]
    fn names_of_rust_keep_type_and_method() {
        let parse =
            "gimli::read::line::parse_attribute::<gimli::read::endian_slice::EndianSlice<gimli::Little>>";
        assert_eq!(shorten(parse, 60), "gimli::read::line::parse_attribute::<EndianSlice>");
        assert_eq!(shorten(parse, 38), "gimli::read::line::parse_attribute");
        assert_eq!(shorten(parse, 24), "line::parse_attribute");
        let drop = "<alloc::vec::Vec<T, A> as core::ops::drop::Drop>::drop";
        assert_eq!(shorten(drop, 30), "<Vec as Drop>::drop");
        assert_eq!(shorten(drop, 12), "Vec::drop");
        assert_eq!(shorten("<A as core::slice::cmp::SliceOrd>::compare", 20), "SliceOrd::compare");
        let node = "<impl alloc::collections::btree::node::NodeRef<B, K, V, T>>::find_key_index";
        assert_eq!(shorten(node, 30), "<impl NodeRef>::find_key_index");
        assert_eq!(shorten(node, 24), "NodeRef::find_key_index");
        let path = "alloc::collections::btree::search::<impl alloc::collections::btree::node::NodeRef<B, K>>::find_key_index";
        assert_eq!(shorten(path, 24), "NodeRef::find_key_index");
        assert_eq!(shorten("<&mut F as core::ops::FnOnce<(A, B)>>::call_once", 20), "FnOnce::call_once");
    }

    fn bare(name: &str) -> String {
        without_arguments(without_hash(name), Templates::None).unwrap_or_else(|| panic!("{name}"))
    }

    #[test]
    fn arguments_go_and_names_stay() {
        let cases = [
            ("f(int, char const*)", "f(..)"),
            ("f()", "f()"),
            ("std::map<int, std::vector<int> >::operator[](int&&)", "std::map<..>::operator[](..)"),
            ("bool operator< <char>(A<char> const&, B)", "bool operator< <..>(..)"),
            ("operator<(A const&, A const&)", "operator<(..)"),
            ("operator<< <int>(std::ostream&, int)", "operator<< <..>(..)"),
            ("A<int>::operator<=>(A<int> const&) const", "A<..>::operator<=>(..) const"),
            ("A::operator>>(int)", "A::operator>>(..)"),
            ("Smart<T>::operator->() const", "Smart<..>::operator->() const"),
            ("Smart<T>::operator->*(int T::*)", "Smart<..>::operator->*(..)"),
            ("F<int (int)>::operator()(int) const", "F<..>::operator()(..) const"),
            ("F::operator()() const", "F::operator()() const"),
            ("operator new[](unsigned long)", "operator new[](..)"),
            ("my_operator<int>(int)", "my_operator<..>(..)"),
            ("(anonymous namespace)::g<int>(int)", "(anonymous namespace)::g<..>(..)"),
            (
                "main::{lambda(int, A<B>)#1}::operator()(int, A<B>) const",
                "main::{lambda(..)#1}::operator()(..) const",
            ),
            ("g<(a>b), (1<2)>(int)", "g<..>(..)"),
            ("h(int) [clone .isra.0]", "h(..) [clone .isra.0]"),
            ("s[abi:cxx11](int)", "s[abi:cxx11](..)"),
            ("void (*get<int>(int))(char)", "void (..)(..)"),
            (
                "<alloc::vec::Vec<T, A> as core::ops::drop::Drop>::drop",
                "<alloc::vec::Vec<..> as core::ops::drop::Drop>::drop",
            ),
            (
                "core::iter::traits::Iterator::map::<u8, fn(u8) -> u8>",
                "core::iter::traits::Iterator::map::<..>",
            ),
            ("<&mut F as FnOnce<(A, B)>>::call_once", "<&mut F as FnOnce<..>>::call_once"),
            ("a::b::{{closure}}::h0123456789abcdef", "a::b::{{closure}}"),
            ("a::<impl b::C<D> for e::F<G>>::m", "a::<impl b::C<..> for e::F<..>>::m"),
            ("core::ops::FnOnce::call_once{{vtable.shim}}", "core::ops::FnOnce::call_once{{vtable.shim}}"),
            ("<dyn Fn() -> Vec<u8> as T<u8>>::x", "<dyn Fn() -> Vec<..> as T<..>>::x"),
            ("<[T] as core::slice::Join<S>>::join", "<[T] as core::slice::Join<..>>::join"),
            ("größe<ä>(ö)", "größe<..>(..)"),
        ];
        for (name, expected) in cases {
            assert_eq!(bare(name), expected, "{name}");
        }
    }

    #[test]
    fn what_fits_is_left_alone() {
        assert_eq!(shorten("f(int)", 6), "f(int)");
        assert_eq!(shorten("f(int)", 5), "f(..)");
    }

    #[test]
    fn nonsense_is_only_cut() {
        for name in ["a<b", "a>b(", ")x(", "{<}>", "operator", "a(b]c)", "<<<<<<<", "f(>)<"] {
            let long = format!("{name}{}", "x".repeat(50));
            assert!(shorten(&long, 20).chars().count() <= 20, "{name}: {}", shorten(&long, 20));
        }
    }

    #[test]
    fn long_names_keep_their_end() {
        let name = format!("{}::the_function(int)", "namespace".repeat(10));
        assert_eq!(shorten(&name, 40), "the_function");
        let name = format!("the_function_{}_end(int)", "word_".repeat(10));
        let short = shorten(&name, 40);
        assert!(short.ends_with("_end") && short.starts_with("the_func"), "{short}");
        assert_eq!(short.chars().count(), 40);
    }
}
