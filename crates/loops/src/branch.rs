//! Short backward branches: all that the hardware profilers see of a program.

use sonde_event::{ExitKind, Run};

/// A taken branch to a little before itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Branch {
    /// Pc of the branch.
    pub pc: u64,
    /// Bytes from its target to it.
    pub distance: u32,
}

/// The short backward branch that a pass was left by, if it was. Conditional and unconditional direct jumps count; calls,
/// returns and indirect jumps do not, since their instructions hold no backward offset (paper 5 section 2).
#[inline]
pub(crate) fn short_backward(run: &Run<'_>, limit: u32) -> Option<Branch> {
    if !matches!(run.path.kind, ExitKind::Taken | ExitKind::Jump) || run.exit().is_none() {
        return None;
    }
    let pc = run.insns().last()?.pc;
    // A branch to itself is at distance 0.
    let distance = pc.wrapping_sub(run.path.target);
    (distance < u64::from(limit)).then_some(Branch { pc, distance: distance as u32 })
}
