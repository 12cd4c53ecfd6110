//! Hot data streams as columns.

use super::columns::even;
use crate::error::ProfileError;
use crate::wire;
use sonde_streams::{Lost, Shape, Stream, StreamsProfile};

pub(crate) fn encode(streams: &StreamsProfile) -> wire::Streams {
    let all = &streams.streams;
    let lost = &streams.lost;
    wire::Streams {
        references: streams.references,
        bursts: streams.bursts,
        parts: streams.parts,
        lowest_threshold: streams.lowest_threshold,
        highest_threshold: streams.highest_threshold,
        min_length: streams.min_length,
        max_length: streams.max_length,
        max_streams: streams.max_streams,
        without_address: lost.without_address,
        conditional: lost.conditional,
        repetitions: lost.repetitions,
        grammar_restarts: lost.grammar_restarts,
        table_restarts: lost.table_restarts,
        streams_lost: lost.streams,
        heat_lost: lost.heat,
        gaps: lost.gaps,
        length: all.iter().map(|stream| stream.pcs.len() as u32).collect(),
        frequency: all.iter().map(|stream| stream.frequency).collect(),
        at_most: all.iter().map(|stream| stream.at_most).collect(),
        shape: all.iter().map(|stream| shape(stream.shape).0 as i32).collect(),
        step: all.iter().map(|stream| shape(stream.shape).1).collect(),
        pc: all.iter().flat_map(|stream| &stream.pcs).copied().collect(),
        address: all.iter().flat_map(|stream| &stream.addresses).copied().collect(),
    }
}

fn shape(shape: Shape) -> (wire::StreamShape, i64) {
    match shape {
        Shape::Irregular => (wire::StreamShape::Irregular, 0),
        Shape::Repeated => (wire::StreamShape::Repeated, 0),
        Shape::Sequential => (wire::StreamShape::Sequential, 0),
        Shape::Strided { stride } => (wire::StreamShape::Strided, stride),
        Shape::PointerChasing { links } => (wire::StreamShape::PointerChasing, links.into()),
    }
}

fn decode_shape(code: i32, step: i64) -> Option<Shape> {
    Some(match wire::StreamShape::try_from(code).ok()? {
        wire::StreamShape::Irregular => Shape::Irregular,
        wire::StreamShape::Repeated => Shape::Repeated,
        wire::StreamShape::Sequential => Shape::Sequential,
        wire::StreamShape::Strided => Shape::Strided { stride: step },
        wire::StreamShape::PointerChasing => Shape::PointerChasing { links: u32::try_from(step).ok()? },
    })
}

pub(crate) fn decode(streams: &wire::Streams) -> Result<StreamsProfile, ProfileError> {
    let lengths = [
        streams.length.len(),
        streams.frequency.len(),
        streams.at_most.len(),
        streams.shape.len(),
        streams.step.len(),
    ];
    even("streams", &lengths)?;
    even("streams", &[streams.pc.len(), streams.address.len()])?;
    let (mut pcs, mut addresses) = (&streams.pc[..], &streams.address[..]);
    let mut all = Vec::with_capacity(streams.length.len());
    for (i, length) in streams.length.iter().enumerate() {
        let length = *length as usize;
        let bad = || ProfileError::damaged(format!("stream {i} is cut off, or of no known shape"));
        let (pc, other_pcs) = pcs.split_at_checked(length).ok_or_else(bad)?;
        let (address, other_addresses) = addresses.split_at_checked(length).ok_or_else(bad)?;
        (pcs, addresses) = (other_pcs, other_addresses);
        all.push(Stream {
            pcs: pc.to_vec(),
            addresses: address.to_vec(),
            frequency: streams.frequency[i],
            at_most: streams.at_most[i],
            shape: decode_shape(streams.shape[i], streams.step[i]).ok_or_else(bad)?,
        });
    }
    even("streams", &[pcs.len(), 0])?;
    Ok(StreamsProfile {
        streams: all,
        references: streams.references,
        bursts: streams.bursts,
        parts: streams.parts,
        lowest_threshold: streams.lowest_threshold,
        highest_threshold: streams.highest_threshold,
        min_length: streams.min_length,
        max_length: streams.max_length,
        max_streams: streams.max_streams,
        lost: Lost {
            without_address: streams.without_address,
            conditional: streams.conditional,
            repetitions: streams.repetitions,
            grammar_restarts: streams.grammar_restarts,
            table_restarts: streams.table_restarts,
            streams: streams.streams_lost,
            heat: streams.heat_lost,
            gaps: streams.gaps,
        },
    })
}
