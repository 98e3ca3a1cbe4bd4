//! The checks of a task's `kwargs`: what a worker would stumble over is refused here.

use std::collections::HashSet;

use serde_json::value::RawValue;

use super::document::{Entry, Kind, Node};
use super::json;
use super::problem::ProblemCode;
use super::report::{Place, Report, quoted};
use crate::limits::MESSAGE_BYTES_MAX;

/// Start of the names of the tasks that the fan-in rewrite adds.
const RESERVED_TASK_PREFIX: &str = "__merge_";

/// Keys that the coordinator adds to a task's message.
const RESERVED_KEYS: &[&str] = &[
    "__workflow_id",
    "__workflow_task",
    "__attempt_no",
    "__upstream_outputs_compact",
    "__upstream_output_refs",
    "__traceparent",
    "__batch_merge",
];

/// Whether users may not give a task this name.
pub(super) fn is_reserved_task_name(name: &str) -> bool {
    name.starts_with(RESERVED_TASK_PREFIX)
}

/// The text of `kwargs`: as given where it was JSON, compact where it was YAML.
pub(super) fn read(
    node: &Node<'_>,
    place: &Place<'_>,
    report: &mut Report,
) -> Option<Box<RawValue>> {
    let Kind::Raw(raw) = node.kind else {
        check(node, place, report)?;
        let mut text = String::new();
        if node.write_json(&mut text, MESSAGE_BYTES_MAX).is_err() {
            too_large(place, report);
            return None;
        }
        return RawValue::from_string(text).ok();
    };
    let node = match json::parse_kwargs(raw) {
        Ok(node) => node,
        Err((code, message)) => {
            report.add(code, place, || format!("`kwargs`: {message}"));
            return None;
        }
    };
    check(&node, place, report)?;
    // Blanks may be left out of the message, so only the compact form counts.
    let is_long = raw.get().len() > MESSAGE_BYTES_MAX;
    if is_long
        && node
            .write_json(&mut String::new(), MESSAGE_BYTES_MAX)
            .is_err()
    {
        too_large(place, report);
        return None;
    }
    Some(raw.to_owned())
}

fn too_large(place: &Place<'_>, report: &mut Report) {
    report.add(ProblemCode::LimitExceeded, place, || {
        format!(
            "`kwargs` do not fit a queue message of {MESSAGE_BYTES_MAX} bytes; \
             put large data into storage and pass its name"
        )
    });
}

fn check(node: &Node<'_>, place: &Place<'_>, report: &mut Report) -> Option<()> {
    let Kind::Map(entries) = &node.kind else {
        let what = node.kind.describe();
        report.add(ProblemCode::WrongType, place, || {
            format!("`kwargs` must be a map, not {what}")
        });
        return None;
    };
    check_values(node, place, report);
    for entry in entries.iter().filter(|entry| !entry.value.kind.is_null()) {
        let at = place.key(&entry.key);
        match entry.key.as_ref() {
            key if RESERVED_KEYS.contains(&key) => {
                report.add(ProblemCode::InvalidValue, &at, || {
                    format!("`{key}` is set by the coordinator; use another key")
                });
            }
            field @ ("cmd" | "cwd") => check_text(field, &entry.value, &at, report),
            "env" => check_env(&entry.value, &at, report),
            _ => {}
        }
    }
    Some(())
}

/// No key twice and no number that JSON cannot write, at any depth. The recursion is bounded by
/// the depth that both parsers allow.
fn check_values(node: &Node<'_>, place: &Place<'_>, report: &mut Report) {
    match &node.kind {
        Kind::Float(value) if !value.is_finite() => {
            report.add(ProblemCode::InvalidValue, place, || {
                "JSON has no infinite numbers and no NaN; pass it as text".to_owned()
            });
        }
        Kind::List(items) => {
            for (index, item) in items.iter().enumerate() {
                check_values(item, &place.index(index), report);
            }
        }
        Kind::Map(entries) => {
            check_unique_keys(entries, place, report);
            for entry in entries.iter() {
                check_values(&entry.value, &place.key(&entry.key), report);
            }
        }
        _ => {}
    }
}

/// Reports keys that stand twice in a map.
pub(super) fn check_unique_keys(entries: &[Entry<'_>], place: &Place<'_>, report: &mut Report) {
    let mut seen = HashSet::with_capacity(entries.len());
    for entry in entries {
        if !seen.insert(entry.key.as_ref()) {
            report.add(ProblemCode::DuplicateKey, &place.key(&entry.key), || {
                format!("the key {} stands twice; keep one", quoted(&entry.key))
            });
        }
    }
}

fn check_text(field: &str, node: &Node<'_>, place: &Place<'_>, report: &mut Report) {
    match &node.kind {
        Kind::Text(text) if text.contains('\0') => {
            report.add(ProblemCode::InvalidValue, place, || {
                format!("`{field}` holds a NUL character, which no command line can")
            });
        }
        Kind::Text(_) => {}
        other => {
            let what = other.describe();
            report.add(ProblemCode::WrongType, place, || {
                format!("`{field}` must be text, not {what}")
            });
        }
    }
}

fn check_env(node: &Node<'_>, place: &Place<'_>, report: &mut Report) {
    let Kind::Map(entries) = &node.kind else {
        let what = node.kind.describe();
        report.add(ProblemCode::WrongType, place, || {
            format!("`env` must be a map of variables, not {what}")
        });
        return;
    };
    for entry in entries.iter() {
        let at = place.key(&entry.key);
        if entry.key.is_empty() || entry.key.contains(['=', '\0']) {
            report.add(ProblemCode::InvalidValue, &at, || {
                format!("{} cannot name an environment variable", quoted(&entry.key))
            });
        }
        match &entry.value.kind {
            Kind::Text(text) if text.contains('\0') => {
                report.add(ProblemCode::InvalidValue, &at, || {
                    format!("the variable {} holds a NUL character", quoted(&entry.key))
                });
            }
            Kind::Text(_) | Kind::Whole(_) | Kind::Float(_) | Kind::Bool(_) => {}
            other => {
                let what = other.describe();
                report.add(ProblemCode::WrongType, &at, || {
                    let name = quoted(&entry.key);
                    format!("the variable {name} must be text, a number or a boolean, not {what}")
                });
            }
        }
    }
}
