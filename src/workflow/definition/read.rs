//! A tree to a draft: every field of the right type and in its range, each task by itself.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::document::{Kind, Node};
use super::fields::{Fields, TASK_FIELDS, WORKFLOW_FIELDS};
use super::graph::Graph;
use super::kwargs;
use super::model::{Definition, TaskDefinition};
use super::problem::ProblemCode::{
    InvalidName, InvalidValue, LimitExceeded, MissingField, WrongType,
};
use super::report::{Place, Report, quoted};
use crate::limits::{
    CONDITION_BYTES_MAX, DEPENDENCIES_MAX, LABEL_BYTES_MAX, LABELS_MAX, RETRIES_MAX, TASKS_MAX,
    TIMEOUT_S_MAX, WORKFLOW_NAME_BYTES_MAX,
};
use crate::workflow::{DepPolicy, QueueName, ResultPolicy, Seconds, TaskName};

/// The queue of workflows that name none.
const DEFAULT_QUEUE: &str = "default";

/// What could be read of a workflow.
#[derive(Default)]
pub(super) struct Draft<'n> {
    name: &'n str,
    default_queue: Option<QueueName>,
    default_task_timeout_s: Option<Seconds>,
    max_parallelism: Option<u32>,
    result_policy: Option<ResultPolicy>,
    labels: BTreeMap<String, String>,
    pub(super) tasks: Vec<DraftTask<'n>>,
}

/// What could be read of a task.
#[derive(Default)]
pub(super) struct DraftTask<'n> {
    /// As given, even where it breaks the rules for names, so that references to it make sense.
    pub(super) name: Option<&'n str>,
    checked_name: Option<TaskName>,
    kwargs: Option<Box<RawValue>>,
    /// One for each item of the list; none where it is not text.
    pub(super) depends_on: Vec<Option<&'n str>>,
    queue: Option<QueueName>,
    pub(super) dep_policy: DepPolicy,
    timeout_s: Option<Seconds>,
    num_retries: u32,
    pub(super) condition: Option<&'n str>,
}

impl Draft<'_> {
    /// The definition, once nothing is wrong with the draft.
    pub(super) fn finish(self, graph: &Graph) -> Definition {
        // A draft without problems has only checked names.
        let names: Vec<TaskName> = self
            .tasks
            .iter()
            .filter_map(|task| task.checked_name.clone())
            .collect();
        let tasks = self.tasks.into_iter().enumerate().zip(&names);
        Definition {
            name: self.name.to_owned(),
            default_queue: self.default_queue.unwrap_or_else(|| {
                QueueName::parse(DEFAULT_QUEUE).expect("the default queue's name is plain")
            }),
            default_task_timeout_s: self.default_task_timeout_s,
            max_parallelism: self.max_parallelism,
            result_policy: self.result_policy.unwrap_or(ResultPolicy::AllSinksSucceed),
            labels: self.labels,
            tasks: tasks
                .map(|((index, task), name)| TaskDefinition {
                    name: name.clone(),
                    kwargs: task.kwargs.unwrap_or_else(|| {
                        RawValue::from_string("{}".to_owned()).expect("an empty map is JSON")
                    }),
                    depends_on: graph
                        .parents(index)
                        .map(|parent| names[parent].clone())
                        .collect(),
                    queue: task.queue,
                    dep_policy: task.dep_policy,
                    timeout_s: task.timeout_s,
                    num_retries: task.num_retries,
                    condition: task.condition.map(str::to_owned),
                })
                .collect(),
        }
    }
}

/// Reads a whole document.
pub(super) fn workflow<'n>(node: &'n Node<'_>, report: &mut Report) -> Draft<'n> {
    let root = Place::ROOT;
    let Kind::Map(entries) = &node.kind else {
        let what = node.kind.describe();
        report.add(WrongType, &root, || {
            format!("a workflow is a map with `name` and `tasks`, not {what}")
        });
        return Draft::default();
    };
    let fields = Fields::collect(entries, WORKFLOW_FIELDS, &root, report);
    let read = |name: &'static str| fields.get(name).map(|node| (node, root.key(name), name));
    let mut draft = Draft {
        default_queue: read("default_queue").and_then(|(n, p, f)| queue(n, &p, f, report)),
        default_task_timeout_s: read("default_task_timeout_s")
            .and_then(|(n, p, f)| timeout(n, &p, f, report)),
        max_parallelism: read("max_parallelism")
            .and_then(|(n, p, f)| whole(n, &p, f, 1..=u32::MAX, report)),
        result_policy: read("result_policy").and_then(|(n, p, _)| result_policy(n, &p, report)),
        labels: read("labels").map_or_else(BTreeMap::new, |(n, p, _)| labels(n, &p, report)),
        ..Draft::default()
    };
    match read("name") {
        Some((node, place, _)) => draft.name = workflow_name(node, &place, report),
        None => report.add(MissingField, &root, || {
            "the workflow has no `name`; give it one".to_owned()
        }),
    }
    match read("tasks") {
        Some((node, place, _)) => draft.tasks = tasks(node, &place, report),
        None => report.add(MissingField, &root, || {
            "the workflow has no `tasks`; give it at least one".to_owned()
        }),
    }
    draft
}

fn tasks<'n>(node: &'n Node<'_>, place: &Place<'_>, report: &mut Report) -> Vec<DraftTask<'n>> {
    let Kind::List(items) = &node.kind else {
        let what = node.kind.describe();
        report.add(WrongType, place, || {
            format!("`tasks` must be a list of tasks, not {what}")
        });
        return Vec::new();
    };
    if items.is_empty() {
        report.add(InvalidValue, place, || {
            "`tasks` is empty; give it at least one task".to_owned()
        });
    }
    if items.len() > TASKS_MAX {
        let count = items.len();
        report.add(LimitExceeded, place, || {
            format!("{count} tasks; at most {TASKS_MAX} are allowed")
        });
        return Vec::new();
    }
    let mut dependencies_left = DEPENDENCIES_MAX;
    let mut tasks = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let at = place.index(index);
        let draft = task(item, &at, report);
        let Some(left) = dependencies_left.checked_sub(draft.depends_on.len()) else {
            report.add(LimitExceeded, &at.key("depends_on"), || {
                format!("more than {DEPENDENCIES_MAX} dependencies in all")
            });
            return Vec::new();
        };
        dependencies_left = left;
        tasks.push(draft);
    }
    tasks
}

fn task<'n>(node: &'n Node<'_>, place: &Place<'_>, report: &mut Report) -> DraftTask<'n> {
    let Kind::Map(entries) = &node.kind else {
        let what = node.kind.describe();
        report.add(WrongType, place, || {
            format!("a task is a map with at least a `name`, not {what}")
        });
        return DraftTask::default();
    };
    let name_node = entries.iter().find(|entry| entry.key == "name");
    let name = name_node.and_then(|entry| match &entry.value.kind {
        Kind::Text(text) => Some(text.as_ref()),
        _ => None,
    });
    let place = &place.of_task(name);
    let fields = Fields::collect(entries, TASK_FIELDS, place, report);
    let checked_name = match fields.get("name") {
        Some(node) => task_name(node, &place.key("name"), report),
        None => {
            report.add(MissingField, place, || {
                "the task has no `name`; give it one".to_owned()
            });
            None
        }
    };
    let read = |name: &'static str| fields.get(name).map(|node| (node, place.key(name), name));
    DraftTask {
        name,
        checked_name,
        kwargs: read("kwargs").and_then(|(n, p, _)| kwargs::read(n, &p, report)),
        depends_on: read("depends_on").map_or_else(Vec::new, |(n, p, _)| names(n, &p, report)),
        queue: read("queue").and_then(|(n, p, f)| queue(n, &p, f, report)),
        dep_policy: read("dep_policy")
            .and_then(|(n, p, _)| dep_policy(n, &p, report))
            .unwrap_or_default(),
        timeout_s: read("timeout_s").and_then(|(n, p, f)| timeout(n, &p, f, report)),
        num_retries: read("num_retries")
            .and_then(|(n, p, f)| whole(n, &p, f, 0..=RETRIES_MAX, report))
            .unwrap_or(0),
        condition: read("condition").and_then(|(n, p, _)| condition(n, &p, report)),
    }
}

/// The text of a field.
fn text<'n>(
    node: &'n Node<'_>,
    place: &Place<'_>,
    field: &str,
    report: &mut Report,
) -> Option<&'n str> {
    let Kind::Text(text) = &node.kind else {
        let what = node.kind.describe();
        report.add(WrongType, place, || {
            format!("`{field}` must be text, not {what}")
        });
        return None;
    };
    Some(text)
}

fn workflow_name<'n>(node: &'n Node<'_>, place: &Place<'_>, report: &mut Report) -> &'n str {
    let name = text(node, place, "name", report).unwrap_or("-");
    let reason = if name.trim().is_empty() {
        "must not be blank"
    } else if name.len() > WORKFLOW_NAME_BYTES_MAX {
        "must have at most 256 bytes"
    } else if name.chars().any(char::is_control) {
        "must not hold control characters"
    } else {
        return name;
    };
    report.add(InvalidName, place, || {
        format!("the workflow's `name` {reason}")
    });
    name
}

fn task_name(node: &Node<'_>, place: &Place<'_>, report: &mut Report) -> Option<TaskName> {
    let name = text(node, place, "name", report)?;
    match TaskName::parse(name) {
        Ok(_) if kwargs::is_reserved_task_name(name) => {
            report.add(InvalidName, place, || {
                "names starting with `__merge_` are kept for the fan-in rewrite".to_owned()
            });
            None
        }
        Ok(name) => Some(name),
        Err(error) => {
            report.add(InvalidName, place, || {
                format!("a task's `name` {}", error.reason())
            });
            None
        }
    }
}

fn queue(
    node: &Node<'_>,
    place: &Place<'_>,
    field: &str,
    report: &mut Report,
) -> Option<QueueName> {
    match QueueName::parse(text(node, place, field, report)?) {
        Ok(queue) => Some(queue),
        Err(error) => {
            report.add(InvalidName, place, || {
                format!("`{field}` {}", error.reason())
            });
            None
        }
    }
}

/// A whole number in a range.
fn whole(
    node: &Node<'_>,
    place: &Place<'_>,
    field: &str,
    range: std::ops::RangeInclusive<u32>,
    report: &mut Report,
) -> Option<u32> {
    let Kind::Whole(digits) = &node.kind else {
        let what = node.kind.describe();
        report.add(WrongType, place, || {
            format!("`{field}` must be a whole number, not {what}")
        });
        return None;
    };
    // Digits that do not fit are out of every range.
    let value = digits.parse().ok().filter(|value| range.contains(value));
    if value.is_none() {
        report.add(InvalidValue, place, || {
            format!(
                "`{field}` must be from {} to {}",
                range.start(),
                range.end()
            )
        });
    }
    value
}

fn timeout(
    node: &Node<'_>,
    place: &Place<'_>,
    field: &str,
    report: &mut Report,
) -> Option<Seconds> {
    let value = match &node.kind {
        Kind::Whole(digits) => digits.parse().unwrap_or(f64::INFINITY),
        Kind::Float(value) => *value,
        other => {
            let what = other.describe();
            report.add(WrongType, place, || {
                format!("`{field}` must be a number of seconds, not {what}")
            });
            return None;
        }
    };
    #[expect(clippy::cast_precision_loss, reason = "a year in seconds is exact")]
    let max = TIMEOUT_S_MAX as f64;
    if value > 0.0 && value <= max {
        return Some(Seconds(value));
    }
    report.add(InvalidValue, place, || {
        format!("`{field}` must be more than 0 and at most {TIMEOUT_S_MAX} seconds")
    });
    None
}

fn result_policy(node: &Node<'_>, place: &Place<'_>, report: &mut Report) -> Option<ResultPolicy> {
    let word = text(node, place, "result_policy", report)?;
    let policy = ResultPolicy::from_word(word);
    if policy.is_none() {
        report.add(InvalidValue, place, || {
            format!(
                "`result_policy` must be `all_sinks_succeed` or `all_tasks_succeed`, not {}",
                quoted(word)
            )
        });
    }
    policy
}

const DEP_POLICIES: &str = "`all`, `any`, `all_settled` or a whole number from 1";

fn dep_policy(node: &Node<'_>, place: &Place<'_>, report: &mut Report) -> Option<DepPolicy> {
    let (policy, given) = match &node.kind {
        Kind::Text(word) => {
            let policy = match word.as_ref() {
                "all" => Some(DepPolicy::All),
                "any" => Some(DepPolicy::Any),
                "all_settled" => Some(DepPolicy::AllSettled),
                _ => None,
            };
            (policy, quoted(word))
        }
        Kind::Whole(digits) => {
            let needed = digits.parse().ok().filter(|needed| *needed >= 1);
            (needed.map(DepPolicy::AtLeast), quoted(digits))
        }
        other => {
            let what = other.describe();
            report.add(WrongType, place, || {
                format!("`dep_policy` must be {DEP_POLICIES}, not {what}")
            });
            return None;
        }
    };
    if policy.is_none() {
        report.add(InvalidValue, place, || {
            format!("`dep_policy` must be {DEP_POLICIES}, not {given}")
        });
    }
    policy
}

fn condition<'n>(node: &'n Node<'_>, place: &Place<'_>, report: &mut Report) -> Option<&'n str> {
    let condition = text(node, place, "condition", report)?;
    if condition.len() > CONDITION_BYTES_MAX {
        report.add(LimitExceeded, place, || {
            let length = condition.len();
            format!("`condition` has {length} bytes; at most {CONDITION_BYTES_MAX} are allowed")
        });
        return None;
    }
    Some(condition)
}

fn names<'n>(node: &'n Node<'_>, place: &Place<'_>, report: &mut Report) -> Vec<Option<&'n str>> {
    let Kind::List(items) = &node.kind else {
        let what = node.kind.describe();
        report.add(WrongType, place, || {
            format!("`depends_on` must be a list of task names, not {what}")
        });
        return Vec::new();
    };
    let name = |(index, item): (usize, &'n Node<'_>)| match &item.kind {
        Kind::Text(name) => Some(name.as_ref()),
        other => {
            let what = other.describe();
            report.add(WrongType, &place.index(index), || {
                format!("`depends_on` must list names of tasks, not {what}")
            });
            None
        }
    };
    items.iter().enumerate().map(name).collect()
}

fn labels(node: &Node<'_>, place: &Place<'_>, report: &mut Report) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    let Kind::Map(entries) = &node.kind else {
        let what = node.kind.describe();
        report.add(WrongType, place, || {
            format!("`labels` must be a map of text to text, not {what}")
        });
        return labels;
    };
    if entries.len() > LABELS_MAX {
        let count = entries.len();
        report.add(LimitExceeded, place, || {
            format!("{count} labels; at most {LABELS_MAX} are allowed")
        });
        return labels;
    }
    kwargs::check_unique_keys(entries, place, report);
    for entry in entries.iter() {
        let at = place.key(&entry.key);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
        if entry.key.is_empty() || !entry.key.chars().all(is_plain) {
            report.add(InvalidName, &at, || {
                let key = quoted(&entry.key);
                format!("the label {key} may hold only A-Z a-z 0-9 . _ - /, and not be empty")
            });
        }
        let Some(value) = text(&entry.value, &at, "labels", report) else {
            continue;
        };
        if entry.key.len() > LABEL_BYTES_MAX || value.len() > LABEL_BYTES_MAX {
            report.add(LimitExceeded, &at, || {
                format!("a label and its value may have at most {LABEL_BYTES_MAX} bytes each")
            });
        }
        labels.insert(entry.key.to_string(), value.to_owned());
    }
    labels
}
