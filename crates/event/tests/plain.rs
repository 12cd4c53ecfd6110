//! Both ways to read the references of a pass say the same.

mod synthetic;

use proptest::prelude::*;
use sonde_event::{Access, Decoder, Detail, Passes, PlainKind, Reader, Run};
use synthetic::{BASE, begin, describe, program};

/// Instructions with all kinds of references, and what ends a superblock.
const INSNS: [&[u8]; 12] = [
    &[0x48, 0x8b, 0x07],                                     // mov rax, [rdi]
    &[0x48, 0x89, 0x44, 0xce, 0x10],                         // mov [rsi+rcx*8+0x10], rax
    &[0x01, 0x06],                                           // add [rsi], eax
    &[0x50],                                                 // push rax
    &[0x59],                                                 // pop rcx
    &[0x64, 0x0f, 0xb6, 0x04, 0x25, 0x10, 0x00, 0x00, 0x00], // movzx eax, byte fs:[0x10]
    &[0x48, 0xc7, 0x07, 0x05, 0x00, 0x00, 0x00],             // mov qword [rdi], 5
    &[0x0f, 0x10, 0x06],                                     // movups xmm0, [rsi]
    &[0xf3, 0xa4],                                           // rep movsb
    &[0x75, 0x02],                                           // jne over two bytes
    &[0xe8, 0x00, 0x00, 0x00, 0x00],                         // call the next instruction
    &[0xc3],                                                 // ret
];

/// Compares; counts the passes that could be read plainly.
#[derive(Default)]
struct Compare {
    plain: u32,
    passes: u32,
}

impl Reader for Compare {
    fn run(&mut self, run: &Run<'_>) {
        self.passes += 1;
        let Some(plain) = run.plain_references() else { return };
        self.plain += 1;
        let (mut slow, mut unknown) = (run.references(), 0);
        assert_eq!(plain.len(), run.path.refs as usize);
        let mut recipes = run.plain_recipes().expect("they are plain").iter();
        for fast in plain {
            let r = slow.next().expect("as many");
            assert_eq!((fast.pc, Some(fast.address), fast.kind.size), (r.pc, r.address, r.size));
            assert_eq!(fast.kind.flags & PlainKind::LOAD != 0, r.access == Access::Load);
            assert_eq!(fast.kind.flags & PlainKind::VALUE != 0, r.value.is_some());
            assert_eq!(fast.value, r.value.unwrap_or(0));
            assert!(r.count == 1 && !r.conditional);
            let (recipe, mut column) = (recipes.next().expect("as many"), vec![7]);
            assert!(recipe.fits(run.path.words));
            assert_eq!((recipe.pc(), recipe.kind()), (fast.pc, fast.kind));
            // Two passes with the same words.
            let only = recipe.addresses(run.words, &[0, 0], run.fs_base, &mut column);
            assert_eq!(only.map_or(column.clone(), |only| vec![only; 2]), [fast.address; 2]);
            let next = [run.next_pc.unwrap_or(0); 2];
            let only = recipe.values(run.words, &[0, 0], &next, &mut column);
            assert_eq!(only.map_or(column.clone(), |only| vec![only; 2]), [fast.value; 2]);
            unknown += u16::from(r.access == Access::Load && r.value.is_none());
        }
        assert!(slow.next().is_none());
        assert_eq!(unknown, run.path.unknown_loads);
    }
}

/// Holds what is told of many passes against the passes themselves.
#[derive(Default)]
struct Together(usize);

impl Reader for Together {
    fn run(&mut self, _: &Run<'_>) {}

    fn passes(&mut self, passes: &Passes<'_>) {
        let list = passes.list();
        for taken in passes.taken() {
            let mut took = (0..).zip(list).filter(|(_, pass)| pass.exit == taken.exit);
            assert_eq!(took.next().map(|(index, _)| index), Some(taken.first));
            assert_eq!(took.count() + 1, taken.times as usize);
        }
        let references = list.iter().map(|pass| usize::from(passes.size(pass.exit).refs)).sum::<usize>();
        assert!(references <= 1 << 13 || list.len() == 1);
        assert_eq!(passes.taken().iter().map(|taken| taken.times as usize).sum::<usize>(), list.len());
        self.0 += list.len();
    }
}

#[test]
fn every_pass_is_told_of_and_counted_by_its_exit() {
    let program = program(Detail::Values);
    let mut decoder = Decoder::new(Detail::Values);
    program.iter().for_each(|described| decoder.describe(&described.words).unwrap());
    let mut log = begin(1, 1, BASE);
    for i in 0..30_000usize {
        let described = &program[i * i % 3];
        log.extend(described.record(i / 7 % described.plan.exits.len(), |_| 8));
    }
    let mut together = Together::default();
    decoder.log(1, &log, &mut together).unwrap();
    assert_eq!(together.0, 30_000);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn plain_references_are_the_references(
        insns in prop::collection::vec(0..INSNS.len(), 1..12),
        seed in any::<u64>(),
        detail in prop::sample::select(vec![Detail::Blocks, Detail::Addresses, Detail::Values]),
    ) {
        let mut code: Vec<u8> = insns.iter().flat_map(|i| INSNS[*i]).copied().collect();
        code.extend([0xc3, 0x90, 0x90, 0xc3]);
        let described = describe(&code, BASE, 0, detail);
        let mut decoder = Decoder::new(detail);
        decoder.describe(&described.words).unwrap();
        let word = |i: usize| seed.rotate_left(7 * i as u32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut compare = Compare::default();
        for exit in 0..described.plan.exits.len() {
            // Once in the middle, so that the next pc is known, and once at the end.
            let mut log = begin(1, 1, BASE);
            log.extend(described.record(exit, word));
            log.extend(described.record(exit, word));
            decoder.log(1, &log, &mut compare).unwrap();
        }
        let odd = insns.iter().any(|i| matches!(INSNS[*i], [0x0f, 0x10, 0x06] | [0xf3, 0xa4]));
        prop_assert!(odd || compare.plain > 0 || compare.passes == 0);
    }
}
