//! The fields of a definition, and what to say about those it does not have.

use super::document::{Entry, Node};
use super::problem::ProblemCode;
use super::report::{Place, Report, quoted};
use super::values::Field;

/// Fields of the workflow.
pub(super) const WORKFLOW_FIELDS: &[&str] = &[
    "$schema",
    "name",
    "tasks",
    "default_queue",
    "default_task_timeout_s",
    "max_parallelism",
    "result_policy",
    "labels",
];

/// Fields of a task.
pub(super) const TASK_FIELDS: &[&str] = &[
    "name",
    "kwargs",
    "depends_on",
    "queue",
    "dep_policy",
    "timeout_s",
    "num_retries",
    "condition",
];

const FIELDS_MAX: usize = 8;

const _: () = assert!(WORKFLOW_FIELDS.len() <= FIELDS_MAX && TASK_FIELDS.len() <= FIELDS_MAX);

/// Longest key for which a similar one is looked for: no field is nearly as long.
const SIMILAR_BYTES_MAX: usize = 64;

/// How alike two names must be (1.0: the same) for one to be suggested for the other.
const SIMILAR_MIN: f64 = 0.6;

/// The values of a map's known fields. An explicit null counts as absent.
pub(super) struct Fields<'p, 'n, 'a> {
    known: &'static [&'static str],
    place: &'p Place<'p>,
    values: [Option<&'n Node<'a>>; FIELDS_MAX],
}

impl<'p, 'n, 'a> Fields<'p, 'n, 'a> {
    /// Sorts a map's entries into its known fields, and reports the others.
    pub(super) fn collect(
        entries: &'n [Entry<'a>],
        known: &'static [&'static str],
        place: &'p Place<'p>,
        report: &mut Report,
    ) -> Self {
        let mut values = [None; FIELDS_MAX];
        for entry in entries {
            let at = place.key(&entry.key);
            match known.iter().position(|field| *field == entry.key) {
                None => report.add(ProblemCode::UnknownField, &at, || {
                    unknown(&entry.key, known)
                }),
                Some(index) if values[index].is_some() => {
                    report.add(ProblemCode::DuplicateKey, &at, || {
                        format!("`{}` stands twice; keep one", entry.key)
                    });
                }
                Some(index) => values[index] = Some(&entry.value),
            }
        }
        Self {
            known,
            place,
            values,
        }
    }

    /// A field, unless it is absent or null.
    pub(super) fn get(&self, name: &'static str) -> Option<Field<'p, 'n, 'a>> {
        let index = self.known.iter().position(|known| *known == name)?;
        let node = self.values[index].filter(|node| !node.kind.is_null())?;
        Some(Field {
            name,
            node,
            place: self.place.key(name),
        })
    }

    /// A field that must be there.
    pub(super) fn require(
        &self,
        name: &'static str,
        report: &mut Report,
    ) -> Option<Field<'p, 'n, 'a>> {
        let field = self.get(name);
        if field.is_none() {
            report.add(ProblemCode::MissingField, self.place, || {
                format!("the field `{name}` is missing")
            });
        }
        field
    }
}

fn unknown(key: &str, known: &[&str]) -> String {
    let name = quoted(key);
    if matches!(key, "cmd" | "command" | "env" | "cwd") && known == TASK_FIELDS {
        let field = if key == "command" { "cmd" } else { key };
        return format!("there is no field {name} here; write it as `{field}` under `kwargs`");
    }
    match similar(key, known.iter().copied()) {
        Some(field) => format!("there is no field {name}; did you mean `{field}`?"),
        None => format!("there is no field {name}; known are {}", known.join(", ")),
    }
}

/// The candidate that looks most like `text`, if any looks enough like it.
pub(super) fn similar<'c>(
    text: &str,
    candidates: impl Iterator<Item = &'c str>,
) -> Option<&'c str> {
    if text.len() > SIMILAR_BYTES_MAX {
        return None;
    }
    candidates
        .filter(|candidate| candidate.len() <= SIMILAR_BYTES_MAX)
        .map(|candidate| {
            let likeness = strsim::normalized_damerau_levenshtein(text, candidate);
            (candidate, likeness)
        })
        .filter(|(_, likeness)| *likeness >= SIMILAR_MIN)
        .max_by(|(_, one), (_, other)| one.total_cmp(other))
        .map(|(candidate, _)| candidate)
}
