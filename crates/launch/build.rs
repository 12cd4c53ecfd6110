//! Builds the probe and puts it inside this crate: `sonde` is one self-contained program.
//!
//! The probe cannot be an ordinary dependency: it is a shared library without the standard library that aborts on
//! panic, and its users are other people's processes. So cargo is asked to build it into our output folder, with
//! flags of its own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const FLAGS: [&str; 6] = [
    "-Clink-arg=-nostdlib",
    "-Clink-arg=-nostartfiles",
    "-Clink-arg=-Wl,-Bsymbolic",
    "-Clink-arg=-Wl,-z,noexecstack",
    "-Clink-arg=-Wl,--gc-sections",
    "-Ctarget-cpu=x86-64",
];

fn main() {
    let crates = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("..");
    for name in ["probe", "engine", "sys", "wire", "x64"] {
        println!("cargo:rerun-if-changed={}", crates.join(name).display());
    }
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    let target = out.join("probe-target");
    let mut cargo = Command::new(env::var("CARGO").expect("cargo sets it"));
    for (name, _) in env::vars() {
        let ours = name.starts_with("CARGO_FEATURE")
            || name.starts_with("CARGO_CFG")
            || name.starts_with("CARGO_PKG");
        let wrapper = name.contains("RUSTC") || name.contains("RUSTFLAGS") || name.contains("CLIPPY");
        if ours
            || wrapper
            || name == "CARGO_MAKEFLAGS"
            || name == "CARGO_TARGET_DIR"
            || name == "CARGO_MANIFEST_DIR"
        {
            cargo.env_remove(name);
        }
    }
    let status = cargo
        .args(["build", "--release", "--locked", "--quiet", "--manifest-path"])
        .arg(crates.join("probe/Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        .env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\u{1f}"))
        .status()
        .expect("cargo can be run");
    assert!(status.success(), "the probe did not build");
    fs::copy(target.join("release/libsonde_probe.so"), out.join("probe.so")).expect("the probe was built");
}
