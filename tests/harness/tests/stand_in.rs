//! The comparison itself is tested with stand-ins for `sonde`: one that is transparent and some that are not.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sonde_harness::process::{Ending, Job};
use sonde_harness::random::Random;
use sonde_harness::settings::{self, Mode};
use sonde_harness::support::Sonde;
use sonde_harness::trial::Subject;

const HELP: &str = "  --policy <P> bursts|always|counter\n  --trigger <T> auto|timer\n  --record <R> blocks|values\n  --period <D>\n  --burst <N>\n  --json[=<FILE>]\n";

/// A script that knows `run --help`, drops the options and then does `body` with the program as "$@".
fn stand_in(folder: &Path, body: &str) -> PathBuf {
    let path = folder.join("sonde");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = run ] || exit 2\nshift\nif [ \"$1\" = --help ]; then cat <<'END'\n{HELP}END\nexit 0; fi\nwhile [ \"$1\" != -- ]; do case \"$1\" in --json=*) json=\"${{1#--json=}}\";; esac; shift; done\nshift\necho '{{\"instructions\": 5}}' > \"$json\"\n{body}\n"
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn subject(limit: Duration) -> Subject {
    let command = ["sh", "-c", "cat; echo oops >&2; kill -9 $$"].map(Into::into).to_vec();
    let job = Job {
        command,
        stdin: b"in\n".to_vec(),
        merge: false,
        environment: Vec::new(),
        discard: false,
        result: None,
        summary: None,
        limit,
    };
    Subject { name: "killed".into(), job, ending: Ending::Signal(9), sees: Default::default() }
}

/// One test at a time: a process that another thread starts while a stand-in is being written keeps it open for writing
/// for a moment, and running it then fails with "text file busy".
static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn failures(body: &str, limit: Duration) -> Vec<String> {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let sonde = Sonde::probe(&stand_in(folder.path(), body));
    let subject = subject(limit);
    let native = subject.native().unwrap();
    let mut random = Random::new(1);
    let run = |mode: Mode| {
        let options = settings::draw(mode, &sonde, &mut random);
        subject.observed(&native, &sonde, mode, &options).err().map(|f| f.to_string())
    };
    let modes = settings::modes(&sonde);
    assert_eq!(modes, [Mode::Bursts("timer"), Mode::Always("blocks"), Mode::Always("values"), Mode::Counter]);
    modes.into_iter().filter_map(run).collect()
}

const LONG: Duration = Duration::from_secs(60);

#[test]
fn a_transparent_stand_in_passes_in_every_mode() {
    assert_eq!(failures("exec \"$@\"", LONG), Vec::<String>::new());
}

#[test]
fn an_exit_status_in_place_of_the_signal_fails() {
    let found = failures("\"$@\"; exit 137", LONG);
    assert_eq!(found.len(), 4);
    assert!(found[0].contains("natively signal 9, observed exit status 137"), "{}", found[0]);
    assert!(
        found[0].contains("repeat: ") && found[0].contains("--policy bursts --trigger timer"),
        "{}",
        found[0]
    );
}

#[test]
fn one_more_byte_fails() {
    let found = failures("printf x >&2; exec \"$@\"", LONG);
    assert!(found.len() == 4 && found.iter().all(|f| f.contains("stderr differs at byte 0")), "{found:?}");
}

#[test]
fn a_swallowed_input_fails() {
    let found = failures("cat > /dev/null; exec \"$@\"", LONG);
    assert!(found.len() == 4 && found.iter().all(|f| f.contains("stdout differs at byte 0")), "{found:?}");
}

#[test]
fn a_stand_in_that_hangs_is_killed_and_fails() {
    let found = failures("sleep 1000", Duration::from_secs(1));
    assert!(
        found.len() == 4 && found.iter().all(|f| f.contains("observed killed at the time limit")),
        "{found:?}"
    );
}

#[test]
fn a_stand_in_that_records_nothing_fails_where_all_is_to_be_recorded() {
    let found = failures("echo '{\"instructions\": 0}' > \"$json\"; exec \"$@\"", LONG);
    assert!(found.len() == 3 && found.iter().all(|f| f.contains("recorded nothing")), "{found:?}");
    let found = failures("rm \"$json\"; exec \"$@\"", LONG);
    assert!(found.len() == 4 && found.iter().all(|f| f.contains("no summary")), "{found:?}");
}
