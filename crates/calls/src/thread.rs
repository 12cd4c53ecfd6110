//! Where a thread is: its shadow stack of calls.

use crate::contexts::ROOT;

/// Deepest stack kept; calls beyond are counted and their returns matched by number.
const DEEPEST: usize = 1 << 14;

/// Callers of where a burst began that are kept, at most.
const CALLERS: usize = 64;

/// Calls that a recursion makes in each round, at most.
const CYCLE: usize = 256;

/// A call that has not returned.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Where it returns to; none for a signal handler.
    back: Option<u64>,
    /// The context it returns to.
    context: u32,
    /// What was pending when a handler began.
    pending: Pending,
}

/// What the next pass is the target of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pending {
    /// Nothing special.
    None,
    /// A call.
    Call {
        /// Its site; none for a signal handler.
        site: Option<u64>,
        /// Where it returns to.
        back: u64,
    },
    /// A return.
    Return,
    /// An indirect jump.
    Jump,
}

/// How a return was matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returned {
    /// To the call on top, or one further down (frames were unwound).
    To(u32),
    /// To a caller from before the burst.
    Beyond,
    /// To nowhere that a call came from; the thread stays where it is.
    Unmatched,
}

/// A thread.
pub struct Thread {
    /// Its context.
    pub context: u32,
    /// What comes next.
    pub pending: Pending,
    /// Instructions since the last branch that are not yet part of a region.
    pub carry: u32,
    frames: Vec<Frame>,
    /// Where it returned to beyond the calls that were seen: the callers of where the burst began, innermost first.
    beyond: Vec<u64>,
    /// Calls deeper than is kept.
    deeper: u64,
}

impl Default for Thread {
    fn default() -> Thread {
        Thread {
            context: ROOT,
            pending: Pending::None,
            carry: 0,
            frames: Vec::new(),
            beyond: Vec::new(),
            deeper: 0,
        }
    }
}

impl Thread {
    /// A thread whose callers are not known.
    pub fn at(context: u32) -> Thread {
        Thread { context, ..Thread::default() }
    }

    /// The callers of where the burst began, as far as it returned to them, innermost first.
    pub fn take_beyond(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.beyond)
    }

    /// Whether nothing is left over from the pass before.
    #[inline]
    pub fn goes_on(&self) -> bool {
        self.pending == Pending::None && self.carry == 0
    }

    /// Goes into a callee.
    pub fn push(&mut self, back: u64, callee: u32) {
        self.push_frame(Frame { back: Some(back), context: self.context, pending: Pending::None });
        self.context = callee;
    }

    /// A handler begins: what was under way goes on after it.
    pub fn interrupt(&mut self) {
        self.push_frame(Frame { back: None, context: self.context, pending: self.pending });
        self.pending = Pending::Call { site: None, back: 0 };
    }

    /// A handler returned.
    pub fn resume(&mut self) {
        if let Some(at) = self.frames.iter().rposition(|frame| frame.back.is_none()) {
            (self.context, self.pending) = (self.frames[at].context, self.frames[at].pending);
            self.frames.truncate(at);
            self.deeper = 0;
        }
    }

    /// A return went to `target`.
    pub fn pop(&mut self, target: u64) -> Returned {
        if self.deeper > 0 && !self.is_far_below(target) {
            self.deeper -= 1;
            return Returned::To(self.context);
        }
        self.deeper = 0;
        if self.frames.is_empty() {
            if self.beyond.len() < CALLERS {
                self.beyond.push(target);
            }
            return Returned::Beyond;
        }
        match self.frames.iter().rposition(|frame| frame.back == Some(target)) {
            Some(at) => {
                let context = self.frames[at].context;
                self.frames.truncate(at);
                Returned::To(context)
            }
            None => Returned::Unmatched,
        }
    }

    /// Whether calls that return there are kept, but none near the top. Recursion that is too deep goes on as it began: such
    /// a return says that the frames above are gone, as those of exceptions that were caught.
    fn is_far_below(&self, target: u64) -> bool {
        let called = self.frames.iter().rposition(|frame| frame.back == Some(target));
        called.is_some_and(|at| at + CYCLE < self.frames.len())
    }

    /// Drops the frames above the innermost one that is in a wanted context. Returns whether there were any.
    pub fn unwind(&mut self, wanted: impl Fn(u32) -> bool) -> bool {
        if wanted(self.context) {
            return false;
        }
        let Some(at) = self.frames.iter().rposition(|frame| wanted(frame.context)) else { return false };
        self.context = self.frames[at].context;
        self.frames.truncate(at);
        self.deeper = 0;
        true
    }

    fn push_frame(&mut self, frame: Frame) {
        if self.frames.len() < DEEPEST {
            self.frames.push(frame);
        } else {
            self.deeper += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_go_to_the_call_they_match() {
        let mut thread = Thread::default();
        thread.push(100, 5);
        thread.push(200, 6);
        thread.push(300, 7);
        assert_eq!(thread.pop(999), Returned::Unmatched);
        assert_eq!(thread.pop(200), Returned::To(5), "the innermost frame was unwound");
        assert_eq!(thread.pop(100), Returned::To(ROOT));
        assert_eq!(thread.pop(50), Returned::Beyond);
    }

    #[test]
    fn a_handler_gives_back_what_it_interrupted() {
        let mut thread = Thread::default();
        thread.push(100, 5);
        thread.pending = Pending::Return;
        thread.interrupt();
        assert_eq!(thread.pending, Pending::Call { site: None, back: 0 });
        thread.push(0, 8);
        thread.push(700, 9);
        thread.resume();
        assert_eq!((thread.context, thread.pending), (5, Pending::Return));
    }

    #[test]
    fn frames_that_were_never_left_are_forgotten_when_one_far_below_returns() {
        let mut thread = Thread::default();
        thread.push(7, 2);
        for _ in 0..DEEPEST {
            thread.push(100, 3);
            thread.push(200, 4);
        }
        assert_eq!(thread.pop(7), Returned::To(ROOT));
        assert_eq!(thread.pop(100), Returned::Beyond, "nothing is left");
    }

    #[test]
    fn recursion_deeper_than_the_limit_comes_back() {
        let mut thread = Thread::default();
        for depth in 0..DEEPEST as u64 + 10 {
            thread.push(depth, 3);
        }
        for depth in (0..DEEPEST as u64 + 10).rev() {
            assert!(matches!(thread.pop(depth), Returned::To(_)));
        }
        assert_eq!(thread.pop(0), Returned::Beyond);
    }
}
