//! `jobq bench`: what it prints, and counts that do not depend on the machine.

use serde_json::Value;

use crate::support::Site;

#[test]
fn a_page_of_the_newest_is_one_request_however_many_rows_there_are() {
    let site = Site::new();
    let args = [
        "bench", "list", "--rows", "2000", "--pages", "30", "--limit", "50", "-o", "json",
    ];
    let report: Value = site.json(&args);
    assert_eq!(report["rows"], 2_000);
    let newest = &report["pages"]["newest"];
    assert_eq!(newest["calls"], 30);
    assert_eq!(newest["storage_operations_per_page"], 1.0);
    // One request for each of the sixteen partitions.
    assert_eq!(
        report["pages"]["by id"]["storage_operations_per_page"],
        16.0
    );
    let text = site.stdout(&["bench", "list", "--rows", "10", "--pages", "2"]);
    assert!(text.contains("p99"), "{text}");
}
