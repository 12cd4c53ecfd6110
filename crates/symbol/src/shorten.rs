//! Names that fit a line: compilers spell out every template argument and parameter, which hides the name itself.

use std::borrow::Cow;

/// A name of at most about `room` characters. One that fits stays as it is. Of a longer one, template arguments and
/// parameters go first (`<..>`, `(..)`), which keeps paths, operators, lambdas, closures and `impl` blocks; then the type
/// of a C++ function's result, the marks of what is gone, the first parts of its path; then its middle. The end of a name, where the function is, stays longest.
///
/// ```
/// let name = "std::vector<std::pair<int, long>, std::allocator<std::pair<int, long> > >::push_back(int const&)";
/// assert_eq!(sonde_symbol::shorten(name, 40), "std::vector<..>::push_back(..)");
/// ```
pub fn shorten(name: &str, room: usize) -> Cow<'_, str> {
    if name.chars().count() <= room {
        return name.into();
    }
    let short = without_arguments(without_hash(name)).unwrap_or_else(|| name.to_owned());
    if short.chars().count() <= room {
        return short.into();
    }
    let mut name = without_result(&short).to_owned();
    for marks in ["(..)", "<..>"] {
        if name.chars().count() > room {
            name = name.replace(marks, "").trim_end().to_owned();
        }
    }
    while name.chars().count() > room
        && let Some(at) = path_end(&name)
    {
        name.drain(..at);
    }
    cut(name, room).into()
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
fn without_arguments(name: &str) -> Option<String> {
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
                out.push_str(&group(c, &inside[..end], &out)?);
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
fn group(open: char, inside: &str, before: &str) -> Option<String> {
    // `operator< <int>`: a blank keeps the brackets apart.
    let of_operator = before
        .trim_end()
        .rsplit_once("operator")
        .is_some_and(|(_, symbol)| !symbol.is_empty() && symbol.chars().all(|c| "<>=-*()[]".contains(c)));
    let starts_path = !of_operator
        && (before.is_empty() || before.ends_with("::") || before.ends_with([' ', '&', '*', '(', '<']));
    Some(match open {
        '<' if inside.is_empty() => "<>".into(),
        // `<Type as Trait>::method`, `<impl Trait for Type>::method`.
        '<' if starts_path => format!("<{}>", without_arguments(inside)?),
        '<' => "<..>".into(),
        '(' if inside.is_empty() || inside == "anonymous namespace" => format!("({inside})"),
        '(' => "(..)".into(),
        // `{lambda(int)#1}`, `{{closure}}`, `{impl#3}`.
        '{' => format!("{{{}}}", without_arguments(inside)?),
        // `[clone .isra.0]`, `[abi:cxx11]`, `[T]`.
        _ => format!("[{}]", without_arguments(inside)?),
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
        assert_eq!(shorten(name, 40), "std::__unguarded_partition<..>(..)");
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

    fn bare(name: &str) -> String {
        without_arguments(without_hash(name)).unwrap_or_else(|| panic!("{name}"))
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
                "core::iter::traits::Iterator::map::<u8, fn(..) -> u8>",
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
