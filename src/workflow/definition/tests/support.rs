//! How tests look at what is said about a text.

use super::super::{Definition, Problem, Problems};

/// What is said about a text; it must be refused.
#[track_caller]
pub(super) fn refused(text: &str) -> Problems {
    match Definition::from_text(text.as_bytes()) {
        Ok(_) => panic!("accepted: {}", text.chars().take(500).collect::<String>()),
        Err(problems) => problems,
    }
}

/// `line:column code pointer` of a problem.
pub(super) fn brief(problem: &Problem) -> String {
    let number = |value: Option<usize>| value.map_or_else(|| "-".to_owned(), |v| v.to_string());
    let (line, column) = (number(problem.line), number(problem.column));
    format!(
        "{line}:{column} {} {}",
        problem.code.as_str(),
        problem.pointer
    )
}

/// Checks what is said about a text, problem by problem.
#[track_caller]
pub(super) fn assert_refused(text: &str, expected: &[&str]) {
    let problems = refused(text);
    let actual: Vec<String> = problems.0.iter().map(brief).collect();
    assert_eq!(actual, expected, "{text}\n{problems}");
}

#[track_caller]
pub(super) fn accepted(text: &str) -> Definition {
    Definition::from_text(text.as_bytes()).unwrap_or_else(|problems| panic!("{problems}\n{text}"))
}
