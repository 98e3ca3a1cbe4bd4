//! Reading golden files: from the folder `JOBQ_FIXTURES`, or from `tests/fixtures`.
#![expect(unreachable_pub, reason = "a helper of this test target")]

use std::path::PathBuf;

use serde_json::Value;

/// A golden file's text.
#[track_caller]
pub fn text(file: &str) -> String {
    let folder = std::env::var_os("JOBQ_FIXTURES").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures"),
        PathBuf::from,
    );
    let path = folder.join(file);
    std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}

/// Calls `check` with each line of a golden file; it returns what disagrees. All lines that
/// disagree are reported, not only the first.
#[track_caller]
pub fn replay(file: &str, check: impl Fn(&Value) -> Result<(), String>) {
    let text = text(file);
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    let mut disagreements = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let value = serde_json::from_str(line)
            .unwrap_or_else(|error| panic!("{file}:{}: {error}", index + 1));
        if let Err(disagreement) = check(&value) {
            disagreements.push(format!("{file}:{}: {disagreement}", index + 1));
        }
    }
    assert!(!lines.is_empty(), "{file} is empty");
    assert!(
        disagreements.is_empty(),
        "{} of {} lines disagree:\n{}",
        disagreements.len(),
        lines.len(),
        disagreements.join("\n")
    );
}
