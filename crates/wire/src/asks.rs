//! How an interrupted thread asks whether it may make system calls, and how Sonde answers: one word for each that asks.

/// Threads that can ask at a time.
pub const PLACES: usize = 32;

/// A thread waits for an answer.
pub const ASKED: u8 = 1;
/// It may.
pub const YES: u8 = 2;
/// It may not.
pub const NO: u8 = 3;
/// It has given up.
pub const LATE: u8 = 4;

/// Which thread asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The one with this number.
    Thread(i32),
    /// The one on which Sonde holds the perf event with this descriptor.
    Event(i32),
}

/// A question or an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Who asks.
    pub by: By,
    /// One of the constants above.
    pub state: u8,
}

const EVENT: u64 = 1 << 8;

/// As a word; never 0.
pub fn encode(ask: Ask) -> u64 {
    let (number, kind) = match ask.by {
        By::Thread(tid) => (tid, 0),
        By::Event(fd) => (fd, EVENT),
    };
    (number as u32 as u64) << 32 | kind | u64::from(ask.state)
}

/// From a word; none if nobody asks there.
pub fn decode(word: u64) -> Option<Ask> {
    let number = (word >> 32) as i32;
    let by = if word & EVENT != 0 { By::Event(number) } else { By::Thread(number) };
    let state = word as u8;
    (ASKED..=LATE).contains(&state).then_some(Ask { by, state })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_what_was_put_in() {
        for by in [By::Thread(1), By::Thread(i32::MAX), By::Event(0), By::Event(77)] {
            for state in [ASKED, YES, NO, LATE] {
                let ask = Ask { by, state };
                assert_eq!(decode(encode(ask)), Some(ask));
            }
        }
        assert_eq!(decode(0), None);
        assert_eq!(decode(u64::MAX), None);
    }
}
