//! Ends what a test started and did not wait for: a test that fails must leave no process behind.
//!
//! Processes are known by the folder of their test, which no other process has: as their working directory or as the place
//! of their executable. A process group would miss who makes one of its own, a parent's number who was orphaned.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Kills every process that works in `folder` or runs an executable of it; gives how many there were.
pub fn end_all_in(folder: &Path) -> usize {
    // The kernel shows real paths.
    let Ok(folder) = folder.canonicalize() else { return 0 };
    let mut ended = Vec::new();
    // Once more after each find: who is killed may have just started another.
    loop {
        let found: Vec<i32> = living_in(&folder).into_iter().filter(|pid| !ended.contains(pid)).collect();
        if found.is_empty() {
            return ended.len();
        }
        for pid in found {
            // It may have ended meanwhile, which is as good.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            ended.push(pid);
        }
    }
}

/// Who lives there: not ourselves, and not who has ended and waits for its parent (it has neither folder nor executable).
pub fn living_in(folder: &Path) -> Vec<i32> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let own = std::process::id().cast_signed();
    numbers
        .filter(|&pid| pid != own && ["cwd", "exe"].iter().any(|link| leads_into(pid, link, folder)))
        .collect()
}

/// The name of what is deleted has a mark behind it, so that only its beginning is compared.
fn leads_into(pid: i32, link: &str, folder: &Path) -> bool {
    let Ok(target) = fs::read_link(format!("/proc/{pid}/{link}")) else { return false };
    let (target, folder) = (target.as_os_str().as_bytes(), folder.as_os_str().as_bytes());
    target.strip_prefix(folder).is_some_and(|rest| matches!(rest.first(), None | Some(b'/' | b' ')))
}

/// A folder of a test, removed at its end together with all processes in it.
#[derive(Debug)]
pub struct Folder(tempfile::TempDir);

impl Folder {
    /// A new one.
    pub fn new() -> std::io::Result<Self> {
        tempfile::tempdir().map(Self)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        end_all_in(self.path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::{Command, Stdio};

    #[test]
    fn orphans_with_groups_of_their_own_end_with_the_folder() {
        let folder = Folder::new().unwrap();
        let (inside, outside) = (folder.path().to_owned(), tempfile::tempdir().unwrap());
        let mut bystander = Command::new("sleep").arg("1000").current_dir(outside.path()).spawn().unwrap();
        // A group of its own, and its parent ends at once.
        let mut shell = Command::new("sh")
            .args(["-c", "setsid sh -c 'echo ready; sleep 1000; :' &"])
            .current_dir(&inside)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = shell.stdout.take().unwrap();
        out.read_exact(&mut [0; 6]).unwrap();
        assert!(shell.wait().unwrap().success());
        assert!(!living_in(&inside).is_empty());
        let panicked = std::thread::spawn(move || {
            let _held = folder;
            panic!("a test that fails, on purpose");
        });
        assert!(panicked.join().is_err());
        // The pipe ends when the last of them does.
        assert_eq!(out.read_to_end(&mut Vec::new()).unwrap(), 0);
        assert!(bystander.try_wait().unwrap().is_none(), "who is elsewhere goes on");
        bystander.kill().unwrap();
        bystander.wait().unwrap();
    }
}
