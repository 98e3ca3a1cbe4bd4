//! The `max_fan_in` rewrite: a task that waits for thousands of others waits for them in batches.
//!
//! A task `t` with more than N dependencies gets tasks `__merge_t_0`, `__merge_t_1`, ... that wait
//! for N of them each. Batch i also waits for the merge of batch i - 1, and so do its members, so
//! that only one batch runs at a time; `t` itself waits for the last merge. The coordinator
//! completes merges itself, without a queue message.
//!
//! ```text
//! a, b, c ──► __merge_t_0 ──► d, e, f ──► __merge_t_1 ──► t
//! ```
//!
//! What stays as it was, because the rewrite would change what it means:
//! - A task whose policy is not `all`, or that has a condition, keeps its dependencies: no chain
//!   of merges can tell "two of these" from "these", and a condition reads the outputs themselves.
//! - A member of a batch is not held back if it has such a policy or condition itself, which one
//!   more dependency could change, or if it would wait for more than N + 1.
//!
//! A failure in one batch keeps the later ones from running, as it would have kept `t`.
//!
//! Every task has N + 1 dependencies afterwards at most, save the first kind. The only parent of a
//! target is a merge then, which has no output: whoever wants the outputs of the tasks before it
//! fetches them by name.
//!
//! Why there is no cycle: batches of all targets are cut from one order of the tasks, in which
//! each comes after those it waits for. Every new dependency leads backwards in that order (a
//! merge standing right behind its last member), so no way along dependencies leads round.

use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::limits::{DEPENDENCIES_MAX, TASKS_MAX};
use crate::workflow::definition::{Definition, Problem, ProblemCode, Problems, TaskDefinition};
use crate::workflow::{DepPolicy, TaskName};

/// Smallest bound that can be kept: with batches of one, merges would outnumber the tasks.
pub const FAN_IN_MIN: usize = 2;

/// Rewrites every task that waits for more than `max_fan_in` others into batches of that many.
/// Meant to be applied once: its own merges have one dependency more than that.
///
/// # Errors
/// A bound below [`FAN_IN_MIN`], a task whose name leaves no room for the names of its merges, or
/// more tasks or dependencies than a workflow may have.
pub fn limit_fan_in(definition: Definition, max_fan_in: usize) -> Result<Definition, Problems> {
    if max_fan_in < FAN_IN_MIN {
        let message = format!("`max_fan_in` is {max_fan_in}; it must be {FAN_IN_MIN} or more");
        return Err(Problem::of_document(ProblemCode::InvalidValue, message).into());
    }
    let is_wide = |task: &TaskDefinition| {
        task.depends_on.len() > max_fan_in
            && task.dep_policy == DepPolicy::All
            && task.condition.is_none()
    };
    if !definition.tasks.iter().any(is_wide) {
        return Ok(definition);
    }
    let rewritten: Vec<bool> = definition.tasks.iter().map(is_wide).collect();
    let wide = definition.tasks.iter().filter(|task| is_wide(task));
    let merges: usize = wide
        .map(|task| task.depends_on.len().div_ceil(max_fan_in))
        .sum();
    check_limit(
        "tasks",
        definition.tasks.len() + merges,
        TASKS_MAX,
        max_fan_in,
    )?;
    let mut rewrite = Rewrite::new(definition, &rewritten, max_fan_in);
    for target in (0..rewritten.len()).filter(|&task| rewritten[task]) {
        rewrite.split(target)?;
    }
    rewrite.finish()
}

fn check_limit(what: &str, count: usize, max: usize, max_fan_in: usize) -> Result<(), Problem> {
    if count <= max {
        return Ok(());
    }
    let message = format!(
        "with `max_fan_in` {max_fan_in} the workflow has {count} {what}; \
         at most {max} are allowed; raise `max_fan_in`"
    );
    Err(Problem::of_document(ProblemCode::LimitExceeded, message))
}

struct Rewrite {
    definition: Definition,
    max_fan_in: usize,
    index_of: HashMap<TaskName, usize>,
    /// The place of each task in the order that batches are cut from.
    rank: Vec<usize>,
    /// Dependencies each task will have: those it keeps, and merges that hold it back.
    counts: Vec<usize>,
    /// The merges that hold each task back.
    gates: Vec<Vec<TaskName>>,
    /// What replaces the dependencies of each rewritten task.
    last_merge: Vec<Option<TaskName>>,
    merges: Vec<TaskDefinition>,
}

impl Rewrite {
    fn new(definition: Definition, rewritten: &[bool], max_fan_in: usize) -> Self {
        let tasks = &definition.tasks;
        let index_of: HashMap<TaskName, usize> = (0..tasks.len())
            .map(|index| (tasks[index].name.clone(), index))
            .collect();
        let count = |(task, &rewritten): (&TaskDefinition, &bool)| {
            if rewritten { 1 } else { task.depends_on.len() }
        };
        Self {
            rank: rank(tasks, &index_of),
            counts: tasks.iter().zip(rewritten).map(count).collect(),
            gates: vec![Vec::new(); tasks.len()],
            last_merge: vec![None; tasks.len()],
            merges: Vec::new(),
            index_of,
            definition,
            max_fan_in,
        }
    }

    /// Cuts the dependencies of one task into batches.
    fn split(&mut self, target: usize) -> Result<(), Problem> {
        let task = &self.definition.tasks[target];
        let target_name = task.name.clone();
        let mut parents: Vec<usize> = task
            .depends_on
            .iter()
            .map(|parent| self.index_of[parent])
            .collect();
        parents.sort_by_key(|&parent| self.rank[parent]);
        let mut previous: Option<TaskName> = None;
        for (number, batch) in parents.chunks(self.max_fan_in).enumerate() {
            let name = merge_name(&target_name, number, target)?;
            let mut depends_on: Vec<TaskName> = batch
                .iter()
                .map(|&parent| self.definition.tasks[parent].name.clone())
                .collect();
            if let Some(previous) = previous {
                for &member in batch {
                    self.hold_back(member, &previous);
                }
                depends_on.push(previous);
            }
            self.merges
                .push(merge_task(name.clone(), &target_name, number, depends_on));
            previous = Some(name);
        }
        self.last_merge[target] = previous;
        Ok(())
    }

    /// Lets a member of a batch wait for the batch before, unless that would change its meaning.
    fn hold_back(&mut self, member: usize, gate: &TaskName) {
        let task = &self.definition.tasks[member];
        let could_tell = task.dep_policy != DepPolicy::All || task.condition.is_some();
        let is_indifferent = task.depends_on.is_empty() || !could_tell;
        if is_indifferent && self.counts[member] <= self.max_fan_in {
            self.counts[member] += 1;
            self.gates[member].push(gate.clone());
        }
    }

    fn finish(mut self) -> Result<Definition, Problems> {
        let parts = self
            .definition
            .tasks
            .iter_mut()
            .zip(self.gates)
            .zip(self.last_merge);
        for ((task, gates), last_merge) in parts {
            if let Some(last_merge) = last_merge {
                task.depends_on = vec![last_merge];
            }
            task.depends_on.extend(gates);
        }
        self.definition.tasks.append(&mut self.merges);
        let counts = self
            .definition
            .tasks
            .iter()
            .map(|task| task.depends_on.len());
        check_limit(
            "dependencies",
            counts.sum(),
            DEPENDENCIES_MAX,
            self.max_fan_in,
        )?;
        Ok(self.definition)
    }
}

/// The place of each task when they are sorted by their distance from the roots, and as given
/// within one distance.
fn rank(tasks: &[TaskDefinition], index_of: &HashMap<TaskName, usize>) -> Vec<usize> {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); tasks.len()];
    let mut waiting: Vec<usize> = Vec::with_capacity(tasks.len());
    for (index, task) in tasks.iter().enumerate() {
        waiting.push(task.depends_on.len());
        for parent in &task.depends_on {
            children[index_of[parent]].push(index);
        }
    }
    let mut depth = vec![0_usize; tasks.len()];
    let mut ready: Vec<usize> = (0..tasks.len())
        .filter(|&task| waiting[task] == 0)
        .collect();
    while let Some(task) = ready.pop() {
        for &child in &children[task] {
            depth[child] = depth[child].max(depth[task] + 1);
            waiting[child] -= 1;
            if waiting[child] == 0 {
                ready.push(child);
            }
        }
    }
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|&task| depth[task]);
    let mut rank = vec![0; tasks.len()];
    for (place, task) in order.into_iter().enumerate() {
        rank[task] = place;
    }
    rank
}

/// Targets have different names and the number is the part behind the last `_`, so no two merges
/// share a name.
fn merge_name(target: &TaskName, number: usize, index: usize) -> Result<TaskName, Problem> {
    TaskName::parse(&format!("__merge_{target}_{number}")).map_err(|error| Problem {
        pointer: format!("/tasks/{index}/name"),
        task: Some(target.to_string()),
        ..Problem::of_document(
            ProblemCode::InvalidName,
            format!(
                "task {target:?}: the names of its merge tasks are too long: {}",
                error.reason()
            ),
        )
    })
}

fn merge_task(
    name: TaskName,
    target: &TaskName,
    number: usize,
    depends_on: Vec<TaskName>,
) -> TaskDefinition {
    let target = serde_json::Value::from(target.as_str());
    let kwargs = format!(r#"{{"__batch_merge":true,"__target":{target},"__batch":{number}}}"#);
    TaskDefinition {
        name,
        kwargs: RawValue::from_string(kwargs).expect("built from JSON parts"),
        depends_on,
        queue: None,
        dep_policy: DepPolicy::All,
        timeout_s: None,
        num_retries: 0,
        condition: None,
    }
}

#[cfg(test)]
mod tests;
