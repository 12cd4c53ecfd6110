//! Where a thread is: its shadow stack of calls.

use crate::contexts::ROOT;

/// Deepest stack kept; calls beyond are counted and their returns matched by number.
const DEEPEST: usize = 1 << 14;

/// Callers of where a burst began that are kept, at most.
const CALLERS: usize = 64;

/// Calls that a recursion makes in each round, at most.
const CYCLE: usize = 256;

/// Where the frame of a signal handler returns to; no call does.
const HANDLER: u64 = 0;

/// Functions that follow each other by jumps from the end of one to the beginning of the next, each shown as called by the one
/// before. Interpreters go from one to the next for ever: further ones are shown as called by the first, since every order
/// would be a context of its own.
const MOST_TAILS: u8 = 4;

/// What one stack frame was used for.
#[derive(Clone, Copy, Debug)]
struct Level {
    /// The context of the function that was called.
    base: u32,
    /// The function that uses it now.
    function: u64,
    /// Functions that followed the first in the same frame.
    tails: u8,
    /// The call that is being looked up, by its site, and the context of its caller.
    binding: Option<(Option<u64>, u32)>,
}

impl Level {
    fn of(base: u32, function: u64) -> Level {
        Level { base, function, tails: 0, binding: None }
    }
}

/// A call that has not returned.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Where it returns to; none where a signal handler interrupted.
    back: Option<u64>,
    /// The context it returns to.
    context: u32,
    /// What that context's frame was used for.
    level: Level,
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
        /// Whether it is looked up first.
        binding: bool,
    },
    /// A jump to the beginning of a function.
    Tail {
        /// Its site.
        site: u64,
        /// Whether it is looked up first.
        binding: bool,
    },
    /// A return.
    Return,
    /// A jump of which only its target tells what it is.
    Jump {
        /// Its site.
        site: u64,
        /// First address and end of the function it is in; both 0 if that is not known.
        within: (u64, u64),
        /// Whether its target is computed.
        indirect: bool,
    },
}

impl Pending {
    /// Whether a callee is on its way.
    pub fn calls(&self) -> bool {
        matches!(self, Pending::Call { .. } | Pending::Tail { .. })
    }

    /// The callee is looked up first.
    pub fn bind(&mut self) {
        if let Pending::Call { binding, .. } | Pending::Tail { binding, .. } = self {
            *binding = true;
        }
    }
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
    level: Level,
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
            level: Level::of(ROOT, 0),
            frames: Vec::new(),
            beyond: Vec::new(),
            deeper: 0,
        }
    }
}

impl Thread {
    /// A thread whose callers are not known.
    pub fn at(context: u32, function: u64) -> Thread {
        Thread { context, level: Level::of(context, function), ..Thread::default() }
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
    pub fn push(&mut self, back: u64, callee: u32, function: u64) {
        self.push_frame(Some(back), Pending::None);
        self.go_on_as(callee, function);
    }

    /// The context that a jump to the beginning of another function calls it from.
    pub fn calls_from(&self) -> u32 {
        if self.level.tails < MOST_TAILS { self.context } else { self.level.base }
    }

    /// Goes on in another function that uses the same frame.
    pub fn follow(&mut self, callee: u32, function: u64) {
        (self.context, self.level.function) = (callee, function);
        self.level.tails = self.level.tails.saturating_add(1);
    }

    /// The frame is of what looks the callee of a call up.
    pub fn binds(&mut self, site: Option<u64>, caller: u32) {
        self.level.binding = Some((site, caller));
    }

    /// The call that was looked up, by its site, and the context of its caller: once.
    pub fn bound(&mut self) -> Option<(Option<u64>, u32)> {
        self.level.binding.take()
    }

    /// A function begins in a frame of its own.
    pub fn go_on_as(&mut self, callee: u32, function: u64) {
        (self.context, self.level) = (callee, Level::of(callee, function));
    }

    /// A handler begins: what was under way goes on after it.
    pub fn interrupt(&mut self) {
        self.push_frame(None, self.pending);
        self.pending = Pending::Call { site: None, back: HANDLER, binding: false };
    }

    /// A handler returned. Whether its beginning was seen.
    pub fn resume(&mut self) -> bool {
        let Some(at) = self.frames.iter().rposition(|frame| frame.back.is_none()) else { return false };
        self.pending = self.frames[at].pending;
        self.go_back(at);
        true
    }

    /// Goes back to where frame number `at` was made. Returns the context.
    fn go_back(&mut self, at: usize) -> u32 {
        (self.context, self.level) = (self.frames[at].context, self.frames[at].level);
        self.frames.truncate(at);
        self.deeper = 0;
        self.context
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
            Some(at) => Returned::To(self.go_back(at)),
            None => self.pop_handler(),
        }
    }

    /// A handler returns to code that ends it by a system call, not to a call.
    fn pop_handler(&mut self) -> Returned {
        let interrupted = self.frames.iter().rposition(|frame| frame.back.is_none());
        let handler = interrupted.map(|at| at + 1);
        match handler.filter(|at| self.frames.get(*at).is_some_and(|frame| frame.back == Some(HANDLER))) {
            Some(at) => Returned::To(self.go_back(at)),
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
        self.go_back(at);
        true
    }

    /// Renumbers every context.
    pub fn renumber(&mut self, number: impl Fn(u32) -> u32) {
        let change = |level: &mut Level| {
            level.base = number(level.base);
            level.binding = level.binding.map(|(site, caller)| (site, number(caller)));
        };
        self.context = number(self.context);
        change(&mut self.level);
        for frame in &mut self.frames {
            frame.context = number(frame.context);
            change(&mut frame.level);
        }
    }

    /// Asks for a context of each active function that has none, from the outermost one on: with its caller's and the function.
    /// It was called when there was no room, and may stay active for long.
    pub fn revive(&mut self, is_lost: impl Fn(u32) -> bool, mut enter: impl FnMut(u32, u64) -> u32) {
        let mut caller = ROOT;
        let frames = self.frames.iter_mut().map(|frame| (&mut frame.context, &mut frame.level));
        for (context, level) in frames.chain([(&mut self.context, &mut self.level)]) {
            if is_lost(*context) && level.function != 0 {
                *context = enter(caller, level.function);
                level.base = *context;
            }
            caller = *context;
        }
    }

    fn push_frame(&mut self, back: Option<u64>, pending: Pending) {
        if self.frames.len() < DEEPEST {
            self.frames.push(Frame { back, context: self.context, level: self.level, pending });
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
        thread.push(100, 5, 9);
        thread.push(200, 6, 9);
        thread.push(300, 7, 9);
        assert_eq!(thread.pop(999), Returned::Unmatched);
        assert_eq!(thread.pop(200), Returned::To(5), "the innermost frame was unwound");
        assert_eq!(thread.pop(100), Returned::To(ROOT));
        assert_eq!(thread.pop(50), Returned::Beyond);
    }

    #[test]
    fn a_handler_gives_back_what_it_interrupted() {
        let mut thread = Thread::default();
        thread.push(100, 5, 9);
        thread.pending = Pending::Return;
        thread.interrupt();
        assert_eq!(thread.pending, Pending::Call { site: None, back: HANDLER, binding: false });
        thread.push(0, 8, 9);
        thread.push(700, 9, 9);
        thread.resume();
        assert_eq!((thread.context, thread.pending), (5, Pending::Return));
    }

    #[test]
    fn frames_that_were_never_left_are_forgotten_when_one_far_below_returns() {
        let mut thread = Thread::default();
        thread.push(7, 2, 9);
        for _ in 0..DEEPEST {
            thread.push(100, 3, 9);
            thread.push(200, 4, 9);
        }
        assert_eq!(thread.pop(7), Returned::To(ROOT));
        assert_eq!(thread.pop(100), Returned::Beyond, "nothing is left");
    }

    #[test]
    fn recursion_deeper_than_the_limit_comes_back() {
        let mut thread = Thread::default();
        for depth in 0..DEEPEST as u64 + 10 {
            thread.push(depth, 3, 9);
        }
        for depth in (0..DEEPEST as u64 + 10).rev() {
            assert!(matches!(thread.pop(depth), Returned::To(_)));
        }
        assert_eq!(thread.pop(0), Returned::Beyond);
    }
}
