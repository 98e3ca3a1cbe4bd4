//! Short ways to build workflows in tests.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::definition::{Definition, TaskDefinition};
use super::runtime::{Completion, LoadedOutputs, Runtime};
use super::{DepPolicy, QueueName, ResultPolicy, TaskName, WorkflowId};
use crate::clock::Timestamp;

/// A task without dependencies; change its fields for more.
pub(crate) fn task(name: &str) -> TaskDefinition {
    TaskDefinition {
        name: TaskName::parse(name).unwrap(),
        kwargs: RawValue::from_string("{}".to_owned()).unwrap(),
        depends_on: Vec::new(),
        queue: None,
        dep_policy: DepPolicy::All,
        timeout_s: None,
        num_retries: 0,
        condition: None,
    }
}

/// A task that depends on others.
pub(crate) fn after(name: &str, parents: &[&str]) -> TaskDefinition {
    let depends_on = parents
        .iter()
        .map(|parent| TaskName::parse(parent).unwrap())
        .collect();
    TaskDefinition {
        depends_on,
        ..task(name)
    }
}

/// A workflow of these tasks.
pub(crate) fn workflow(tasks: Vec<TaskDefinition>) -> Definition {
    Definition {
        name: "w".to_owned(),
        default_queue: QueueName::parse("default").unwrap(),
        default_task_timeout_s: None,
        max_parallelism: None,
        result_policy: ResultPolicy::AllSinksSucceed,
        labels: BTreeMap::new(),
        tasks,
    }
}

/// The moment `seconds` after the start of every test.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(1_767_225_600_000_000 + seconds * 1_000_000)
}

/// A runtime at its start.
pub(crate) fn started(definition: &Definition) -> Runtime {
    Runtime::new(WorkflowId::parse("w1").unwrap(), definition, at(0))
}

/// A report of success.
pub(crate) fn success(attempt_no: u32) -> Completion<'static> {
    Completion {
        attempt_no: Some(attempt_no),
        retry_no: None,
        success: true,
        output_ref: None,
        error: None,
    }
}

/// A report of failure.
pub(crate) fn failure(attempt_no: u32) -> Completion<'static> {
    Completion {
        attempt_no: Some(attempt_no),
        retry_no: None,
        success: false,
        output_ref: None,
        error: Some("no"),
    }
}

/// Dispatches everything that may be; the names and attempts.
pub(crate) fn dispatch_all(runtime: &mut Runtime) -> Vec<(String, u32)> {
    let mut pushed = Vec::new();
    loop {
        let indexes: Vec<_> = runtime.dispatchable().collect();
        if indexes.is_empty() {
            return pushed;
        }
        for index in indexes {
            let attempt_no = runtime.dispatch(index, at(1)).unwrap();
            pushed.push((runtime.task(index).name().to_string(), attempt_no));
        }
    }
}

/// Applies one completion by task name and settles without loaded outputs.
pub(crate) fn complete(
    runtime: &mut Runtime,
    task: &str,
    completion: &Completion<'_>,
) -> super::runtime::Applied {
    let index = runtime.find(task).unwrap();
    let applied = runtime.apply(index, completion, at(2));
    runtime.settle(&LoadedOutputs::default(), at(2));
    applied
}
