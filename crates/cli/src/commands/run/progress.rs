//! One line about a running program, on a terminal only and only after a while.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sonde_launch::{Counter, Session};

use crate::quantity::{grouped, size};

/// Programs shorter than this get no line.
const PATIENCE: Duration = Duration::from_secs(1);
/// Redraws per second.
const REDRAWS: u8 = 2;

/// The line; perhaps an invisible one.
///
/// It is not shown when standard output is a terminal too: the program's own output would be torn apart.
pub struct Progress {
    line: Option<ProgressBar>,
}

impl Progress {
    /// Hidden until the program has run for a while.
    pub fn new(quiet: bool) -> Progress {
        if quiet || !io::stderr().is_terminal() || io::stdout().is_terminal() {
            return Progress { line: None };
        }
        let style =
            ProgressStyle::with_template("sonde {elapsed} {msg}").expect("the template is a constant");
        let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()).with_style(style);
        Progress { line: Some(line) }
    }

    /// Shows how far it is.
    pub fn show(&self, session: &Session) {
        let Some(line) = &self.line else { return };
        if line.elapsed() < PATIENCE {
            return;
        }
        if line.is_hidden() {
            line.set_draw_target(ProgressDrawTarget::stderr_with_hz(REDRAWS));
        }
        line.set_message(format!(
            "cpu {:.1} s, {} bursts, {} of log",
            session.cpu_time().as_secs_f64(),
            grouped(session.counter(Counter::Bursts)),
            size(session.counter(Counter::LogBytes))
        ));
        line.tick();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(line) = &self.line {
            line.finish_and_clear();
        }
    }
}
