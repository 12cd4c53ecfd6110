//! The paper's headline (abstract, section 5.3): hot ranges with an average accuracy of 98 % in 8 KB, 99.73 % in 64 KB.
//!
//! Accuracy as in section 5.3: 100 minus the average over the hot ranges (10 % of all events or more) of the percentage by
//! which the estimate is off, relative to the range's *actual* count.
//!
//! Which configurations reach it, all with `b = 4` and `q = 2`. Memory as the paper counts it is the most nodes ever held, at
//! 128 bits each (section 5.2): 512 nodes are 8 KB, 4096 are 64 KB. By that count the fast tree reaches the headline with
//! the paper's own `eps` of 10 % and 1 %; the textbook tree, which has no buffer in front that keeps hot keys together,
//! needs 7 % for the small figure. By real bytes, everything included, the fast tree reaches it under a hard limit of 8
//! and 64 KiB with `eps` left at 10 % and 1 %, which it then also keeps, or nearly so: `eps_effective` is printed.

use crate::streams::{Shape, key, stream};
use crate::subject::{Subject, count};
use sonde_rap::textbook::TextbookTree;
use sonde_rap::{Config, Snapshot, Tree};

const EVENTS: usize = 1_000_000;
const HOT: f64 = 0.1;

/// Average accuracy on the hot ranges, in percent, and how many there are.
fn accuracy(summary: &Snapshot<u64>, exact: &sonde_rap::exact::SortedCounts<u64>) -> (f64, usize) {
    let hot = summary.hot(HOT);
    let error = |hot: &sonde_rap::HotRange<u64>| {
        let actual = exact.count(hot.range.lo, hot.range.hi) as f64;
        (actual - hot.total as f64) / actual * 100.0
    };
    let average = hot.iter().map(error).sum::<f64>() / hot.len().max(1) as f64;
    (100.0 - average, hot.len())
}

struct Figure {
    accuracy: f64,
    node_bytes: usize,
    held: usize,
    eps: f64,
}

fn figure<S: Subject<u64>>(config: Config, shape: Shape, what: &str) -> Figure {
    let keys: Vec<u64> = stream(shape, EVENTS, 17).into_iter().map(key).collect();
    let events: Vec<(u64, u64)> = keys.iter().map(|&key| (key, 1)).collect();
    let mut tree = S::start(config);
    tree.push_all(&keys);
    let summary = tree.summary();
    let (accuracy, hot) = accuracy(&summary, &count(&events));
    assert!(hot >= 3, "{shape:?} has hot ranges to be judged by, got {hot}");
    println!(
        "{what:<24} {:<9} {shape:?} accuracy {accuracy:8.4} % on {hot} hot ranges, at most {} nodes = {} bytes at 128 \
         bits, {} bytes held, eps_effective {:.4}",
        S::NAME,
        tree.most_nodes(),
        tree.most_nodes() * 16,
        tree.bytes(),
        summary.eps_effective
    );
    let (node_bytes, held) = (tree.most_nodes() * 16, tree.bytes());
    Figure { accuracy, node_bytes, held, eps: summary.eps_effective }
}

const HEADLINES: [(usize, f64); 2] = [(8 << 10, 98.0), (64 << 10, 99.73)];

/// Reaches both headlines with the given `eps`, counting memory as the paper does.
fn by_nodes<S: Subject<u64>>(eps: [f64; 2]) {
    for ((bytes, least), eps) in HEADLINES.into_iter().zip(eps) {
        for shape in [Shape::Pc, Shape::Value] {
            let Figure { accuracy, node_bytes, .. } =
                figure::<S>(Config::new().eps(eps), shape, &format!("eps {eps}"));
            assert!(accuracy >= least, "{accuracy} % < {least} %");
            assert!(node_bytes <= bytes, "{node_bytes} bytes of nodes > {bytes}");
        }
    }
}

#[test]
fn headline_98_percent_in_8_kb_and_99_73_percent_in_64_kb_of_nodes() {
    by_nodes::<TextbookTree<u64>>([0.07, 0.01]);
    by_nodes::<Tree<u64>>([0.1, 0.01]);
}

#[test]
fn headline_98_percent_in_8_kib_and_99_73_percent_in_64_kib_of_real_memory() {
    for ((bytes, least), eps) in HEADLINES.into_iter().zip([0.1, 0.01]) {
        for shape in [Shape::Pc, Shape::Value] {
            let limited = Config::new().eps(eps).max_memory(bytes);
            let Figure { accuracy, held, eps: told, .. } =
                figure::<Tree<u64>>(limited, shape, &format!("within {} KiB", bytes >> 10));
            assert!(accuracy >= least, "{accuracy} % < {least} %");
            assert!(held <= bytes, "{held} bytes > {bytes}");
            // Wide ranges are easily accurate: the limit must not have made the tree blind.
            assert!(told <= 1.5 * eps, "eps_effective {told} for eps {eps}");
        }
    }
}
