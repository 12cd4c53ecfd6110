//! Hot ranges as the JSON of a run has them (docs/run-json.md); they are found and named by `sonde-report`.

use serde::Serialize;
use sonde_place::Place;
use sonde_report::view::{HotView, InlinedView};

/// What a range that reaches over several regions lies in.
const SEVERAL: &str = "several";

/// A hot range of code or data.
#[derive(Debug, Default, Serialize)]
pub struct Hot {
    /// Where it lies: a module, the heap, the stack ...
    pub region: String,
    /// First and last offset there.
    pub lo: String,
    pub hi: String,
    pub own: u64,
    pub total: u64,
    pub own_share: f64,
    pub total_share: f64,
    /// Of `total_share`, from sampling, with 95 % probability; 0 if everything was recorded.
    pub plus_minus: f64,
    /// In words.
    pub place: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// Of the hottest block, from where the module is mapped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inlined_in: Option<InlinedView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
}

impl Hot {
    /// The hottest first.
    pub fn list(mut views: Vec<HotView>) -> Vec<Hot> {
        views.sort_by_key(|view| std::cmp::Reverse(view.own_weight));
        views.into_iter().map(Hot::of).collect()
    }

    fn of(view: HotView) -> Hot {
        let side = view.sides.into_iter().next().unwrap_or_default();
        let offset = |key: &str| {
            let key = u64::from_str_radix(key.trim_start_matches("0x"), 16).unwrap_or(0);
            format!("{:#x}", Place(key).offset())
        };
        Hot {
            region: side.kind.map_or(SEVERAL.into(), |kind| region(kind, side.region.as_deref())),
            lo: offset(&side.lo),
            hi: offset(&side.hi),
            own: view.own_weight,
            total: view.weight,
            own_share: view.own_share,
            total_share: view.share,
            plus_minus: view.plus_minus,
            place: side.name,
            module: side.region.filter(|_| side.kind == Some("module")),
            offset: side.hottest.as_deref().and_then(|place| Some(place.rsplit_once('+')?.1.to_owned())),
            function: side.function,
            file: side.file,
            line: side.lines.map(|(first, _)| first),
            last_line: side.lines.map(|(_, last)| last),
            inlined_in: side.inlined_in,
            section: side.section,
            variable: side.variable,
        }
    }
}

/// A short name: files by theirs, other memory by its kind.
fn region(kind: &str, name: Option<&str>) -> String {
    match (kind, name) {
        ("module" | "file" | "kernel", Some(name)) => sonde_report::short(name).to_owned(),
        (kind, _) => kind.to_owned(),
    }
}
