//! The checks of a task's `kwargs`: what a worker would stumble over is refused here.

use std::collections::HashSet;

use serde_json::value::RawValue;

use super::document::{Entry, Kind, Node};
use super::json;
use super::problem::ProblemCode;
use super::report::{Place, Report, quoted};
use super::values::Field;
use crate::limits::MESSAGE_BYTES_MAX;

/// Start of the names of the tasks that the fan-in rewrite adds.
const RESERVED_TASK_PREFIX: &str = "__merge_";

/// Keys that the coordinator adds to a task's message.
pub(super) const RESERVED_KEYS: &[&str] = &[
    "__workflow_id",
    "__workflow_task",
    "__attempt_no",
    "__retry_no",
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
pub(super) fn read(field: &Field<'_, '_, '_>, report: &mut Report) -> Option<Box<RawValue>> {
    let Kind::Raw(raw) = field.node.kind else {
        check(field, report)?;
        return compact(field, report);
    };
    match json::parse_kwargs(raw) {
        Ok(node) => {
            let opened = Field {
                node: &node,
                ..*field
            };
            check(&opened, report)?;
            // Blanks may be left out of the message, so only the compact form counts.
            if raw.get().len() > MESSAGE_BYTES_MAX {
                compact(&opened, report)?;
            }
            Some(raw.to_owned())
        }
        Err((code, message)) => {
            report.add(code, &field.place, || format!("`kwargs`: {message}"));
            None
        }
    }
}

/// The shortest text of `kwargs`, if it fits a message.
fn compact(field: &Field<'_, '_, '_>, report: &mut Report) -> Option<Box<RawValue>> {
    let mut text = String::new();
    if field.node.write_json(&mut text, MESSAGE_BYTES_MAX).is_ok() {
        return RawValue::from_string(text).ok();
    }
    report.add(ProblemCode::LimitExceeded, &field.place, || {
        format!(
            "`kwargs` do not fit a queue message of {MESSAGE_BYTES_MAX} bytes; \
             put large data into storage and pass its name"
        )
    });
    None
}

fn check(field: &Field<'_, '_, '_>, report: &mut Report) -> Option<()> {
    let Kind::Map(entries) = &field.node.kind else {
        field.wrong_type("a map", report);
        return None;
    };
    let place = &field.place;
    check_values(field.node, place, report);
    for entry in entries.iter() {
        let value = Field {
            name: "",
            node: &entry.value,
            place: place.key(&entry.key),
        };
        match entry.key.as_ref() {
            key if RESERVED_KEYS.contains(&key) => {
                report.add(ProblemCode::InvalidValue, &value.place, || {
                    format!("`{key}` is set by the coordinator; use another key")
                });
            }
            _ if entry.value.kind.is_null() => {}
            "cmd" => check_text(
                &Field {
                    name: "cmd",
                    ..value
                },
                report,
            ),
            "cwd" => check_text(
                &Field {
                    name: "cwd",
                    ..value
                },
                report,
            ),
            "env" => check_env(
                &Field {
                    name: "env",
                    ..value
                },
                report,
            ),
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

fn check_text(field: &Field<'_, '_, '_>, report: &mut Report) {
    if field.text(report).is_some_and(|text| text.contains('\0')) {
        report.add(ProblemCode::InvalidValue, &field.place, || {
            format!(
                "`{}` holds a NUL character, which no command line can",
                field.name
            )
        });
    }
}

fn check_env(field: &Field<'_, '_, '_>, report: &mut Report) {
    let Kind::Map(entries) = &field.node.kind else {
        field.wrong_type("a map of variables", report);
        return;
    };
    for entry in entries.iter() {
        let at = field.place.key(&entry.key);
        let name = || quoted(&entry.key);
        if entry.key.is_empty() || entry.key.contains(['=', '\0']) {
            report.add(ProblemCode::InvalidValue, &at, || {
                format!("{} cannot name an environment variable", name())
            });
        }
        match &entry.value.kind {
            Kind::Text(text) if text.contains('\0') => {
                report.add(ProblemCode::InvalidValue, &at, || {
                    format!("the variable {} holds a NUL character", name())
                });
            }
            Kind::Text(_) | Kind::Whole(_) | Kind::Float(_) | Kind::Bool(_) => {}
            other => report.add(ProblemCode::WrongType, &at, || {
                let (name, what) = (name(), other.describe());
                format!("the variable {name} must be text, a number or a boolean, not {what}")
            }),
        }
    }
}
