//! One case and more for every kind of problem, in YAML and in JSON, with its place.

use std::collections::BTreeSet;

use super::support::{assert_refused, refused};
use crate::limits::{CONDITION_BYTES_MAX, LABELS_MAX, MESSAGE_BYTES_MAX, PROBLEMS_MAX};
use crate::workflow::definition::{Definition, ProblemCode};

/// A workflow of one task with the given fields, in JSON: the task starts at 2:2.
fn json_task(fields: &str) -> String {
    format!("{{\"name\": \"w\", \"tasks\": [\n {{\"name\": \"a\", {fields}}}]}}")
}

/// Fields of a task in JSON, and what is said: the code, the pointer below the task, and the
/// column of the place in line 2 where the task stands.
const TASK_CASES: &[(&str, &str, &str, usize)] = &[
    (r#""retries": 3"#, "unknown_field", "/retries", 16),
    (r#""name": "b""#, "duplicate_key", "/name", 16),
    (r#""queue": 5"#, "wrong_type", "/queue", 25),
    (r#""queue": "a b""#, "invalid_name", "/queue", 25),
    (r#""num_retries": "5""#, "wrong_type", "/num_retries", 31),
    (r#""num_retries": 1.5"#, "wrong_type", "/num_retries", 31),
    (r#""num_retries": true"#, "wrong_type", "/num_retries", 31),
    (r#""num_retries": -1"#, "invalid_value", "/num_retries", 31),
    (
        r#""num_retries": 1001"#,
        "invalid_value",
        "/num_retries",
        31,
    ),
    (r#""timeout_s": "5""#, "wrong_type", "/timeout_s", 29),
    (r#""timeout_s": true"#, "wrong_type", "/timeout_s", 29),
    (r#""timeout_s": 0"#, "invalid_value", "/timeout_s", 29),
    (r#""timeout_s": -0.5"#, "invalid_value", "/timeout_s", 29),
    (
        r#""timeout_s": 31622401"#,
        "invalid_value",
        "/timeout_s",
        29,
    ),
    (
        r#""dep_policy": "some""#,
        "invalid_value",
        "/dep_policy",
        30,
    ),
    (r#""dep_policy": 0"#, "invalid_value", "/dep_policy", 30),
    (r#""dep_policy": 1"#, "invalid_value", "/dep_policy", 30),
    (r#""dep_policy": 1.5"#, "wrong_type", "/dep_policy", 30),
    (r#""depends_on": "a""#, "wrong_type", "/depends_on", 30),
    (r#""depends_on": {"a": 1}"#, "wrong_type", "/depends_on", 30),
    (r#""depends_on": [1]"#, "wrong_type", "/depends_on/0", 31),
    (
        r#""depends_on": ["zz"]"#,
        "unknown_dependency",
        "/depends_on/0",
        31,
    ),
    (
        r#""depends_on": ["a"]"#,
        "self_dependency",
        "/depends_on/0",
        31,
    ),
    (
        r#""condition": "inputs.x""#,
        "invalid_condition",
        "/condition",
        29,
    ),
    (r#""condition": 5"#, "wrong_type", "/condition", 29),
    (r#""kwargs": [1]"#, "wrong_type", "/kwargs", 26),
    (r#""kwargs": "x""#, "wrong_type", "/kwargs", 26),
    (r#""kwargs": {"cmd": 5}"#, "wrong_type", "/kwargs/cmd", 34),
    (r#""kwargs": {"cwd": []}"#, "wrong_type", "/kwargs/cwd", 34),
    (
        r#""kwargs": {"cmd": "a\u0000"}"#,
        "invalid_value",
        "/kwargs/cmd",
        34,
    ),
    (
        r#""kwargs": {"env": "A=1"}"#,
        "wrong_type",
        "/kwargs/env",
        34,
    ),
    (
        r#""kwargs": {"env": {"A": null}}"#,
        "wrong_type",
        "/kwargs/env/A",
        40,
    ),
    (
        r#""kwargs": {"env": {"A=": "1"}}"#,
        "invalid_value",
        "/kwargs/env/A=",
        41,
    ),
    (
        r#""kwargs": {"a": 1, "a": 2}"#,
        "duplicate_key",
        "/kwargs/a",
        35,
    ),
    (
        r#""kwargs": {"x": [{"a~/": 1, "a~/": 2}]}"#,
        "duplicate_key",
        "/kwargs/x/0/a~0~1",
        44,
    ),
    (
        r#""kwargs": {"__attempt_no": 1}"#,
        "invalid_value",
        "/kwargs/__attempt_no",
        43,
    ),
];

#[test]
fn each_fault_of_a_task_is_named_and_placed_in_json() {
    for (fields, code, pointer, column) in TASK_CASES {
        let expected = format!("2:{column} {code} /tasks/0{pointer}");
        assert_refused(&json_task(fields), &[&expected]);
    }
}

/// JSON is YAML, so the same texts behind a comment must be judged the same, one line lower.
#[test]
fn each_fault_of_a_task_is_named_and_placed_in_yaml() {
    for (fields, code, pointer, column) in TASK_CASES {
        let expected = format!("3:{column} {code} /tasks/0{pointer}");
        assert_refused(&format!("# yaml\n{}", json_task(fields)), &[&expected]);
    }
}

/// Whole texts in JSON, and what is said about them.
const WORKFLOW_CASES: &[(&str, &str)] = &[
    (r#"{"tasks": [{"name": "a"}]}"#, "1:1 missing_field "),
    (r#"{"name": "w"}"#, "1:1 missing_field "),
    (r#"{"name": "w", "tasks": null}"#, "1:1 missing_field "),
    (r#"{"name": "w", "tasks": []}"#, "1:24 invalid_value /tasks"),
    (
        r#"{"name": "w", "tasks": {"a": 1}}"#,
        "1:24 wrong_type /tasks",
    ),
    (
        r#"{"name": "w", "tasks": ["a"]}"#,
        "1:25 wrong_type /tasks/0",
    ),
    (
        r#"{"name": "w", "tasks": [{}]}"#,
        "1:25 missing_field /tasks/0",
    ),
    (
        r#"{"name": "w", "tasks": [{"name": 5}]}"#,
        "1:34 wrong_type /tasks/0/name",
    ),
    (
        r#"{"name": "w", "tasks": [{"name": " "}]}"#,
        "1:34 invalid_name /tasks/0/name",
    ),
    (
        r#"{"name": "w", "tasks": [{"name": "__merge_"}]}"#,
        "1:34 invalid_name /tasks/0/name",
    ),
    (
        r#"{"name": " ", "tasks": [{"name": "a"}]}"#,
        "1:10 invalid_name /name",
    ),
    (
        r#"{"name": "a\nb", "tasks": [{"name": "a"}]}"#,
        "1:10 invalid_name /name",
    ),
    (
        r#"{"name": 5, "tasks": [{"name": "a"}]}"#,
        "1:10 wrong_type /name",
    ),
    (
        r#"{"shedule": 1, "name": "w", "tasks": [{"name": "a"}]}"#,
        "1:2 unknown_field /shedule",
    ),
    (
        r#"{"max_parallelism": 0, "name": "w", "tasks": [{"name": "a"}]}"#,
        "1:21 invalid_value /max_parallelism",
    ),
    (
        r#"{"max_parallelism": "2", "name": "w", "tasks": [{"name": "a"}]}"#,
        "1:21 wrong_type /max_parallelism",
    ),
    (
        r#"{"result_policy": "best", "name": "w", "tasks": [{"name": "a"}]}"#,
        "1:19 invalid_value /result_policy",
    ),
    (
        r#"{"default_queue": "-", "name": "w", "tasks": [{"name": "a"}]}"#,
        "1:19 invalid_name /default_queue",
    ),
    (
        r#"{"labels": [], "name": "w", "tasks": [{"name": "a"}]}"#,
        "1:12 wrong_type /labels",
    ),
    (
        r#"{"labels": {"": "x"}, "name": "w", "tasks": [{"name": "a"}]}"#,
        "1:17 invalid_name /labels/",
    ),
    (
        r#"{"labels": {"k": 1}, "name": "w", "tasks": [{"name": "a"}]}"#,
        "1:18 wrong_type /labels/k",
    ),
    (
        r#"{"labels": {"k": "1", "k": "2"}, "name": "w", "tasks": [{"name": "a"}]}"#,
        "1:23 duplicate_key /labels/k",
    ),
];

#[test]
fn each_fault_of_the_workflow_is_named_and_placed() {
    for (text, expected) in WORKFLOW_CASES {
        assert_refused(text, &[expected]);
    }
}

#[test]
fn yaml_that_is_no_definition_is_placed_too() {
    let table = [
        ("", "1:1 wrong_type "),
        ("- a\n", "1:1 wrong_type "),
        ("a: b: c", "1:5 syntax "),
        ("a: 1\n---\nb: 2\n", "2:1 syntax "),
        ("a: *nowhere", "1:4 syntax "),
        ("a: &a [1, *a]", "1:11 syntax "),
        ("a: !color red", "1:4 invalid_value "),
        ("a: !!int red", "1:4 invalid_value "),
        ("a: !!set {b}", "1:4 invalid_value "),
        ("? [a, b]\n: 1", "1:3 wrong_type "),
        ("null: 1", "1:1 wrong_type "),
        ("a:\n  <<: 5\n", "2:7 wrong_type "),
        ("a: &m {x: 1}\nb: {<<: *m, <<: *m}\n", "2:13 duplicate_key "),
    ];
    for (text, expected) in table {
        let first = &refused(text).0[0];
        assert_eq!(
            super::support::brief(first).trim_end(),
            expected.trim_end(),
            "{text}"
        );
    }
}

#[test]
fn json_that_breaks_off_or_is_misspelt_is_placed() {
    assert_refused("{\"name\": \"w\",\n \"tasks\": [", &["2:11 syntax "]);
    // Neither JSON nor YAML: the complaint is about the JSON that was meant.
    assert_refused("{\"name\": \"é\" \"tasks\": []}", &["1:14 syntax "]);
    assert_refused(
        "{\"name\": \"w\", \"tasks\": [{\"name\": \"\\ud800\"}]} x",
        &["1:41 syntax "],
    );
}

#[test]
fn text_that_is_not_utf8_is_placed() {
    let problems = Definition::from_text(b"name: w\nk\xc3\xa9y: \xff\n").unwrap_err();
    assert_eq!(super::support::brief(&problems.0[0]), "2:6 syntax ");
    let utf16 = Definition::from_text(b"\xff\xfen\0").unwrap_err();
    assert_eq!(super::support::brief(&utf16.0[0]), "1:1 syntax ");
}

#[test]
fn columns_count_characters() {
    let text = "{\"name\": \"éü😀\", \"nme\": 1, \"tasks\": [{\"name\": \"a\"}]}";
    assert_refused(text, &["1:17 unknown_field /nme"]);
    assert_refused(&format!("# yaml\n{text}"), &["2:17 unknown_field /nme"]);
}

#[test]
fn everything_wrong_is_said_at_once_in_the_order_of_the_text() {
    let text = "\
name: w
max_paralelism: 3
tasks:
  - name: a
    depends_on: [b, nope]
    retries: 1
  - name: b
    depends_on: [c, c]
    timeout_s: soon
  - name: c
    depends_on: [a]
    queue: 'q q'
  - name: c
";
    assert_refused(
        text,
        &[
            "2:1 unknown_field /max_paralelism",
            "5:18 cycle /tasks/0/depends_on/0",
            "5:21 unknown_dependency /tasks/0/depends_on/1",
            "6:5 unknown_field /tasks/0/retries",
            "8:21 duplicate_dependency /tasks/1/depends_on/1",
            "9:16 wrong_type /tasks/1/timeout_s",
            "12:12 invalid_name /tasks/2/queue",
            "13:11 duplicate_task /tasks/3/name",
        ],
    );
    let message = refused(text).to_string();
    assert_eq!(message.lines().count(), 8, "{message}");
    for part in [
        "did you mean `max_parallelism`?",
        r#"task "a": tasks wait for each other: a -> b -> c -> a"#,
        r#"task "b": `timeout_s` must be a number of seconds, not text"#,
    ] {
        assert!(message.contains(part), "{part}\n{message}");
    }
}

#[test]
fn each_group_of_tasks_in_a_circle_is_reported_once() {
    let text = "\
name: w
tasks:
  - {name: a, depends_on: [b]}
  - {name: b, depends_on: [a, c]}
  - {name: c, depends_on: [b]}
  - {name: x, depends_on: [y]}
  - {name: y, depends_on: [x, a]}
";
    let expected = [
        "3:28 cycle /tasks/0/depends_on/0",
        "6:28 cycle /tasks/3/depends_on/0",
    ];
    assert_refused(text, &expected);
}

#[test]
fn conditions_are_checked_against_the_dependencies() {
    let task = |condition: &str| {
        format!(
            "name: w\ntasks:\n- name: a\n- name: b\n  depends_on: [a]\n  condition: {condition}\n"
        )
    };
    let expected = ["6:14 invalid_condition /tasks/1/condition"];
    assert_refused(&task("inputs.a <"), &expected);
    assert_refused(&task("inputs.q.y"), &expected);
    super::support::accepted(&task("inputs.a.loss < 0.1"));
}

#[test]
fn slips_are_met_with_the_right_spelling() {
    let hints = [
        ("retries", "did you mean `num_retries`?"),
        ("timeout", "did you mean `timeout_s`?"),
        ("dependson", "did you mean `depends_on`?"),
        ("cmd", "write it as `cmd` under `kwargs`"),
        ("command", "write it as `cmd` under `kwargs`"),
        ("zzz", "known are name, kwargs,"),
    ];
    for (key, hint) in hints {
        let message = refused(&json_task(&format!("\"{key}\": 1"))).to_string();
        assert!(message.contains(hint), "{key}: {message}");
    }
    let unknown = r#"{"name": "w", "tasks": [{"name": "train-1"}, {"name": "b", "depends_on": ["trian-1"]}]}"#;
    assert!(
        refused(unknown)
            .to_string()
            .contains(r#"did you mean "train-1"?"#)
    );
}

#[test]
fn more_problems_than_are_shown_are_counted() {
    let tasks = vec!["{\"name\": 1}"; PROBLEMS_MAX + 50].join(",\n");
    let problems = refused(&format!("{{\"nme\": 1, \"tasks\": [{tasks}]}}"));
    assert_eq!(problems.0.len(), PROBLEMS_MAX + 1);
    assert_eq!(
        problems.0[PROBLEMS_MAX].message,
        "and 52 more problems, not shown"
    );
    assert!(problems.0[..PROBLEMS_MAX].is_sorted_by_key(|problem| problem.line));
}

#[test]
fn one_step_past_each_limit_is_too_much() {
    let label = |count: usize| {
        let labels: Vec<String> = (0..count).map(|n| format!("\"k{n}\": \"v\"")).collect();
        let labels = labels.join(", ");
        format!("{{\"name\": \"w\", \"labels\": {{{labels}}}, \"tasks\": [{{\"name\": \"a\"}}]}}")
    };
    super::support::accepted(&label(LABELS_MAX));
    assert_refused(&label(LABELS_MAX + 1), &["1:25 limit_exceeded /labels"]);

    let value = "x".repeat(129);
    let long_label = format!(
        "{{\"labels\": {{\"k\": \"{value}\"}}, \"name\": \"w\", \"tasks\": [{{\"name\": \"a\"}}]}}"
    );
    assert_refused(&long_label, &["1:18 limit_exceeded /labels/k"]);

    let condition = format!("\"condition\": \"{}\"", " ".repeat(CONDITION_BYTES_MAX + 1));
    assert_refused(
        &json_task(&condition),
        &["2:29 limit_exceeded /tasks/0/condition"],
    );

    let kwargs = |length: usize| format!("\"kwargs\": {{\"k\": \"{}\"}}", "x".repeat(length));
    let around = r#"{"k":""}"#.len();
    let expected = ["2:26 limit_exceeded /tasks/0/kwargs"];
    super::support::accepted(&json_task(&kwargs(MESSAGE_BYTES_MAX - around)));
    assert_refused(
        &json_task(&kwargs(MESSAGE_BYTES_MAX - around + 1)),
        &expected,
    );
    let blanks = format!("\"kwargs\": {{{}}}", " ".repeat(MESSAGE_BYTES_MAX));
    super::support::accepted(&json_task(&blanks));
}

#[test]
fn numbers_that_json_cannot_write_are_refused() {
    let yaml = |value: &str| format!("name: w\ntasks:\n- name: a\n  kwargs: {{x: [{value}]}}\n");
    for value in [".nan", "-.inf", "1e999"] {
        assert_refused(&yaml(value), &["4:16 invalid_value /tasks/0/kwargs/x/0"]);
    }
    let json = json_task("\"kwargs\": {\"x\": 1e999}");
    assert_refused(&json, &["2:26 invalid_value /tasks/0/kwargs"]);
}

#[test]
fn requests_get_pointers_without_lines() {
    let text = json_task("\"retries\": 1, \"queue\": 5");
    let from_text = refused(&text).0;
    let from_json = Definition::from_json(&text).unwrap_err().0;
    assert!(
        from_json
            .iter()
            .all(|problem| problem.line.is_none() && problem.column.is_none())
    );
    let pointers = |problems: &[super::super::Problem]| -> Vec<String> {
        problems
            .iter()
            .map(|problem| problem.pointer.clone())
            .collect()
    };
    assert_eq!(pointers(&from_json), pointers(&from_text));
    assert!(
        Definition::from_json("name: w").is_err(),
        "YAML is not JSON"
    );
}

/// The tables above know every code there is.
#[test]
fn every_code_has_a_case() {
    let mut seen: BTreeSet<&str> = TASK_CASES.iter().map(|(_, code, ..)| *code).collect();
    seen.extend([
        "syntax",
        "limit_exceeded",
        "missing_field",
        "duplicate_task",
        "duplicate_dependency",
        "cycle",
    ]);
    let all: BTreeSet<&str> = ProblemCode::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(seen, all);
}
