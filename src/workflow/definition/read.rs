//! A tree to a draft: every field of the right type and in its range, each task by itself.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::document::{Kind, Node};
use super::fields::{Fields, TASK_FIELDS, WORKFLOW_FIELDS};
use super::graph::Graph;
use super::kwargs;
use super::model::{Definition, TaskDefinition};
use super::problem::ProblemCode::{InvalidValue, LimitExceeded, WrongType};
use super::report::{Place, Report};
use super::values::Field;
use crate::limits::{DEPENDENCIES_MAX, RETRIES_MAX, TASKS_MAX};
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
    let (name, tasks) = (
        fields.require("name", report),
        fields.require("tasks", report),
    );
    let timeout = fields.get("default_task_timeout_s");
    let parallelism = fields.get("max_parallelism");
    let policy = fields.get("result_policy");
    Draft {
        name: name
            .and_then(|field| field.workflow_name(report))
            .unwrap_or_default(),
        default_queue: fields
            .get("default_queue")
            .and_then(|field| field.queue(report)),
        default_task_timeout_s: timeout.and_then(|field| field.seconds(report)),
        max_parallelism: parallelism.and_then(|field| field.whole(&(1..=u32::MAX), report)),
        result_policy: policy.and_then(|field| field.result_policy(report)),
        labels: fields
            .get("labels")
            .map(|field| field.labels(report))
            .unwrap_or_default(),
        tasks: tasks
            .map(|field| read_tasks(&field, report))
            .unwrap_or_default(),
    }
}

fn read_tasks<'n>(field: &Field<'_, 'n, '_>, report: &mut Report) -> Vec<DraftTask<'n>> {
    let place = &field.place;
    let Kind::List(items) = &field.node.kind else {
        field.wrong_type("a list of tasks", report);
        return Vec::new();
    };
    if items.is_empty() {
        report.add(InvalidValue, place, || {
            "`tasks` is empty; give it at least one".to_owned()
        });
    }
    if items.len() > TASKS_MAX {
        report.add(LimitExceeded, place, || {
            format!("{} tasks; at most {TASKS_MAX} are allowed", items.len())
        });
        return Vec::new();
    }
    let mut dependencies_left = DEPENDENCIES_MAX;
    let mut tasks = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let at = place.index(index);
        let task = read_task(item, at, report);
        let Some(left) = dependencies_left.checked_sub(task.depends_on.len()) else {
            report.add(LimitExceeded, &at.key("depends_on"), || {
                format!("more than {DEPENDENCIES_MAX} dependencies in all")
            });
            return Vec::new();
        };
        dependencies_left = left;
        tasks.push(task);
    }
    tasks
}

fn read_task<'n>(node: &'n Node<'_>, place: Place<'_>, report: &mut Report) -> DraftTask<'n> {
    let Kind::Map(entries) = &node.kind else {
        let what = node.kind.describe();
        report.add(WrongType, &place, || {
            format!("a task is a map with at least a `name`, not {what}")
        });
        return DraftTask::default();
    };
    // Looked up before anything is reported, for every report names the task.
    let name_entry = entries.iter().find(|entry| entry.key == "name");
    let name = name_entry.and_then(|entry| match &entry.value.kind {
        Kind::Text(text) => Some(text.as_ref()),
        _ => None,
    });
    let place = place.of_task(name);
    let fields = Fields::collect(entries, TASK_FIELDS, &place, report);
    let name_field = fields.require("name", report);
    let retries = fields.get("num_retries");
    let policy = fields.get("dep_policy");
    DraftTask {
        name,
        checked_name: name_field.and_then(|field| field.task_name(report)),
        kwargs: fields
            .get("kwargs")
            .and_then(|field| kwargs::read(&field, report)),
        depends_on: fields
            .get("depends_on")
            .map(|field| field.names(report))
            .unwrap_or_default(),
        queue: fields.get("queue").and_then(|field| field.queue(report)),
        dep_policy: policy
            .and_then(|field| field.dep_policy(report))
            .unwrap_or_default(),
        timeout_s: fields
            .get("timeout_s")
            .and_then(|field| field.seconds(report)),
        num_retries: retries
            .and_then(|field| field.whole(&(0..=RETRIES_MAX), report))
            .unwrap_or_default(),
        condition: fields
            .get("condition")
            .and_then(|field| field.condition(report)),
    }
}
