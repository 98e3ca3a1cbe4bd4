//! Wrong use: clear messages, the right exit code, nothing half done.

use crate::support::{Site, text};

const WRONG: &str = "\
name: w
max_parallelism: 0
tasks:
  - name: a
    depends_on: [nobody]
  - name: a
    retries: 3
";

#[test]
fn validate_prints_every_problem_with_its_line_and_exits_with_2() {
    let site = Site::new();
    let file = site.definition("wrong.yaml", WRONG);
    let output = site.output(&["validate", &file, "examples/diamond.yaml"]);
    assert_eq!(output.status.code(), Some(2));
    let stderr = text(&output.stderr);
    let told = [
        (2, "max_parallelism"),
        (5, "nobody"),
        (6, "\"a\""),
        (7, "retries"),
    ];
    for (line, word) in told {
        let place = format!("wrong.yaml:{line}:");
        let problem = stderr
            .lines()
            .find(|text| text.contains(&place) && text.contains(word));
        assert!(problem.is_some(), "{place} … {word} in:\n{stderr}");
    }
    assert!(stderr.contains("diamond.yaml: valid"), "{stderr}");
}

#[test]
fn run_and_submit_refuse_an_invalid_definition_before_anything_happens() {
    let site = Site::new();
    let file = site.definition("wrong.yaml", WRONG);
    for command in ["run", "submit"] {
        let output = site.output(&[command, &file]);
        assert_eq!(output.status.code(), Some(2), "{command}");
        assert!(output.stdout.is_empty());
    }
    assert_eq!(site.json(&["list", "-o", "json"]), serde_json::json!([]));
}

#[test]
fn several_files_are_submitted_together_or_not_at_all() {
    let site = Site::new();
    let file = site.definition("wrong.yaml", WRONG);
    let output = site.output(&["submit", "examples/diamond.yaml", &file]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(site.json(&["list", "-o", "json"]), serde_json::json!([]));
}

#[test]
fn the_same_id_with_the_same_definition_is_the_same_workflow() {
    let site = Site::new();
    for _ in 0..2 {
        let id = site.stdout(&["submit", "examples/diamond.yaml", "--id", "w1"]);
        assert_eq!(id, "w1\n");
    }
    let output = site.output(&["submit", "examples/sweep.yaml", "--id", "w1"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("different definition"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn what_does_not_exist_is_named() {
    let site = Site::new();
    site.stdout(&["submit", "examples/diamond.yaml", "--id", "w1"]);
    let cases: [(&[&str], &str); 5] = [
        (&["status", "nope"], "nope"),
        (&["tasks", "nope"], "nope"),
        (&["output", "w1", "nobody"], "nobody"),
        (&["output", "w1", "report"], "pending"),
        (&["cancel", "nope"], "nope"),
    ];
    for (args, named) in cases {
        let output = site.output(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let stderr = text(&output.stderr);
        assert!(
            stderr.starts_with("error: ") && stderr.contains(named),
            "{args:?}: {stderr}"
        );
        assert_eq!(stderr.trim_end().lines().count(), 1, "{args:?}: {stderr}");
    }
}

#[test]
fn wrong_settings_exit_with_2_and_say_what_would_be_right() {
    let site = Site::new();
    let cases: [(&[&str], &str); 5] = [
        (&["list", "--storage", "redis:x"], "sqlite:"),
        (&["list", "--prefix", "1x"], "letters and digits"),
        (&["list", "--state", "asleep"], "cancelled"),
        (&["status", "a/b"], "A-Z"),
        (&["worker", "q", "-n", "0"], "1 to"),
    ];
    for (args, hint) in cases {
        let output = site.output(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            text(&output.stderr).contains(hint),
            "{args:?}: {}",
            text(&output.stderr)
        );
    }
}
