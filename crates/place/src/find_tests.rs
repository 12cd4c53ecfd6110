use super::*;

const FIRST: &str = "\
55d000000000-55d000001000 r--p 00000000 fe:01 131 /opt/program
55d000001000-55d000003000 r-xp 00001000 fe:01 131 /opt/program
55d000003000-55d000004000 rw-p 00002000 fe:01 131 /opt/program
55d000004000-55d000008000 rw-p 00000000 00:00 0 
55d000100000-55d000121000 rw-p 00000000 00:00 0 [heap]
7f0000000000-7f0000100000 rw-p 00000000 00:00 0 
7f0000200000-7f0000201000 r--p 00003000 fe:01 77 /data/table
7f0000300000-7f0000302000 r-xp 00000000 fe:01 78 /lib/libx.so
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0 [stack]
7ffc00100000-7ffc00102000 r-xp 00000000 00:00 0 [vdso]
";

fn mapped(text: &str) -> Places {
    let mut places = Places::new();
    map(&mut places, text);
    places
}

fn map(places: &mut Places, text: &str) {
    for line in text.lines() {
        let mut mapping = Mapping::parse(line).unwrap();
        if mapping.name.starts_with("/opt") {
            mapping.build_id = vec![7, 7];
        }
        places.map(&mapping);
    }
}

fn told(places: &mut Places, address: u64) -> (Kind, String, u64) {
    let place = places.place(address);
    let region = places.regions().get(place).unwrap();
    (region.kind, region.name.clone(), place.offset())
}

/// The same program, elsewhere.
fn moved(text: &str, by: u64) -> String {
    let hex = |text: &str| u64::from_str_radix(text, 16).unwrap() + by;
    let line = |line: &str| {
        let (range, rest) = line.split_once(' ').unwrap();
        let (start, end) = range.split_once('-').unwrap();
        format!("{:x}-{:x} {rest}\n", hex(start), hex(end))
    };
    text.lines().map(line).collect()
}

#[test]
fn each_kind_of_memory_has_its_places() {
    let mut places = mapped(FIRST);
    let program = |offset| (Kind::Module, "/opt/program".to_owned(), offset);
    assert_eq!(told(&mut places, 0x55d0_0000_0010), program(0x10));
    assert_eq!(told(&mut places, 0x55d0_0000_1010), program(0x1010));
    assert_eq!(
        told(&mut places, 0x55d0_0000_3010),
        program(0x3010),
        "by where it lies, not by the file's offset"
    );
    assert_eq!(told(&mut places, 0x55d0_0000_7ff8), program(0x7ff8), "uninitialized data");
    assert_eq!(told(&mut places, 0x55d0_0010_0020), (Kind::Heap, "[heap]".into(), 0x20));
    assert_eq!(told(&mut places, 0x7f00_0020_0004), (Kind::File, "/data/table".into(), 0x3004));
    assert_eq!(told(&mut places, 0x7ffc_0002_0ff8), (Kind::Stack, "[stack]".into(), TOP - 8));
    assert_eq!(told(&mut places, 0x7ffc_0010_0004), (Kind::Kernel, "[vdso]".into(), 4));
    assert_eq!(told(&mut places, 0x7f00_0000_0000).0, Kind::Anonymous);
    assert_eq!(told(&mut places, 0x1234), (Kind::Unknown, String::new(), 0x1234));
}

#[test]
fn a_program_that_lies_elsewhere_has_the_same_places() {
    let (mut here, mut there) = (mapped(FIRST), mapped(&moved(FIRST, 0x12_3000)));
    assert_eq!(here.regions(), there.regions());
    for mapping in FIRST.lines().filter_map(Mapping::parse) {
        for address in [mapping.start, mapping.start + 8, mapping.end - 1] {
            assert_eq!(here.find(address), there.find(address + 0x12_3000), "{mapping}");
        }
    }
}

#[test]
fn the_heap_and_the_stack_grow_unseen() {
    let mut places = mapped(FIRST);
    assert_eq!(told(&mut places, 0x55d0_0020_0000), (Kind::Heap, "[heap]".into(), 0x10_0000));
    assert_eq!(told(&mut places, 0x7ffb_fff0_0000).0, Kind::Stack);
    assert_eq!(places.find(0x7ffb_0000_0000), None, "too far below");
    assert_eq!(places.find(0x60d0_0000_0000), None, "too far above the heap");
    map(&mut places, "55d000100000-55d000200000 rw-p 00000000 00:00 0 [heap]");
    assert_eq!(told(&mut places, 0x55d0_0010_0020).2, 0x20);
}

#[test]
fn stacks_of_threads_end_at_their_top_and_do_not_grow() {
    let mut places = mapped(FIRST);
    map(&mut places, "7f0000000000-7f0000080000 rw-p 00000000 00:00 0 [stack of thread 2]");
    let (kind, name, offset) = told(&mut places, 0x7f00_0007_fff8);
    assert_eq!((kind, name.as_str(), offset), (Kind::Stack, "[stack of thread 2]", TOP - 8));
    assert_eq!(told(&mut places, 0x7f00_0008_0000).0, Kind::Anonymous, "what it was cut out of");
    assert_eq!(places.find(0x7eff_ffff_f000), None, "below is a guard page, or another's memory");
}

#[test]
fn what_is_mapped_later_wins_and_the_rest_stays() {
    let mut places = mapped(FIRST);
    assert_eq!(told(&mut places, 0x7f00_0000_2000).0, Kind::Anonymous);
    map(&mut places, "7f0000002000-7f0000003000 r-xp 00000000 fe:01 9 /lib/b.so");
    assert_eq!(told(&mut places, 0x7f00_0000_2008), (Kind::Module, "/lib/b.so".into(), 8));
    assert_eq!(told(&mut places, 0x7f00_0000_1fff).0, Kind::Anonymous);
    assert_eq!(told(&mut places, 0x7f00_0000_3000).0, Kind::Anonymous);
}

#[test]
fn a_library_loaded_again_elsewhere_is_the_same_region() {
    let mut places = mapped(FIRST);
    let before = places.find(0x7f00_0030_0010);
    map(&mut places, "7f0000500000-7f0000502000 r-xp 00000000 fe:01 78 /lib/libx.so");
    assert_eq!(places.find(0x7f00_0050_0010), before);
}

#[test]
fn regions_of_two_runs_come_together() {
    let (a, b) = (
        mapped(FIRST),
        mapped(
            "1000-2000 r-xp 00000000 fe:01 5 /lib/other.so\n55d000000000-55d000001000 r-xp 00000000 fe:01 1 /opt/renamed",
        ),
    );
    let mut all = a.regions().clone();
    let numbers = all.remap(b.regions());
    assert_eq!(numbers[0], 0);
    assert_eq!(all.all()[usize::from(numbers[1])].name, "/lib/other.so");
    assert_eq!(all.all()[usize::from(numbers[2])].name, "/opt/program", "the same build under another name");
}
