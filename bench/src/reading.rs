//! `read`: how fast numbers come in from files: text against counting its lines and against the usual way of parsing,
//! and binary input with the tree behind it against the tree alone.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::net::Ipv4Addr;
use std::path::Path;

use anyhow::{Context, Result};
use sonde_numbers::{
    Notation, NumberKey, OnBad, RawWord, Sink, TextFormat, read_raw, read_raw_file, read_text,
};
use sonde_rap::{Config, Key, Tree};

use crate::measure::{Contender, interleave};
use crate::streams;

/// Lines per second, in millions, that text must reach.
const TEXT_GOAL: f64 = 50.0;
/// Share of the tree's own speed that binary input must reach.
const BINARY_GOAL: f64 = 0.9;

/// What can be chosen.
#[derive(clap::Args)]
pub struct Reading {
    /// Numbers in each file
    #[arg(long, default_value_t = 1 << 24)]
    lines: usize,
    /// Rounds; the median is shown
    #[arg(long, default_value_t = 7)]
    rounds: usize,
}

impl Reading {
    /// Runs the benchmark; whether every goal was reached.
    pub fn run(&self) -> Result<bool> {
        let folder = tempfile::tempdir().context("no temporary folder")?;
        println!(
            "Processor time of one thread, median of {} interleaved rounds, {} numbers per file, files in the page cache.",
            self.rounds, self.lines
        );
        let text = self.text(&folder.path().join("text"))?;
        self.other_text(&folder.path().join("text"))?;
        let binary = self.binary(&folder.path().join("words"))?;
        Ok(text && binary)
    }

    fn text(&self, file: &Path) -> Result<bool> {
        println!("\n### Text, million lines per second (goal: {TEXT_GOAL} for the reader)\n");
        println!(
            "| lines | bytes per line | count newlines | `read_line`, `parse` | reader | reader / newlines | reader / `parse` | reader and tree | tree alone | |"
        );
        println!("|---|---|---|---|---|---|---|---|---|---|");
        let mut reached = true;
        for (name, stream, line) in texts() {
            let keys = stream(self.lines);
            write_lines(file, &keys, line)?;
            reached &= measure_text(name, file, &keys, self.rounds);
        }
        Ok(reached)
    }

    /// Forms that have no goal of their own.
    fn other_text(&self, file: &Path) -> Result<()> {
        println!("\n### Text of other kinds, million lines per second\n\n| lines | reader |\n|---|---|");
        let plain = TextFormat::default;
        let weighted = TextFormat { columns: vec![1], weight_column: Some(2), ..plain() };
        let second = TextFormat { columns: vec![2], ..plain() };
        let ipv4 = TextFormat { notation: Notation::Ipv4, ..plain() };
        self.other::<u64>(
            "number and weight",
            file,
            |out, key| writeln!(out, "{key} {}", key % 100),
            &weighted,
        )?;
        self.other::<[u64; 2]>(
            "two dimensions, comma",
            file,
            |out, key| writeln!(out, "{key},{}", key >> 8),
            &plain(),
        )?;
        self.other::<u64>(
            "second of three columns",
            file,
            |out, key| writeln!(out, "main {key} x"),
            &second,
        )?;
        self.other::<u32>("IPv4", file, |out, key| writeln!(out, "{}", Ipv4Addr::from(key as u32)), &ipv4)
    }

    fn other<K: NumberKey + Key>(
        &self,
        name: &str,
        file: &Path,
        line: WriteLine,
        format: &TextFormat,
    ) -> Result<()> {
        write_lines(file, &streams::uniform(self.lines), line)?;
        let mut contenders = [Contender::new(name, self.lines, || {
            let mut sum = Sum(0);
            text_into::<K>(file, format, &mut sum);
            sum.0
        })];
        interleave(&mut contenders, self.rounds);
        println!("| {name} | {:.0} |", contenders[0].rate());
        Ok(())
    }

    fn binary(&self, file: &Path) -> Result<bool> {
        println!("\n### Binary, million words per second (goal: {BINARY_GOAL} for mapped / alone)\n");
        println!(
            "| words | blocks | blocks and tree | mapped and tree | tree alone | blocks / alone | mapped / alone | |"
        );
        println!("|---|---|---|---|---|---|---|---|");
        let generators: [(&str, Stream); 3] =
            [("zipf", streams::zipf), ("uniform", streams::uniform), ("loops", streams::loops)];
        let mut reached = true;
        for (name, stream) in generators {
            let words = stream(self.lines);
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            fs::write(file, bytes).with_context(|| file.display().to_string())?;
            reached &= measure_binary(name, file, &words, self.rounds);
        }
        Ok(reached)
    }
}

type Stream = fn(usize) -> Vec<u64>;
type WriteLine = fn(&mut dyn Write, u64) -> std::io::Result<()>;

fn texts() -> [(&'static str, Stream, WriteLine); 4] {
    let decimal: WriteLine = |out, key| writeln!(out, "{key}");
    let hexadecimal: WriteLine = |out, key| writeln!(out, "{key:#x}");
    [
        ("decimal, loops (7 digits)", streams::loops, decimal),
        ("decimal, uniform (1-10 digits)", streams::uniform, decimal),
        ("decimal, zipf (1-7 digits)", streams::zipf, decimal),
        ("0x hexadecimal, one key (12 digits)", streams::one_key, hexadecimal),
    ]
}

fn write_lines(file: &Path, keys: &[u64], line: WriteLine) -> Result<()> {
    let mut out = BufWriter::new(File::create(file).with_context(|| file.display().to_string())?);
    keys.iter().try_for_each(|&key| line(&mut out, key))?;
    Ok(out.flush()?)
}

/// A sink that only looks at the numbers.
struct Sum(u64);

impl<K: NumberKey + Key> Sink<K> for Sum {
    fn keys(&mut self, keys: &[K]) {
        self.0 = keys.iter().fold(self.0, |sum, key| sum.wrapping_add(key.mix()));
    }
    fn weighted(&mut self, keys: &[K], weights: &[u64]) {
        self.keys(keys);
        self.0 = weights.iter().fold(self.0, |sum, weight| sum.wrapping_add(*weight));
    }
}

/// A sink that counts.
struct Count<K: Key>(Tree<K>);

impl<K: Key> Count<K> {
    fn new() -> Self {
        Count(Tree::new(Config::new()).expect("the default parameters are valid"))
    }
    fn nodes(mut self) -> u64 {
        self.0.finish();
        self.0.nodes() as u64
    }
}

impl<K: Key> Sink<K> for Count<K> {
    fn keys(&mut self, keys: &[K]) {
        self.0.add_slice(keys);
    }
    fn weighted(&mut self, keys: &[K], weights: &[u64]) {
        keys.iter().zip(weights).for_each(|(&key, &weight)| self.0.add_weighted(key, weight));
    }
}

fn open(file: &Path) -> File {
    File::open(file).expect("the file was written a moment ago")
}

fn text_into<K: NumberKey>(file: &Path, format: &TextFormat, sink: &mut impl Sink<K>) {
    let counts = read_text("bench", open(file), format, OnBad::Stop, sink).expect("the file holds numbers");
    black_box(counts.numbers);
}

fn count_newlines(file: &Path) -> u64 {
    let (mut file, mut buffer, mut newlines) = (open(file), vec![0; 256 << 10], 0);
    loop {
        match file.read(&mut buffer).expect("readable") {
            0 => return newlines,
            count => newlines += memchr::memchr_iter(b'\n', &buffer[..count]).count() as u64,
        }
    }
}

fn parse_usually(file: &Path) -> u64 {
    let (mut input, mut line, mut sum) =
        (BufReader::with_capacity(256 << 10, open(file)), String::new(), 0u64);
    while input.read_line(&mut line).expect("readable") > 0 {
        let text = line.trim_end();
        let number = match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => text.parse::<u64>(),
        };
        sum = sum.wrapping_add(number.expect("a number"));
        line.clear();
    }
    sum
}

fn tree_alone(keys: &[u64]) -> u64 {
    let mut count = Count::new();
    count.0.add_slice(keys);
    count.nodes()
}

fn measure_text(name: &str, file: &Path, keys: &[u64], rounds: usize) -> bool {
    let plain = TextFormat::default();
    let mut contenders = [
        Contender::new("newlines", keys.len(), || count_newlines(file)),
        Contender::new("parse", keys.len(), || parse_usually(file)),
        Contender::new("reader", keys.len(), || {
            let mut sum = Sum(0);
            text_into::<u64>(file, &plain, &mut sum);
            sum.0
        }),
        Contender::new("reader and tree", keys.len(), || {
            let mut count = Count::<u64>::new();
            text_into(file, &plain, &mut count);
            count.nodes()
        }),
        Contender::new("tree", keys.len(), || tree_alone(keys)),
    ];
    interleave(&mut contenders, rounds);
    let [newlines, parse, reader, with_tree, tree] = &contenders;
    let reached = reader.rate() >= TEXT_GOAL;
    let bytes = fs::metadata(file).map_or(0, |metadata| metadata.len()) as f64 / keys.len() as f64;
    println!(
        "| {name} | {bytes:.1} | {:.0} | {:.0} | {:.0} | {:.2} | {:.1} | {:.0} | {:.0} | {} |",
        newlines.rate(),
        parse.rate(),
        reader.rate(),
        reader.ratio_to(newlines),
        reader.ratio_to(parse),
        with_tree.rate(),
        tree.rate(),
        verdict(reached)
    );
    reached
}

fn verdict(reached: bool) -> &'static str {
    if reached { "PASS" } else { "FAIL" }
}

fn raw_into<K: RawWord>(file: &Path, sink: &mut impl Sink<K>) {
    let counts = read_raw("bench", open(file), OnBad::Stop, sink).expect("the file holds words");
    black_box(counts.numbers);
}

fn mapped_into<K: RawWord>(file: &Path, sink: &mut impl Sink<K>) {
    let counts =
        read_raw_file("bench", &open(file), OnBad::Stop, sink, |_| ()).expect("the file holds words");
    black_box(counts.expect("the file is large enough to be mapped").numbers);
}

fn measure_binary(name: &str, file: &Path, words: &[u64], rounds: usize) -> bool {
    let mut contenders = [
        Contender::new("reader", words.len(), || {
            let mut sum = Sum(0);
            raw_into::<u64>(file, &mut sum);
            sum.0
        }),
        Contender::new("reader and tree", words.len(), || {
            let mut count = Count::<u64>::new();
            raw_into(file, &mut count);
            count.nodes()
        }),
        Contender::new("mapped and tree", words.len(), || {
            let mut count = Count::<u64>::new();
            mapped_into(file, &mut count);
            count.nodes()
        }),
        Contender::new("tree", words.len(), || tree_alone(words)),
    ];
    interleave(&mut contenders, rounds);
    let [reader, with_tree, mapped, tree] = &contenders;
    let ratio = mapped.ratio_to(tree);
    println!(
        "| {name} | {:.0} | {:.0} | {:.0} | {:.0} | {:.2} | {ratio:.2} | {} |",
        reader.rate(),
        with_tree.rate(),
        mapped.rate(),
        tree.rate(),
        with_tree.ratio_to(tree),
        verdict(ratio >= BINARY_GOAL)
    );
    ratio >= BINARY_GOAL
}
