//! The committed header is the one that the source gives.

use std::path::Path;

#[test]
fn the_header_is_fresh() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config =
        cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("the configuration is readable");
    let builder = cbindgen::Builder::new().with_crate(root).with_config(config);
    let bindings = builder.generate().expect("the source parses");
    let mut fresh = Vec::new();
    bindings.write(&mut fresh);
    let fresh = String::from_utf8(fresh).expect("a header is text");
    let path = root.join("include/sonde_rap.h");
    if std::env::var_os("SONDE_RENEW_HEADER").is_some() {
        std::fs::write(&path, &fresh).expect("the header can be written");
    }
    let committed = std::fs::read_to_string(&path).expect("the header is committed");
    assert!(
        committed == fresh,
        "include/sonde_rap.h is stale: run SONDE_RENEW_HEADER=1 cargo test -p sonde-rap-c --test header"
    );
}
