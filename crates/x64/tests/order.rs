//! The order of an instruction's references is the program's: what is loaded comes before what is stored from it.

use sonde_x64::memory::{Access, Value};
use sonde_x64::plan::{Detail, Limits, NoSink, Plan, Planner};

const PC: u64 = 0x40_1000;

/// The plan of some code, followed by a return.
fn plan(code: &[u8], detail: Detail) -> Plan {
    let code = [code, &[0xc3]].concat();
    let mut plan = Plan::default();
    let mut fetch = |at: u64| code.get((at - PC) as usize..).filter(|bytes| !bytes.is_empty());
    Planner::new(detail, Limits::default()).plan(PC, usize::MAX, &mut fetch, &mut plan, &mut NoSink);
    plan
}

const COPIES: [(&str, &[u8]); 9] = [
    ("movsb", &[0xa4]),
    ("movsw", &[0x66, 0xa5]),
    ("movsd", &[0xa5]),
    ("movsq", &[0x48, 0xa5]),
    ("rep movsb", &[0xf3, 0xa4]),
    ("rep movsq", &[0xf3, 0x48, 0xa5]),
    ("push [rdi]", &[0xff, 0x37]),
    ("pop [rdi]", &[0x8f, 0x07]),
    ("add [rdi], eax", &[0x01, 0x07]),
];

#[test]
fn loads_come_before_stores() {
    for detail in [Detail::Addresses, Detail::Values] {
        for (name, code) in COPIES {
            let plan = plan(code, detail);
            let of_first: Vec<Access> = plan.refs.iter().filter(|r| r.insn == 0).map(|r| r.access).collect();
            assert_eq!(of_first, [Access::Load, Access::Store], "{name}");
        }
    }
}

#[test]
fn a_copy_stores_what_it_loads() {
    // A load before it: its value must not be taken for that of the copy.
    let before: &[u8] = &[0x48, 0x8b, 0x02];
    for (name, code) in &COPIES[..4] {
        let plan = plan(&[before, code].concat(), Detail::Values);
        let [other, load, store] = &plan.refs[..3] else { panic!("{name}: {:?}", plan.refs) };
        assert_ne!(load.value, Value::Unknown, "{name}");
        assert_eq!(load.value, store.value, "{name}");
        assert_ne!(other.value, load.value, "{name}");
    }
}
