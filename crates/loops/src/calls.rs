//! Depth of calls per thread, for profilers that follow them: return addresses, matched on return, so that longjmp and
//! exceptions do not let the depth drift.

use sonde_event::{ExitKind, Run};

/// Return addresses of the activations of one thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallStack {
    backs: Vec<u64>,
    /// A return was made; where to is not known yet.
    returning: bool,
}

/// Most return addresses kept; deeper recursion forgets the oldest.
const DEEPEST: usize = 1 << 16;

impl CallStack {
    pub fn depth(&self) -> u32 {
        self.backs.len() as u32
    }

    pub fn clear(&mut self) {
        self.backs.clear();
        self.returning = false;
    }

    /// The thread goes on at `pc`. A return that matches nothing changes nothing.
    #[inline]
    pub fn arrive(&mut self, pc: u64) {
        if std::mem::take(&mut self.returning)
            && let Some(at) = self.backs.iter().rposition(|back| *back == pc)
        {
            self.backs.truncate(at);
        }
    }

    /// A pass was left.
    #[inline]
    pub fn depart(&mut self, run: &Run<'_>) {
        match run.path.kind {
            _ if run.exit().is_none() => {}
            ExitKind::Call | ExitKind::IndirectCall => {
                if self.backs.len() == DEEPEST {
                    self.backs.drain(..DEEPEST / 2);
                }
                let back = run.insns().last().map_or(0, |insn| insn.pc.wrapping_add(u64::from(insn.len)));
                self.backs.push(back);
            }
            ExitKind::Return => self.returning = true,
            _ => {}
        }
    }

    pub fn memory_bytes(&self) -> usize {
        self.backs.capacity() * 8
    }
}
