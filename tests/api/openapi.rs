//! The committed description is that of the server.

#[test]
fn the_committed_description_is_the_served_one() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi/openapi.json");
    let mut served = jobq::api::rest::document().to_pretty_json().unwrap();
    served.push('\n');
    if std::env::var_os("JOBQ_WRITE_OPENAPI").is_some() {
        std::fs::write(path, &served).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == served,
        "openapi/openapi.json is outdated; JOBQ_WRITE_OPENAPI=1 cargo test --test api openapi writes it"
    );
}
