//! Progress of long inputs, on a terminal only and only after a while: short runs and pipes stay silent.

use std::io::{self, IsTerminal, Read};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Bytes between two looks at the clock, so that the clock costs nothing.
const LOOK_EVERY: u64 = 1 << 20;
/// Runs shorter than this show no bar.
const PATIENCE: Duration = Duration::from_millis(700);

/// Redraws per second.
const REDRAWS: u8 = 5;

/// A progress bar over all inputs together; perhaps an invisible one.
pub struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    /// `total_bytes` is unknown for pipes, which get a spinner.
    pub fn new(total_bytes: Option<u64>, quiet: bool) -> Self {
        if quiet || !io::stderr().is_terminal() {
            return Progress { bar: None };
        }
        let template = match total_bytes {
            Some(_) => "reading {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}",
            None => "reading {spinner} {bytes} {bytes_per_sec}",
        };
        let style = ProgressStyle::with_template(template).expect("the template is a constant");
        // Hidden until the first look after the patience is over.
        let bar = ProgressBar::with_draw_target(total_bytes, ProgressDrawTarget::hidden()).with_style(style);
        Progress { bar: Some(bar) }
    }

    /// Tells the bar that so many bytes are done.
    pub fn passed(&self, bytes: u64) {
        let Some(bar) = &self.bar else { return };
        if bar.is_hidden() && bar.elapsed() > PATIENCE {
            bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(REDRAWS));
        }
        bar.inc(bytes);
    }

    /// The reader, with its bytes added to the bar.
    pub fn watch<R: Read>(&self, reader: R) -> Watched<'_, R> {
        Watched { reader, progress: self, unseen: 0 }
    }
}

impl Drop for Progress {
    /// Takes the bar off the terminal, also when reading ended with an error.
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A reader that tells a bar.
pub struct Watched<'a, R> {
    reader: R,
    progress: &'a Progress,
    unseen: u64,
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(room)?;
        self.unseen += count as u64;
        if self.unseen >= LOOK_EVERY {
            self.progress.passed(std::mem::take(&mut self.unseen));
        }
        Ok(count)
    }
}
