//! The committed code is the one that the schema gives.

use std::path::Path;

/// What the generator does not say.
const HEAD: &str = "\
// Generated from proto/sonde.proto: do not edit it here. Change the schema, then renew this file by
// SONDE_RENEW_SCHEMA=1 cargo test -p sonde-profile --test schema
";

#[test]
fn the_generated_code_is_fresh() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let schema = protox::compile(["sonde.proto"], [root.join("proto")]).expect("the schema is valid");
    let out = tempfile::tempdir().expect("a folder can be made");
    let mut config = prost_build::Config::new();
    config.btree_map(["."]).out_dir(out.path());
    config.compile_fds(schema).expect("code can be generated");
    let generated = std::fs::read_to_string(out.path().join("sonde.rs")).expect("code was generated");
    let fresh = format!("{HEAD}{generated}");
    let path = root.join("src/wire/sonde.rs");
    if std::env::var_os("SONDE_RENEW_SCHEMA").is_some() {
        std::fs::write(&path, &fresh).expect("the code can be written");
    }
    let committed = std::fs::read_to_string(&path).expect("the code is committed");
    assert!(
        committed == fresh,
        "src/wire/sonde.rs is stale: run SONDE_RENEW_SCHEMA=1 cargo test -p sonde-profile --test schema"
    );
}
