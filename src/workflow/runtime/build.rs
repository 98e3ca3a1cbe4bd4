//! Making a runtime: from a definition at submit, or from stored tasks at load.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::value::RawValue;

use super::task::TaskCondition;
use super::{Counts, Header, Runtime, Task, TaskIndex};
use crate::clock::Timestamp;
use crate::workflow::definition::Definition;
use crate::workflow::{
    DepPolicy, QueueName, Seconds, TaskName, TaskState, WorkflowId, WorkflowState,
};

/// One task as it is stored. Counters are left out: they are recounted.
#[derive(Debug)]
pub struct TaskSeed {
    /// See [`Task::name`].
    pub name: TaskName,
    /// The names of the tasks it waits for.
    pub parents: Vec<TaskName>,
    /// See [`Task::queue`].
    pub queue: QueueName,
    /// See [`Task::num_retries`].
    pub num_retries: u32,
    /// See [`Task::dep_policy`].
    pub dep_policy: DepPolicy,
    /// See [`Task::timeout_s`].
    pub timeout_s: Option<Seconds>,
    /// See [`Task::condition`].
    pub condition: Option<String>,
    /// See [`Task::kwargs`].
    pub kwargs: Box<RawValue>,
    /// See [`Task::state`].
    pub state: TaskState,
    /// See [`Task::attempt_no`].
    pub attempt_no: u32,
    /// See [`Task::retry_no`].
    pub retry_no: u32,
    /// See [`Task::output_ref`].
    pub output_ref: Option<String>,
    /// See [`Task::error`].
    pub error: Option<String>,
    /// See [`Task::started_at`].
    pub started_at: Option<Timestamp>,
    /// See [`Task::completed_at`].
    pub completed_at: Option<Timestamp>,
    /// See [`Task::extra`].
    pub extra: Vec<(String, Box<RawValue>)>,
}

/// Stored tasks that do not form a workflow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The same name stands twice.
    #[error("two tasks are named {0:?}")]
    DuplicateTask(TaskName),
    /// A parent is not among the tasks.
    #[error("task {task:?} depends on {parent:?}, which does not exist")]
    UnknownParent {
        /// The task.
        task: TaskName,
        /// The missing parent.
        parent: TaskName,
    },
    /// Tasks wait for each other.
    #[error("the tasks' dependencies form a cycle through {0:?}")]
    Cycle(TaskName),
}

/// The changing part of a stored workflow's header.
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    pub(crate) cancel_requested: bool,
    pub(crate) error: Option<String>,
    pub(crate) updated_at: Timestamp,
}

impl Runtime {
    /// The runtime of a workflow that was just submitted: roots ready, everything else pending.
    /// The tasks' queues and timeouts are settled here, so later readers need no defaults.
    #[must_use]
    pub fn new(workflow_id: WorkflowId, definition: &Definition, now: Timestamp) -> Self {
        let header = Header {
            workflow_id,
            name: definition.name.clone(),
            default_queue: definition.default_queue.clone(),
            result_policy: definition.result_policy,
            max_parallelism: definition.max_parallelism,
            created_at: now,
            labels: definition.labels.clone(),
            definition_sha256: None,
            traceparent: None,
            extra: Vec::new(),
        };
        let seeds = definition.tasks.iter().map(|task| TaskSeed {
            name: task.name.clone(),
            parents: task.depends_on.clone(),
            queue: task
                .queue
                .as_ref()
                .unwrap_or(&definition.default_queue)
                .clone(),
            num_retries: task.num_retries,
            dep_policy: task.dep_policy,
            timeout_s: task.timeout_s.or(definition.default_task_timeout_s),
            condition: task.condition.clone(),
            kwargs: task.kwargs.clone(),
            state: TaskState::Pending,
            attempt_no: 0,
            retry_no: 0,
            output_ref: None,
            error: None,
            started_at: None,
            completed_at: None,
            extra: Vec::new(),
        });
        let progress = Progress {
            cancel_requested: false,
            error: None,
            updated_at: now,
        };
        let mut runtime = Self::restore(header, seeds, progress)
            .expect("a definition's tasks are unique, known and without a cycle");
        runtime.settle(&super::LoadedOutputs::default(), now);
        runtime
    }

    /// The runtime of a stored workflow. Counters, the ready queue and the workflow's state are
    /// derived anew; the next [`settle`](Self::settle) decides pending tasks whose policy the
    /// stored parents already satisfy or break (their writer may have stopped before that).
    ///
    /// # Errors
    /// When the tasks do not form a workflow.
    pub(crate) fn restore(
        header: Header,
        seeds: impl IntoIterator<Item = TaskSeed>,
        progress: Progress,
    ) -> Result<Self, BuildError> {
        let (tasks, by_name) = link(seeds)?;
        let mut runtime = Self {
            header,
            tasks,
            by_name,
            counts: Counts::default(),
            ready: BTreeSet::new(),
            next_ready_seq: 0,
            deadlines: BTreeSet::new(),
            undecided: BTreeSet::new(),
            state: WorkflowState::Pending,
            cancel_requested: progress.cancel_requested,
            error: progress.error,
            updated_at: progress.updated_at,
            revision: 0,
        };
        runtime.recount();
        runtime.state = runtime.derive_state();
        Ok(runtime)
    }

    /// Derives every counter and queue from the tasks' states. Ready tasks keep their order.
    pub(super) fn recount(&mut self) {
        self.counts = Counts::default();
        self.undecided.clear();
        self.deadlines.clear();
        let mut ready = Vec::new();
        for position in 0..self.tasks.len() {
            let index = index_of(position);
            let (satisfied, broken) = self.count_parents(index);
            let task = &mut self.tasks[position];
            (task.satisfied, task.broken) = (satisfied, broken);
            self.counts.enter(task.state);
            self.counts.dispatched += u32::from(task.attempt_no > 0);
            self.counts.broken_sinks += u32::from(task.is_sink() && task.state.breaks());
            match task.state {
                TaskState::Pending => drop(self.undecided.insert(index)),
                TaskState::Ready => ready.push((task.ready_seq, index)),
                TaskState::Running => self.deadlines.extend(task.deadline(index)),
                _ => {}
            }
        }
        ready.sort_unstable();
        self.ready.clear();
        self.next_ready_seq = 0;
        for (_, index) in ready {
            self.task_mut(index).ready_seq = self.next_ready_seq;
            self.ready.insert((self.next_ready_seq, index));
            self.next_ready_seq += 1;
        }
    }

    fn count_parents(&self, index: TaskIndex) -> (u32, u32) {
        let states = self
            .task(index)
            .parents
            .iter()
            .map(|&parent| self.task(parent).state);
        states.fold((0, 0), |(satisfied, broken), state| {
            (
                satisfied + u32::from(state.satisfies()),
                broken + u32::from(state.breaks()),
            )
        })
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "TASKS_MAX is far below 2^32"
)]
pub(super) const fn index_of(position: usize) -> TaskIndex {
    TaskIndex(position as u32)
}

type Linked = (Vec<Task>, HashMap<TaskName, TaskIndex>);

fn link(seeds: impl IntoIterator<Item = TaskSeed>) -> Result<Linked, BuildError> {
    let mut tasks = Vec::new();
    let mut parents_by_name = Vec::new();
    let mut by_name = HashMap::new();
    for (position, seed) in seeds.into_iter().enumerate() {
        if by_name
            .insert(seed.name.clone(), index_of(position))
            .is_some()
        {
            return Err(BuildError::DuplicateTask(seed.name));
        }
        let (task, parents) = unlinked(seed);
        tasks.push(task);
        parents_by_name.push(parents);
    }
    for (position, names) in parents_by_name.into_iter().enumerate() {
        let mut parents = Vec::with_capacity(names.len());
        for name in names {
            let Some(&parent) = by_name.get(&name) else {
                let task = tasks[position].name.clone();
                return Err(BuildError::UnknownParent { task, parent: name });
            };
            parents.push(parent);
            tasks[parent.as_usize()].children.push(index_of(position));
        }
        tasks[position].parents = parents;
    }
    refuse_cycles(&tasks)?;
    Ok((tasks, by_name))
}

fn unlinked(seed: TaskSeed) -> (Task, Vec<TaskName>) {
    let task = Task {
        is_batch_merge: is_batch_merge(&seed.kwargs),
        name: seed.name,
        parents: Vec::new(),
        children: Vec::new(),
        queue: seed.queue,
        num_retries: seed.num_retries,
        dep_policy: seed.dep_policy,
        timeout_s: seed.timeout_s,
        condition: seed
            .condition
            .map(|text| Arc::new(TaskCondition::new(text))),
        kwargs: Arc::from(seed.kwargs),
        extra: seed.extra,
        state: seed.state,
        satisfied: 0,
        broken: 0,
        attempt_no: seed.attempt_no,
        retry_no: seed.retry_no,
        ready_seq: 0,
        output_ref: seed.output_ref.map(Arc::from),
        error: seed.error.map(Box::from),
        started_at: seed.started_at,
        completed_at: seed.completed_at,
    };
    (task, seed.parents)
}

/// Whether kwargs mark a joint of a rewritten fan-in. Their keys are reserved at submit, so a
/// text that does not hold the key needs no parsing.
fn is_batch_merge(kwargs: &RawValue) -> bool {
    #[derive(serde::Deserialize)]
    struct Marker {
        #[serde(default, rename = "__batch_merge")]
        batch_merge: bool,
    }
    kwargs.get().contains("__batch_merge")
        && serde_json::from_str::<Marker>(kwargs.get()).is_ok_and(|marker| marker.batch_merge)
}

/// Kahn's algorithm; whatever is never free of unprocessed parents lies on or behind a cycle.
fn refuse_cycles(tasks: &[Task]) -> Result<(), BuildError> {
    let mut waiting: Vec<usize> = tasks.iter().map(|task| task.parents.len()).collect();
    let mut free: Vec<usize> = (0..tasks.len()).filter(|&i| waiting[i] == 0).collect();
    while let Some(position) = free.pop() {
        for child in &tasks[position].children {
            let left = &mut waiting[child.as_usize()];
            *left -= 1;
            if *left == 0 {
                free.push(child.as_usize());
            }
        }
    }
    match waiting.iter().position(|&left| left > 0) {
        Some(position) => Err(BuildError::Cycle(tasks[position].name.clone())),
        None => Ok(()),
    }
}
