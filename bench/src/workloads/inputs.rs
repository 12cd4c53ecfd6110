//! Makes the inputs of the workloads: the same bytes on every machine, sized so that scale 1 is about one second of work.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use sonde_harness::random::Random;

/// One input file: its name, its size at scale 1 in units of its own, and what writes it.
struct Input {
    name: &'static str,
    units: f64,
    write: fn(&mut dyn Write, u32) -> io::Result<()>,
}

/// Units: lines of text, rows of pixels, tenths of seconds of sound, statements, steps. Found by timing on a 2-core VM.
const INPUTS: [Input; 12] = [
    Input { name: "gzip.txt", units: 90_000.0, write: text },
    Input { name: "bzip2.txt", units: 140_000.0, write: text },
    Input { name: "perl.txt", units: 18_000.0, write: text },
    Input { name: "sort.txt", units: 750_000.0, write: text },
    Input { name: "xz2.txt", units: 40_000.0, write: text },
    Input { name: "picture.ppm", units: 12_000.0, write: picture },
    Input { name: "lame.wav", units: 430.0, write: wave },
    Input { name: "toast.sl", units: 18_000.0, write: speech },
    Input { name: "sqlite.sql", units: 450_000.0, write: statements },
    Input { name: "gcc.cc", units: 9.0, write: templates },
    Input { name: "bodies.py", units: 4500.0, write: bodies },
    Input { name: "count.pl", units: 1.0, write: counting },
];

/// Writes all inputs for a scale into `folder`, or nothing when they are there already.
pub fn make(folder: &Path, scale: f64) -> io::Result<()> {
    let stamp = format!("scale {scale}, version {}\n", env!("CARGO_PKG_VERSION"));
    let stamp_file = folder.join("complete");
    if fs::read_to_string(&stamp_file).is_ok_and(|old| old == stamp) {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    for input in &INPUTS {
        let mut file = BufWriter::new(File::create(folder.join(input.name))?);
        (input.write)(&mut file, (input.units * scale).ceil() as u32)?;
        file.flush()?;
    }
    fs::write(stamp_file, stamp)
}

/// Words made of syllables, the early ones of the list much more often than the late ones, as in any language.
fn text(out: &mut dyn Write, lines: u32) -> io::Result<()> {
    let mut random = Random::new(11);
    let words: Vec<String> = (0..6000).map(|_| word(&mut random)).collect();
    let mut line = String::new();
    for _ in 0..lines {
        line.clear();
        for _ in 0..8 + random.below(8) {
            // The product of three uniform numbers is skewed to small ones.
            let skewed = random.below(6000) * random.below(6000) / 6000 * random.below(6000) / 6000;
            line += &words[skewed as usize];
            line.push(if random.once_in(12) { ',' } else { ' ' });
        }
        line.pop();
        line.push('\n');
        out.write_all(line.as_bytes())?;
    }
    Ok(())
}

fn word(random: &mut Random) -> String {
    const HEADS: [&str; 16] =
        ["b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "st", "tr", ""];
    const CORES: [&str; 8] = ["a", "e", "i", "o", "u", "ei", "au", "io"];
    const TAILS: [&str; 8] = ["", "", "n", "r", "s", "l", "nt", "ck"];
    (0..1 + random.below(4))
        .map(|_| [random.pick(&HEADS), random.pick(&CORES), random.pick(&TAILS)].concat())
        .collect()
}

/// Smooth slopes with rings and some noise: what photographs look like to a coder.
fn picture(out: &mut dyn Write, rows: u32) -> io::Result<()> {
    const WIDTH: u32 = 2600;
    let rows = rows.min(65_000); // more cannot be written as JPEG
    let mut random = Random::new(12);
    write!(out, "P6\n{WIDTH} {rows}\n255\n")?;
    let mut row = Vec::with_capacity(WIDTH as usize * 3);
    for y in 0..rows {
        row.clear();
        for x in 0..WIDTH {
            let noise = random.below(48) as u32;
            let (dx, dy) = (x.abs_diff(900), (y % 1500).abs_diff(700));
            let ring = ((dx * dx + dy * dy) >> 9) & 255;
            row.extend(
                [(ring + noise).min(255), (x * 255 / WIDTH + noise).min(255), (y / 4 + noise) & 255]
                    .map(|v| v as u8),
            );
        }
        out.write_all(&row)?;
    }
    Ok(())
}

/// Three voices that glide, with noise.
fn sample(t: f64, random: &mut Random) -> f64 {
    let voice = |pitch: f64, glide: f64| (std::f64::consts::TAU * pitch * t + 40.0 * (glide * t).sin()).sin();
    7000.0 * voice(220.0, 0.7)
        + 5000.0 * voice(554.4, 1.1)
        + 3000.0 * voice(1318.5, 0.3)
        + random.below(1600) as f64
        - 800.0
}

fn wave(out: &mut dyn Write, tenths: u32) -> io::Result<()> {
    const RATE: u32 = 44_100;
    let (mut random, samples) = (Random::new(13), RATE / 10 * tenths);
    let size = samples * 4;
    out.write_all(b"RIFF")?;
    out.write_all(&(36 + size).to_le_bytes())?;
    out.write_all(b"WAVEfmt ")?;
    out.write_all(&16u32.to_le_bytes())?;
    out.write_all(&[1u16, 2].map(u16::to_le_bytes).concat())?;
    out.write_all(&[RATE, RATE * 4].map(u32::to_le_bytes).concat())?;
    out.write_all(&[4u16, 16].map(u16::to_le_bytes).concat())?;
    out.write_all(b"data")?;
    out.write_all(&size.to_le_bytes())?;
    for i in 0..samples {
        let left = sample(f64::from(i) / f64::from(RATE), &mut random);
        out.write_all(&[left as i16, (left * 0.7) as i16].map(i16::to_le_bytes).concat())?;
    }
    Ok(())
}

/// Telephone quality, no header.
fn speech(out: &mut dyn Write, tenths: u32) -> io::Result<()> {
    let mut random = Random::new(14);
    for i in 0..800 * tenths {
        let value = sample(f64::from(i) / 8000.0, &mut random);
        out.write_all(&(value as i16).to_le_bytes())?;
    }
    Ok(())
}

/// Fills tables, makes an index, joins, groups and sorts.
fn statements(out: &mut dyn Write, rows: u32) -> io::Result<()> {
    writeln!(out, "CREATE TABLE item(id INTEGER PRIMARY KEY, kind INTEGER, name TEXT, price INTEGER);")?;
    writeln!(out, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<{rows})")?;
    writeln!(
        out,
        "  INSERT INTO item SELECT i, (i*7919)%997, 'item '||((i*31)%{rows}), (i*i)%10007 FROM n;"
    )?;
    writeln!(out, "CREATE INDEX by_kind ON item(kind, price);")?;
    writeln!(
        out,
        "SELECT kind, count(*), sum(price), min(name) FROM item GROUP BY kind ORDER BY 3 DESC LIMIT 20;"
    )?;
    writeln!(
        out,
        "SELECT count(*), avg(a.price) FROM item a JOIN item b ON a.kind=b.kind AND b.id<=997 WHERE a.price<500;"
    )?;
    writeln!(out, "UPDATE item SET price=price+1 WHERE kind%3=0; DELETE FROM item WHERE name LIKE '%77%';")?;
    writeln!(out, "SELECT count(*), sum(price), max(length(name)) FROM item;")
}

/// The same templates for many types: parsing, instantiation and optimization. No headers, which would cost more than the rest.
fn templates(out: &mut dyn Write, types: u32) -> io::Result<()> {
    out.write_all(TEMPLATES.as_bytes())?;
    for i in 0..types {
        writeln!(
            out,
            "struct T{i} {{ long key; int rest[{}]; bool operator<(const T{i} &o) const {{ return key < o.key; }} }};\n\
             long use{i}(int n) {{ List<T{i}> l; Tree<T{i}, List<long>> t; for (int k = 0; k < n; k++) {{ l.add({{k * {i} % 97, {{k}}}}); t.at(l[k]).add(k); }}\n\
             sort(l.begin(), l.end()); long s = fold<{}>(n); for (auto &e : l) s += e.key * t.at(e).sum(); return s + t.depth(); }}",
            i % 5 + 1,
            i % 9 + 3
        )?;
    }
    Ok(())
}

const TEMPLATES: &str = "template<class T> class List { T *items = nullptr; int used = 0, room = 0;
public: ~List() { delete[] items; } T *begin() { return items; } T *end() { return items + used; } T &operator[](int i) { return items[i]; }
  void add(const T &x) { if (used == room) { T *more = new T[room = room * 2 + 4]; for (int i = 0; i < used; i++) more[i] = items[i]; delete[] items; items = more; } items[used++] = x; }
  long sum() { long s = 0; for (int i = 0; i < used; i++) s += (long)items[i]; return s; } };
template<class K, class V> class Tree { struct Node { K key; V value; Node *left = nullptr, *right = nullptr; unsigned rank; }; Node *root = nullptr; unsigned seed = 1;
  static Node *turn_right(Node *n) { Node *l = n->left; n->left = l->right; l->right = n; return l; }
  static Node *turn_left(Node *n) { Node *r = n->right; n->right = r->left; r->left = n; return r; }
  Node *insert(Node *n, const K &k, Node *&found) { if (!n) return found = new Node{k, {}, nullptr, nullptr, seed = seed * 69069 + 1};
    if (k < n->key) { n->left = insert(n->left, k, found); if (n->left->rank > n->rank) n = turn_right(n); }
    else if (n->key < k) { n->right = insert(n->right, k, found); if (n->right->rank > n->rank) n = turn_left(n); } else found = n; return n; }
  static int depth(Node *n) { if (!n) return 0; int l = depth(n->left), r = depth(n->right); return (l > r ? l : r) + 1; }
public: V &at(const K &k) { Node *found = nullptr; root = insert(root, k, found); return found->value; } int depth() { return depth(root); } };
template<class T> void sort(T *a, T *b) { if (b - a < 2) return; T p = a[(b - a) / 2]; T *i = a, *k = b - 1; while (i <= k) { while (*i < p) i++; while (p < *k) k--; if (i <= k) { T t = *i; *i++ = *k; *k-- = t; } } sort(a, k + 1); sort(i, b); }
template<int N> constexpr long fold(long x) { if constexpr (N == 0) return x; else return fold<N - 1>(x * N + (x >> N)) ^ N; }
";

fn bodies(out: &mut dyn Write, steps: u32) -> io::Result<()> {
    let program = "import math
class Body:
    def __init__(self, i):
        self.p = [math.cos(i), math.sin(i), 0.1 * i]
        self.v = [0.0, 0.0, 0.0]
def pull(a, b):
    d = [x - y for x, y in zip(a.p, b.p)]
    f = 0.001 / (0.01 + sum(x * x for x in d)) ** 1.5
    for k, x in enumerate(d):
        a.v[k] -= x * f
        b.v[k] += x * f
all = {i: Body(i) for i in range(20)}
for step in range(STEPS):
    for i, a in all.items():
        for k in range(i + 1, len(all)):
            pull(a, all[k])
    for a in all.values():
        a.p = [x + v for x, v in zip(a.p, a.v)]
print(' '.join('%.9f' % x for a in all.values() for x in a.p))
";
    out.write_all(program.replace("STEPS", &steps.to_string()).as_bytes())
}

fn counting(out: &mut dyn Write, _: u32) -> io::Result<()> {
    out.write_all(
        b"use strict; use warnings;
my (%seen, %after, $last);
while (my $line = <>) {
    chomp $line;
    for my $word (split /[ ,]+/, $line) {
        $seen{$word}++;
        $after{$last . '>' . $word}++ if defined $last && length $word > 3;
        $last = lc $word;
    }
}
for my $table (\\%seen, \\%after) {
    my @top = (sort { $table->{$b} <=> $table->{$a} || $a cmp $b } keys %$table)[0 .. 9];
    printf \"%s %d\\n\", $_, $table->{$_} for grep { defined } @top;
}
",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_repeat_and_grow_with_the_scale() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b, c) = (folder.path().join("a"), folder.path().join("b"), folder.path().join("c"));
        make(&a, 0.001).unwrap();
        make(&b, 0.001).unwrap();
        make(&c, 0.01).unwrap();
        for input in &INPUTS {
            let read = |folder: &Path| fs::read(folder.join(input.name)).unwrap();
            assert_eq!(read(&a), read(&b), "{}", input.name);
            assert!(read(&c).len() >= read(&a).len(), "{}", input.name);
        }
        assert!(
            fs::read(c.join("gzip.txt")).unwrap().len() > 5 * fs::read(a.join("gzip.txt")).unwrap().len()
        );
    }

    #[test]
    fn existing_inputs_are_kept_and_others_replaced() {
        let folder = tempfile::tempdir().unwrap();
        make(folder.path(), 0.001).unwrap();
        fs::write(folder.path().join("gzip.txt"), "marked").unwrap();
        make(folder.path(), 0.001).unwrap();
        assert_eq!(fs::read(folder.path().join("gzip.txt")).unwrap(), b"marked");
        make(folder.path(), 0.002).unwrap();
        assert_ne!(fs::read(folder.path().join("gzip.txt")).unwrap(), b"marked");
    }
}
