//! What `sonde rap` can be told, raw as clap reads it; `layout` makes sense of it.

use std::path::PathBuf;

use clap::ValueEnum;
use sonde_rap::{Branching, Buffer, Config};

use crate::quantity::{parse_share, parse_size};

const EXAMPLES: &str = "\
Examples:
  sonde rap addresses.txt                      one number per line, decimal or 0x hexadecimal
  awk '{print $1}' access.log | sonde rap      client addresses, shown as networks
  sonde rap --column 3 --header data.csv       the third column of a CSV file
  sonde rap --column 2 --weight-column 1 FILE  'uniq -c' output: weight first, then the number
  sonde rap --columns 1,2 edges.txt            two dimensions, such as code and data address
  sonde rap --format u64le trace.bin           binary words
  sonde rap --json --hot 5% FILE | jq .hot     for programs

Exit status: 0 a report was printed (also for an empty input), 1 the report could not be written,
2 wrong usage or an input that cannot be read.";

/// Show where a stream of numbers is concentrated: hot ranges, in bounded memory, with a proven error.
///
/// Reads numbers or addresses from files or standard input and prints the ranges that hold the largest shares. Every
/// count is a lower bound that misses at most `eps` of all events, however long the input.
#[derive(clap::Args, Debug, Clone)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Files to read, as one stream; none, or `-`: standard input
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// What a number is; auto looks at the beginning of the input
    #[arg(long = "type", value_enum, default_value_t = KeyType::Auto, help_heading = "Input")]
    pub key_type: KeyType,

    /// How the input is written
    #[arg(long, value_enum, default_value_t = Format::Text, help_heading = "Input")]
    pub format: Format,

    /// Column that holds the number, from 1; without it the whole line is the number
    #[arg(long, value_name = "N", help_heading = "Input", conflicts_with = "columns")]
    pub column: Option<usize>,

    /// Two or three columns that are the dimensions of one key; binary input: 1,2 makes a key of two words
    #[arg(long, value_name = "A,B", value_delimiter = ',', help_heading = "Input")]
    pub columns: Vec<usize>,

    /// Column that holds the weight of the line, from 1
    #[arg(long, value_name = "N", help_heading = "Input")]
    pub weight_column: Option<usize>,

    /// What stands between columns: auto (commas if the first line with data has one, else blanks), blanks, comma, tab, or a character
    #[arg(long, value_name = "SEP", default_value = "auto", value_parser = parse_separator, help_heading = "Input")]
    pub separator: sonde_numbers::Separator,

    /// The first line of each file is a header: pass over it
    #[arg(long, help_heading = "Input")]
    pub header: bool,

    /// Leave out lines that cannot be read, and say how many, instead of stopping at the first
    #[arg(long, help_heading = "Input")]
    pub skip_bad: bool,

    /// Largest error of any count, as a share of all events
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = parse_share, help_heading = "Summary")]
    pub eps: f64,

    /// Sub-ranges per split: 2, 4, 8 or 16
    #[arg(short = 'b', long = "branching", value_name = "N", default_value = "4", help_heading = "Summary")]
    pub branching: Branching,

    /// Ratio between the event counts of successive merges
    #[arg(
        short = 'q',
        long = "merge-ratio",
        value_name = "Q",
        default_value_t = 2.0,
        help_heading = "Summary"
    )]
    pub merge_ratio: f64,

    /// Hard limit on the tree's memory, such as 64K; when it binds, the error that still holds is reported
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = "Summary")]
    pub max_memory: Option<usize>,

    /// Buffer that combines equal events before the tree: auto, none, unlimited, or a size such as 1K
    #[arg(long, value_name = "SIZE", default_value = "auto", value_parser = parse_buffer, help_heading = "Summary")]
    pub buffer: Buffer,

    /// Share from which a range is hot
    #[arg(long, value_name = "SHARE", default_value = "10%", value_parser = parse_share, help_heading = "Report")]
    pub hot: f64,

    /// Count exactly as well (memory grows with the distinct values) and show each hot range's true error
    #[arg(long, help_heading = "Report", conflicts_with = "dump")]
    pub exact: bool,

    /// Print every range of the tree instead of the hot ones
    #[arg(long, help_heading = "Report", conflicts_with = "json")]
    pub dump: bool,

    /// Print JSON; the keys are described in docs/rap-json.md
    #[arg(long, help_heading = "Report")]
    pub json: bool,

    /// No progress on standard error, even on a terminal
    #[arg(long, help_heading = "Report")]
    pub quiet: bool,
}

impl Args {
    /// The tree's parameters.
    pub fn config(&self) -> Config {
        let config = Config::new().eps(self.eps).branching(self.branching).merge_ratio(self.merge_ratio);
        Config { max_memory: self.max_memory, buffer: self.buffer, ..config }
    }
}

/// What a number is.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyType {
    /// Decided by the first lines: u64, u128, ipv4 or ipv6
    Auto,
    /// Numbers below 2^32
    U32,
    /// Numbers below 2^64
    U64,
    /// Numbers below 2^128
    U128,
    /// Dotted quads
    Ipv4,
    /// IPv6 addresses; IPv4 ones count as ::ffff:a.b.c.d
    Ipv6,
}

/// How the input is written.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Lines
    Text,
    /// Binary: little-endian 32-bit words
    U32le,
    /// Binary: little-endian 64-bit words
    U64le,
}

fn parse_separator(text: &str) -> Result<sonde_numbers::Separator, String> {
    use sonde_numbers::Separator::{Auto, Blanks, Byte};
    match (text, text.as_bytes()) {
        ("auto", _) => Ok(Auto),
        ("blanks", _) => Ok(Blanks),
        ("comma", _) => Ok(Byte(b',')),
        ("tab", _) => Ok(Byte(b'\t')),
        (_, &[byte]) if byte != b'\n' && byte != b'\r' => Ok(Byte(byte)),
        _ => Err("expected auto, blanks, comma, tab, or one ASCII character".into()),
    }
}

fn parse_buffer(text: &str) -> Result<Buffer, String> {
    match text {
        "auto" => Ok(Buffer::Auto),
        "none" => Ok(Buffer::None),
        "unlimited" => Ok(Buffer::Unlimited),
        size => {
            parse_size(size).map(Buffer::Bytes).map_err(|error| format!("auto, none, unlimited, or {error}"))
        }
    }
}
