//! Says whether an observed run is the native one, byte for byte, and if not, where they part.

use crate::process::Outcome;

/// `None` when both runs are the same; otherwise a few lines that say what differs.
pub fn difference(native: &Outcome, observed: &Outcome) -> Option<String> {
    let mut parts = Vec::new();
    if native.ending != observed.ending {
        parts.push(format!("natively {}, observed {}", native.ending, observed.ending));
    }
    parts.extend(bytes_differ("stdout", &native.stdout, &observed.stdout));
    parts.extend(bytes_differ("stderr", &native.stderr, &observed.stderr));
    parts.extend(bytes_differ("the written file", &native.result, &observed.result));
    (!parts.is_empty()).then(|| parts.join("\n"))
}

fn bytes_differ(what: &str, native: &[u8], observed: &[u8]) -> Option<String> {
    if native == observed {
        return None;
    }
    let at = native.iter().zip(observed).take_while(|(a, b)| a == b).count();
    let line = native[..at].iter().filter(|&&b| b == b'\n').count() + 1;
    let (left, right) = (excerpt(native, at), excerpt(observed, at));
    let (m, n) = (native.len(), observed.len());
    Some(format!(
        "{what} differs at byte {at}, line {line} ({m} bytes natively, {n} observed):\n  native:   {left}\n  observed: {right}"
    ))
}

/// The line around a place, at most 160 characters of it, with what cannot be printed escaped.
fn excerpt(bytes: &[u8], at: usize) -> String {
    let begin = bytes[..at].iter().rposition(|&b| b == b'\n').map_or(0, |p| p + 1).max(at.saturating_sub(80));
    let end = bytes[at..].iter().position(|&b| b == b'\n').map_or(bytes.len(), |p| at + p).min(at + 80);
    if begin >= bytes.len() { "(end)".into() } else { bytes[begin..end].escape_ascii().to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Ending;

    fn outcome(ending: Ending, stdout: &str, stderr: &str) -> Outcome {
        Outcome {
            ending,
            stdout: stdout.into(),
            stderr: stderr.into(),
            result: Vec::new(),
            summary: Vec::new(),
        }
    }

    #[test]
    fn equal_runs_have_no_difference() {
        let one = outcome(Ending::Exit(3), "a\nb\n", "c");
        assert_eq!(difference(&one, &one.clone()), None);
    }

    #[test]
    fn each_part_is_compared() {
        let native = outcome(Ending::Exit(0), "first\nsecond\n", "");
        let text = difference(&native, &outcome(Ending::Signal(11), "first\nsebond\n", "x")).unwrap();
        assert!(text.contains("natively exit status 0, observed signal 11"), "{text}");
        assert!(text.contains("stdout differs at byte 8, line 2"), "{text}");
        assert!(text.contains("native:   second") && text.contains("observed: sebond"), "{text}");
        assert!(text.contains("stderr differs at byte 0, line 1 (0 bytes natively, 1 observed)"), "{text}");
    }

    #[test]
    fn a_shorter_output_ends() {
        let text = difference(&outcome(Ending::Exit(0), "a\nb\n", ""), &outcome(Ending::Exit(0), "a\n", ""))
            .unwrap();
        assert!(text.contains("observed: (end)"), "{text}");
    }
}
