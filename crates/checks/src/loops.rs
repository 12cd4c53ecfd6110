//! Loops of a function: backward branches that close a cycle, and which of them are too simple to be worth a check (section
//! 4.2).

mod cycles;

/// An instruction as the analysis sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Its address.
    pub at: u64,
    /// Memory references that it makes.
    pub references: u32,
    /// It calls something, or control leaves the function in a way that is not known.
    pub calls: bool,
    /// Where it jumps to, if it jumps directly within the function.
    pub jump: Option<u64>,
    /// Whether control can also go on behind it.
    pub falls: bool,
    /// It jumps to a place of the function that is not known (a switch).
    pub anywhere: bool,
}

/// A backward branch, and everything between its target and itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The backward branch.
    pub branch: u64,
    /// Its target.
    pub head: u64,
    /// Memory references of one iteration, at most: of all instructions in between.
    pub references: u32,
    /// It calls something.
    pub calls: bool,
    /// Another loop lies in it: it is not innermost.
    pub inner: bool,
    /// Control can come from the target to the branch again. If not it is no loop: compilers lay seldom used code behind the
    /// rest, from where it jumps back.
    pub cycle: bool,
}

impl Loop {
    /// Whether it is k-boring: calls nothing, at most k references. Of nested loops only the innermost can be, so that
    /// an outer loop always meets its own check.
    pub fn is_boring(&self, k: u32) -> bool {
        !self.calls && !self.inner && self.references <= k
    }
}

/// The loops of a function, by their backward branches. `steps` is in the order of addresses.
///
/// The body is taken to be all instructions from the head to the branch: compilers lay loops out so; instructions in
/// between that are not part of it only make a loop less boring, and a body that also lies elsewhere is reached by a
/// jump out of the stretch, which counts as a call.
pub fn loops(steps: &[Step]) -> Vec<Loop> {
    let backward = |s: &Step| s.jump.filter(|target| *target <= s.at);
    if !steps.iter().any(|s| backward(s).is_some()) {
        return Vec::new();
    }
    let components = cycles::components(steps);
    let cycle = |i: usize, head: u64| {
        let to = steps.partition_point(|s| s.at < head);
        components[to] == components[i]
    };
    let closes: Vec<bool> =
        steps.iter().enumerate().map(|(i, s)| backward(s).is_some_and(|head| cycle(i, head))).collect();
    let mut all = Vec::new();
    for (i, step) in steps.iter().enumerate() {
        let Some(head) = backward(step) else { continue };
        let from = steps.partition_point(|s| s.at < head);
        let body = &steps[from..=i];
        let leaves = |s: &Step| s.jump.is_some_and(|to| to < head) && s.falls;
        all.push(Loop {
            branch: step.at,
            head,
            references: body.iter().map(|s| s.references).sum(),
            calls: body.iter().any(|s| s.calls || leaves(s)),
            inner: closes[from..i].contains(&true),
            cycle: closes[i],
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(at: u64, references: u32, jump: Option<u64>) -> Step {
        Step { at, references, jump, falls: true, ..Step::default() }
    }

    #[test]
    fn a_copying_loop_is_boring_and_one_that_calls_is_not() {
        let mut steps = [step(0, 1, None), step(4, 1, None), step(8, 0, Some(0))];
        let found = loops(&steps);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].head, found[0].branch, found[0].references), (0, 8, 2));
        assert!(found[0].is_boring(4) && !found[0].is_boring(1));
        steps[1].calls = true;
        assert!(!loops(&steps)[0].is_boring(4));
    }

    /// `if (unlikely) { .. }` lies behind the loop, and jumps back into it, or behind the function, and jumps back.
    #[test]
    fn a_jump_back_that_nothing_comes_to_again_is_no_loop() {
        let jump = |at, to| Step { falls: false, ..step(at, 0, Some(to)) };
        let end = |at| Step { falls: false, ..step(at, 0, None) };
        let steps = [step(0, 0, Some(8)), step(2, 1, None), end(4), step(8, 1, None), jump(10, 2)];
        let found = loops(&steps);
        assert!(found.len() == 1 && !found[0].cycle, "{found:?}");
        // The loop 2..6 leaves to 10, which comes back to 4: both branches close a cycle.
        let steps = [step(2, 0, Some(10)), step(4, 0, None), step(6, 0, Some(2)), end(8), jump(10, 4)];
        assert_eq!(
            loops(&steps).iter().map(|l| (l.branch, l.cycle)).collect::<Vec<_>>(),
            [(6, true), (10, true)]
        );
        // A switch may lead anywhere.
        let switch = Step { anywhere: true, calls: true, ..end(4) };
        let steps = [step(0, 0, Some(8)), step(2, 1, None), switch, step(8, 1, None), jump(10, 2)];
        assert!(loops(&steps)[0].cycle);
    }

    #[test]
    fn only_innermost_loops_are_boring() {
        let steps = [step(0, 0, None), step(2, 1, None), step(4, 0, Some(2)), step(6, 0, Some(0))];
        let found = loops(&steps);
        assert!(found[0].is_boring(4) && !found[1].is_boring(4));
    }
}
