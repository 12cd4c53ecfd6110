//! Makes sense of the options together with the beginning of the input: what a key is and how it is written.

use anyhow::{Result, bail};
use sonde_numbers::{Detected, Notation, TextFormat, detect};

use super::args::{Args, Format, KeyType};

/// The type that holds one dimension of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// 32 bits.
    W32,
    /// 64 bits.
    W64,
    /// 128 bits.
    W128,
}

/// Everything about the input that is decided before the first number is counted.
#[derive(Debug, Clone)]
pub struct Layout {
    /// The type of one dimension.
    pub width: Width,
    /// Number of dimensions.
    pub dimensions: usize,
    /// Layout and notation of text; for binary input only the notation counts, in which ranges are shown.
    pub text: TextFormat,
    /// Binary words instead of text.
    pub binary: bool,
}

/// What the options alone say about the text.
pub fn text_format(args: &Args) -> Result<TextFormat> {
    let columns = match args.column {
        Some(column) => vec![column],
        None => args.columns.clone(),
    };
    if columns.iter().chain(&args.weight_column).any(|&column| column == 0) {
        bail!("columns are counted from 1");
    }
    if args.column.is_none() && !columns.is_empty() && !(2..=3).contains(&columns.len()) {
        bail!("--columns takes two or three columns; for one use --column");
    }
    Ok(TextFormat {
        columns,
        weight_column: args.weight_column,
        separator: args.separator,
        header_lines: args.header.into(),
        ..TextFormat::default()
    })
}

/// Decides, looking at a `sample` of the input if the options leave the type open.
pub fn decide(args: &Args, sample: &[u8]) -> Result<Layout> {
    let mut text = text_format(args)?;
    let dimensions = args.columns.len().max(1);
    let binary = args.format != Format::Text;
    if binary {
        check_binary(args)?;
    }
    let (width, notation) = match (args.key_type, args.format) {
        (KeyType::Auto, Format::Text) => automatic(detect(sample, &text, dimensions)?, dimensions),
        (KeyType::Auto | KeyType::U32, Format::U32le) | (KeyType::U32, Format::Text) => {
            (Width::W32, Notation::Number)
        }
        (KeyType::Auto | KeyType::U64, Format::U64le) | (KeyType::U64, Format::Text) => {
            (Width::W64, Notation::Number)
        }
        (KeyType::Ipv4, Format::Text | Format::U32le) => (Width::W32, Notation::Ipv4),
        (KeyType::U128, Format::Text) => (Width::W128, Notation::Number),
        (KeyType::Ipv6, Format::Text) => (Width::W128, Notation::Ipv6),
        (_, Format::U32le) => bail!("--format u32le holds numbers of --type u32 or ipv4"),
        (_, Format::U64le) => bail!("--format u64le holds numbers of --type u64"),
    };
    if width == Width::W128 && dimensions > 1 {
        bail!(
            "two or three columns can hold u32, u64 or IPv4 addresses, not 128-bit numbers or IPv6 addresses"
        );
    }
    text.notation = notation;
    Ok(Layout { width, dimensions, text, binary })
}

fn automatic(detected: Option<Detected>, dimensions: usize) -> (Width, Notation) {
    match detected {
        None | Some(Detected::U64) => (Width::W64, Notation::Number),
        // Two columns of 128 bits are not offered; the line that is too large will say so.
        Some(Detected::U128) if dimensions > 1 => (Width::W64, Notation::Number),
        Some(Detected::U128) => (Width::W128, Notation::Number),
        Some(Detected::Ipv4) => (Width::W32, Notation::Ipv4),
        Some(Detected::Ipv6) => (Width::W128, Notation::Ipv6),
    }
}

fn check_binary(args: &Args) -> Result<()> {
    if args.column.is_some() || args.weight_column.is_some() || args.header {
        bail!("binary input has no columns and no header: leave out --column, --weight-column and --header");
    }
    if !args.columns.is_empty() && !args.columns.iter().copied().eq(1..=args.columns.len()) {
        bail!(
            "binary input: --columns 1,2 (or 1,2,3) makes a key of two (three) successive words, nothing else"
        );
    }
    Ok(())
}
