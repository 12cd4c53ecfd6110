//! `rap`: the table of rates on each stream, the ratios that must be reached, and the gain of the merging buffer by size.

use sonde_rap::{Buffer, Key};

use crate::measure::{Contender, interleave};
use crate::{contenders, floors, streams};

/// Events for the contenders that take a tenth of a microsecond each or more: a whole stream would take minutes.
const SLOW_EVENTS: usize = 1 << 22;

/// Makes a stream of so many events.
type Generator = fn(usize) -> Vec<u64>;

struct Options {
    events: usize,
    rounds: usize,
    only: Option<String>,
}

/// Runs the benchmark; whether every ratio was reached.
pub fn run(arguments: &[String]) -> Result<bool, String> {
    let options = parse(arguments)?;
    println!(
        "Million events per second, median of {} interleaved rounds, {} events (the sketch and the textbook tree: the first \
         {}), eps 1 %, b = 4, one thread, default options.\n",
        options.rounds,
        options.events,
        options.events.min(SLOW_EVENTS)
    );
    let mut goals = Vec::new();
    let numbers: [(&str, Generator); 5] = [
        ("zipf", streams::zipf),
        ("uniform", streams::uniform),
        ("loops", streams::loops),
        ("one key", streams::one_key),
        ("scattered", streams::scattered),
    ];
    let wanted = |name: &str| options.only.as_deref().is_none_or(|only| only == name);
    for (name, stream) in numbers {
        if wanted(name) {
            measure_numbers(name, &stream(options.events), options.rounds, &mut goals);
        }
    }
    if wanted("edges") {
        measure_edges(&streams::edges(options.events / 2), options.rounds, &mut goals);
    }
    if wanted("buffer") {
        measure_buffers(&options);
    }
    println!("### Goals\n\n| goal | wanted | measured | |\n|---|---|---|---|");
    for goal in &goals {
        let verdict = if goal.reached() { "PASS" } else { "FAIL" };
        println!("| {} | {} | {:.2} | {verdict} |", goal.what, goal.wanted, goal.measured);
    }
    Ok(goals.iter().all(Goal::reached))
}

fn parse(arguments: &[String]) -> Result<Options, String> {
    let mut options = Options { events: 1 << 25, rounds: 7, only: None };
    let mut rest = arguments.iter();
    while let Some(option) = rest.next() {
        let value = rest.next().ok_or(format!("{option} needs a value"))?;
        let number = || value.parse().map_err(|_| format!("{option}: '{value}' is no number"));
        match option.as_str() {
            "--events" => options.events = number()?,
            "--rounds" => options.rounds = number()?,
            "--only" => options.only = Some(value.clone()),
            _ => return Err(format!("unknown option '{option}'")),
        }
    }
    if options.events < 1024 || options.rounds == 0 {
        return Err("at least 1024 events and one round".to_owned());
    }
    Ok(options)
}

struct Goal {
    what: String,
    wanted: f64,
    measured: f64,
}

impl Goal {
    fn reached(&self) -> bool {
        self.measured >= self.wanted
    }
}

/// Which floor a stream is measured against, and how near ours must come.
fn goals_of(stream: &str) -> &'static [(usize, f64)] {
    match stream {
        "zipf" => &[(BRANCH_FREE, 0.35), (EXACT, 5.0)],
        "uniform" => &[(BRANCH_FREE, 0.75), (EXACT, 5.0)],
        "loops" => &[(BRANCHY, 0.85)],
        "one key" => &[(SUM, 0.7)],
        _ => &[],
    }
}

const SUM: usize = 0;
const BRANCH_FREE: usize = 1;
const BRANCHY: usize = 2;
const EXACT: usize = 3;

fn measure_numbers(name: &str, keys: &[u64], rounds: usize, goals: &mut Vec<Goal>) {
    let few = &keys[..keys.len().min(SLOW_EVENTS)];
    let mut all = vec![
        Contender::new("summing the array (floor)", keys.len(), || floors::sum(keys)),
        Contender::new("1 KiB table, branch-free (floor)", keys.len(), || floors::table_branch_free(keys)),
        Contender::new("1 KiB table, branchy (floor)", keys.len(), || floors::table_branchy(keys)),
        Contender::new("FxHashMap, exact", keys.len(), || contenders::exact(keys)),
        Contender::new("datasketches frequent items", few.len(), || contenders::frequent_items(few)),
        Contender::new("textbook RAP", few.len(), || contenders::textbook(few)),
        Contender::new("**ours**", keys.len(), || contenders::ours(keys)),
    ];
    interleave(&mut all, rounds);
    print_table(name, &all);
    let ours = all.last().expect("seven contenders");
    for &(floor, wanted) in goals_of(name) {
        let what = format!("{name}: ours / {}", all[floor].name);
        goals.push(Goal { what, wanted, measured: ours.ratio_to(&all[floor]) });
    }
}

fn measure_edges(pairs: &[[u64; 2]], rounds: usize, goals: &mut Vec<Goal>) {
    let few = &pairs[..pairs.len().min(SLOW_EVENTS)];
    let mut all = vec![
        Contender::new("FxHashMap, exact", pairs.len(), || contenders::exact(pairs)),
        Contender::new("datasketches frequent items", few.len(), || contenders::frequent_items(few)),
        Contender::new("textbook RAP", few.len(), || contenders::textbook(few)),
        Contender::new("**ours**", pairs.len(), || contenders::ours(pairs)),
    ];
    interleave(&mut all, rounds);
    print_table("edges (2-D)", &all);
    let measured = all.last().expect("four contenders").rate();
    goals.push(Goal { what: "edges (2-D): million events/s".to_owned(), wanted: 50.0, measured });
}

fn print_table(stream: &str, all: &[Contender]) {
    let ours = all.last().expect("ours is there");
    println!("### {stream}\n\n| | M events/s | ours is |\n|---|---|---|");
    for contender in all {
        println!("| {} | {:.1} | {:.2} x |", contender.name, contender.rate(), ours.ratio_to(contender));
    }
    println!();
}

/// Figure 4: what the buffer gains over none, by its size. Ours with nothing else in front: no choice by block, no runs.
fn measure_buffers(options: &Options) {
    println!("### Merging buffer: speed-up over no buffer, by size (our tree, buffer always used)\n");
    println!("| stream | none, M events/s | 1 KiB | 4 KiB | 16 KiB | 64 KiB | 256 KiB | 1 MiB | unlimited |");
    println!("|---|---|---|---|---|---|---|---|---|");
    let events = options.events.min(SLOW_EVENTS);
    buffer_row("zipf", &streams::zipf(events), options.rounds);
    buffer_row("uniform", &streams::uniform(events), options.rounds);
    buffer_row("loops", &streams::loops(events), options.rounds);
    buffer_row("one key", &streams::one_key(events), options.rounds);
    buffer_row("scattered", &streams::scattered(events), options.rounds);
    buffer_row("edges (2-D)", &streams::edges(events), options.rounds);
    println!();
}

fn buffer_row<K: Key>(name: &str, keys: &[K], rounds: usize) {
    let sizes = [1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20].map(Buffer::Bytes);
    let buffers = [Buffer::None].into_iter().chain(sizes).chain([Buffer::Unlimited]);
    let mut all: Vec<Contender> = buffers
        .map(|buffer| {
            Contender::new(format!("{buffer:?}"), keys.len(), move || contenders::ours_with(keys, buffer))
        })
        .collect();
    interleave(&mut all, rounds.div_ceil(2));
    print!("| {name} | {:.1} ", all[0].rate());
    all[1..].iter().for_each(|one| print!("| {:.2} x ", one.ratio_to(&all[0])));
    println!("|");
}
