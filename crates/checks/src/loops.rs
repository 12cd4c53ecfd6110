//! Loops of a function that are too simple to be worth a check (section 4.2).

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
}

/// A loop: everything between the target of a backward branch and the branch.
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
    /// Another backward branch lies in it: it is not innermost.
    pub inner: bool,
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
    let mut all = Vec::new();
    for (i, step) in steps.iter().enumerate() {
        let Some(head) = step.jump.filter(|target| *target <= step.at) else { continue };
        let from = steps.partition_point(|s| s.at < head);
        let body = &steps[from..=i];
        let leaves = |s: &Step| s.jump.is_some_and(|to| to < head) && s.falls;
        all.push(Loop {
            branch: step.at,
            head,
            references: body.iter().map(|s| s.references).sum(),
            calls: body.iter().any(|s| s.calls || leaves(s)),
            inner: body[..body.len() - 1].iter().any(|s| s.jump.is_some_and(|to| to <= s.at)),
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(at: u64, references: u32, jump: Option<u64>) -> Step {
        Step { at, references, jump, falls: true, calls: false }
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

    #[test]
    fn only_innermost_loops_are_boring() {
        let steps = [step(0, 0, None), step(2, 1, None), step(4, 0, Some(2)), step(6, 0, Some(0))];
        let found = loops(&steps);
        assert!(found[0].is_boring(4) && !found[1].is_boring(4));
    }
}
