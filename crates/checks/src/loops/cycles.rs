//! Which instructions of a function control can go round between: its strongly connected components.
//!
//! For the copy, whose plan is of single branches. Where the code itself is changed more is known (jump tables, parts of a function
//! that lie elsewhere) and asked (which cycles other checks leave): `in_place/flow.rs`.

use super::Step;
use crate::components;

const NONE: u32 = u32::MAX;

/// By instruction: the number of its component. Instructions are taken in stretches that nothing leads into or out of but at
/// their ends, because functions of large programs have thousands.
pub fn components(steps: &[Step]) -> Vec<usize> {
    let graph = Stretches::of(steps);
    let of_stretch = components::components(graph.next.len(), |stretch, i| graph.follower(stretch, i));
    graph.of_step.iter().map(|stretch| of_stretch[*stretch as usize]).collect()
}

/// The stretches of a function, and which follow on which.
struct Stretches {
    /// By instruction: its stretch.
    of_step: Vec<u32>,
    /// By stretch: where control goes on.
    next: Vec<[u32; 2]>,
    /// By stretch: whether it ends in a jump to a place that is not known.
    anywhere: Vec<bool>,
}

impl Stretches {
    fn of(steps: &[Step]) -> Stretches {
        let index = |at: u64| steps.binary_search_by_key(&at, |s| s.at).ok();
        let mut begins = vec![false; steps.len()];
        for (i, step) in steps.iter().enumerate() {
            if let Some(to) = step.jump.and_then(index) {
                begins[to] = true;
            }
            if let Some(behind) = begins.get_mut(i + 1)
                && (step.jump.is_some() || !step.falls)
            {
                *behind = true;
            }
        }
        let mut of_step = Vec::with_capacity(steps.len());
        let mut number = 0;
        for (i, begins) in begins.iter().enumerate() {
            number += u32::from(*begins && i > 0);
            of_step.push(number);
        }
        let count = number as usize + 1;
        let (mut next, mut anywhere) = (vec![[NONE; 2]; count], vec![false; count]);
        for (i, step) in steps.iter().enumerate() {
            let here = of_step[i] as usize;
            let behind = of_step.get(i + 1).copied().filter(|b| *b as usize != here && step.falls);
            let to = step.jump.and_then(index).map(|to| of_step[to]);
            for (place, follower) in next[here].iter_mut().zip(behind.into_iter().chain(to)) {
                *place = follower;
            }
            // What jumps into the middle of an instruction is not understood.
            anywhere[here] |= step.anywhere || step.jump.is_some() && to.is_none();
        }
        Stretches { of_step, next, anywhere }
    }

    /// The `i`th stretch that control may go on with.
    fn follower(&self, stretch: usize, i: usize) -> Option<usize> {
        if self.anywhere[stretch] {
            return Some(i).filter(|to| *to < self.next.len());
        }
        let next = self.next[stretch].get(i)?;
        (*next != NONE).then_some(*next as usize)
    }
}
