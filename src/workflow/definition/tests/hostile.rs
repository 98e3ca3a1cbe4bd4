//! Texts made to hurt: each gets a clear answer that is short, whatever the text's size. The
//! answer's kind tells that the limit stopped the work, not the machine.

use std::fmt::Write as _;

use super::support::refused;
use crate::limits::{
    DEFINITION_BYTES_MAX, DEFINITION_DEPTH_MAX, DEPENDENCIES_MAX, PROBLEMS_MAX, TASKS_MAX,
};
use crate::workflow::definition::{Definition, ProblemCode};

/// Checks that a text is refused for one reason, in few words.
#[track_caller]
fn assert_stopped(text: &str, code: ProblemCode, words: &str) {
    let problems = refused(text);
    let message = problems.to_string();
    assert!(
        problems.0.iter().any(|problem| problem.code == code),
        "{message}"
    );
    assert!(message.contains(words), "{message}");
    assert!(problems.0.len() <= PROBLEMS_MAX + 1);
    assert!(
        message.len() < 100_000,
        "{} bytes of message",
        message.len()
    );
}

#[test]
fn a_text_over_the_limit_is_not_even_read() {
    let text = vec![b' '; DEFINITION_BYTES_MAX + 1];
    let problems = Definition::from_text(&text).unwrap_err();
    assert_eq!(problems.0[0].code, ProblemCode::LimitExceeded);
}

#[test]
fn aliases_that_explode_stop_at_the_limit() {
    let mut text = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for level in 1..30 {
        let before = format!("*a{}", level - 1);
        writeln!(
            text,
            "a{level}: &a{level} [{}]",
            vec![before; 10].join(", ")
        )
        .unwrap();
    }
    assert_stopped(
        &text,
        ProblemCode::LimitExceeded,
        "values, counting aliases",
    );
}

#[test]
fn one_long_text_may_not_be_repeated_without_end() {
    let mut text = format!("a: &a {}\nb:\n", "x".repeat(100_000));
    text.push_str(&"- *a\n".repeat(10_000));
    assert_stopped(&text, ProblemCode::LimitExceeded, "bytes, counting aliases");
}

#[test]
fn aliases_may_not_pile_up_depth() {
    let mut text = "a0: &a0 [x]\n".to_owned();
    for level in 1..100_000 {
        writeln!(text, "a{level}: &a{level} [*a{}]", level - 1).unwrap();
    }
    assert_stopped(&text, ProblemCode::LimitExceeded, "deep");
}

#[test]
fn merge_keys_count_as_what_they_bring() {
    let keys: Vec<String> = (0..1_000).map(|n| format!("k{n}: v")).collect();
    let mut text = format!("base: &base {{{}}}\nall:\n", keys.join(", "));
    text.push_str(&"- {<<: *base}\n".repeat(10_000));
    assert_stopped(
        &text,
        ProblemCode::LimitExceeded,
        "values, counting aliases",
    );
}

#[test]
fn deep_nesting_is_refused_in_every_style() {
    let depth = 1_000_000;
    let flow = "[".repeat(depth);
    let block = "- ".repeat(depth);
    let maps = "{a: ".repeat(depth);
    for text in [&flow, &block, &maps] {
        assert_stopped(text, ProblemCode::LimitExceeded, "deep");
    }
    let kwargs = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    let json =
        format!(r#"{{"name": "w", "tasks": [{{"name": "a", "kwargs": {{"x": {kwargs}}}}}]}}"#);
    assert_stopped(&json, ProblemCode::LimitExceeded, "deep");
    let elsewhere = format!(r#"{{"name": "w", "tasks": [{{"name": "a"}}], "x": {kwargs}}}"#);
    assert_stopped(&elsewhere, ProblemCode::UnknownField, "\"x\"");
}

#[test]
fn the_deepest_kwargs_that_are_allowed_are_read() {
    // The document, the list of tasks, the task and `kwargs` itself are levels, too.
    let text = |depth: usize, start: &str| {
        let value = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        format!(r#"{start}{{"name": "w", "tasks": [{{"name": "a", "kwargs": {{"x": {value}}}}}]}}"#)
    };
    for start in ["", "# yaml\n"] {
        super::support::accepted(&text(DEFINITION_DEPTH_MAX - 4, start));
        assert_stopped(
            &text(DEFINITION_DEPTH_MAX - 3, start),
            ProblemCode::LimitExceeded,
            "deep",
        );
    }
}

#[test]
fn a_million_tasks_are_too_many() {
    let tasks = |count: usize| vec!["{\"name\":\"a\"}"; count].join(",");
    let json = format!("{{\"name\":\"w\",\"tasks\":[{}]}}", tasks(1_000_000));
    assert_stopped(&json, ProblemCode::LimitExceeded, "tasks");
    let yaml = format!("name: w\ntasks: [{}]", tasks(TASKS_MAX + 1));
    assert_stopped(&yaml, ProblemCode::LimitExceeded, "tasks");
}

#[test]
fn dependencies_are_counted_over_all_tasks() {
    // Repeated names are faults of their own; counting comes first.
    let list = vec!["\"a\""; DEPENDENCIES_MAX / 2 + 1].join(",");
    let json = format!(
        r#"{{"name":"w","tasks":[{{"name":"a"}},{{"name":"b","depends_on":[{list}]}},{{"name":"c","depends_on":[{list}]}}]}}"#
    );
    assert_stopped(&json, ProblemCode::LimitExceeded, "dependencies in all");
}

#[test]
fn a_million_faults_are_answered_in_few_words() {
    let list = vec!["\"a\""; 1_000_000].join(",");
    let json =
        format!(r#"{{"name":"w","tasks":[{{"name":"a"}},{{"name":"b","depends_on":[{list}]}}]}}"#);
    assert_stopped(
        &json,
        ProblemCode::DuplicateDependency,
        "and 999899 more problems",
    );
}

#[test]
fn long_texts_are_not_repeated_in_full() {
    let long = "x".repeat(1_000_000);
    let json = format!(
        r#"{{"name": "w", "{long}": 1, "tasks": [{{"name": "{long}", "{long}": 1, "depends_on": ["{long}y"]}}]}}"#
    );
    let problems = refused(&json);
    assert_eq!(problems.0.len(), 4, "{problems}");
    assert!(problems.to_string().len() < 4_000, "{problems}");

    let key = format!(r#"{{"name": "w", "tasks": [{{"name": "a", "kwargs": {{"{long}": 1}}}}]}}"#);
    assert_stopped(&key, ProblemCode::LimitExceeded, "message");
    assert_stopped(&format!("{long}: 1"), ProblemCode::Syntax, "not YAML");
}

#[test]
fn a_condition_of_ten_megabytes_is_too_long() {
    let condition = "(".repeat(10_000_000);
    for start in ["", "# yaml\n"] {
        let text = format!(
            r#"{start}{{"name": "w", "tasks": [{{"name": "a"}}, {{"name": "b", "depends_on": ["a"], "condition": "{condition}"}}]}}"#
        );
        assert_stopped(
            &text,
            ProblemCode::LimitExceeded,
            "`condition` has 10000000 bytes",
        );
    }
}

#[test]
fn kwargs_of_many_small_values_are_too_large_for_a_message() {
    let values = vec!["0"; 1_000_000].join(",");
    for start in ["", "# yaml\n"] {
        let text = format!(
            r#"{start}{{"name": "w", "tasks": [{{"name": "a", "kwargs": {{"x": [{values}]}}}}]}}"#
        );
        assert_stopped(&text, ProblemCode::LimitExceeded, "kwargs");
    }
}

#[test]
fn a_circle_of_all_tasks_is_printed_short() {
    let count = 100_000;
    let mut json = r#"{"name":"w","tasks":["#.to_owned();
    for task in 0..count {
        let comma = if task > 0 { "," } else { "" };
        let next = (task + 1) % count;
        write!(
            json,
            r#"{comma}{{"name":"t{task}","depends_on":["t{next}"]}}"#
        )
        .unwrap();
    }
    json.push_str("]}");
    assert_stopped(&json, ProblemCode::Cycle, "t9 -> ... 99990 more ... -> t0");
}
