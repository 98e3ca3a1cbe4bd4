//! Watching for many: one poll of a workflow serves everybody who watches it, and a watcher that
//! comes back goes on where it was.
//!
//! A channel holds the latest changes of one workflow, numbered. Watchers read it at their own pace:
//! a slow one holds nobody up and costs no memory, because what it missed is told as a gap and
//! followed by a fresh snapshot.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use utoipa::ToSchema;

use super::{Change, Control, Error, Result, TaskView, WorkflowView};
use crate::limits::{WATCH_CHANGES_MAX, WATCHED_WORKFLOWS_MAX};
use crate::storage::Retry;
use crate::store;
use crate::workflow::WorkflowId;

/// How long a channel that nobody reads is kept for watchers that come back.
const LINGER: Duration = Duration::from_secs(60);

/// What a watcher is told.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum WatchEvent {
    /// The workflow and all its tasks at this moment.
    Snapshot {
        /// Hand it back to go on after this event.
        resume_token: String,
        /// The workflow.
        workflow: WorkflowView,
        /// Its tasks, in the order of the definition.
        tasks: Vec<TaskView>,
    },
    /// What changed since the event before.
    Changes {
        /// Hand it back to go on after this event.
        resume_token: String,
        /// The workflow.
        workflow: WorkflowView,
        /// The tasks that changed, in the order of the definition.
        changes: Vec<Change>,
    },
    /// Changes were missed; a snapshot follows.
    Gap {
        /// Why.
        reason: String,
    },
    /// Nothing more will be told.
    End {
        /// Why: the workflow is terminal, was deleted, or cannot be read.
        reason: String,
    },
}

impl WatchEvent {
    /// The token to go on with after this event, if it has one.
    #[must_use]
    pub fn resume_token(&self) -> Option<&str> {
        match self {
            Self::Snapshot { resume_token, .. } | Self::Changes { resume_token, .. } => {
                Some(resume_token)
            }
            Self::Gap { .. } | Self::End { .. } => None,
        }
    }

    /// The name of its kind.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Snapshot { .. } => "snapshot",
            Self::Changes { .. } => "changes",
            Self::Gap { .. } => "gap",
            Self::End { .. } => "end",
        }
    }
}

/// The channels of a process. Cheap to clone.
#[derive(Debug, Clone)]
pub struct WatchHub {
    control: Control,
    channels: Arc<Mutex<HashMap<WorkflowId, Arc<Channel>>>>,
}

/// One numbered step.
#[derive(Debug)]
struct Step {
    number: u64,
    workflow: WorkflowView,
    changes: Vec<Change>,
}

#[derive(Debug)]
struct Channel {
    /// Tells tokens of this channel from those of an earlier one.
    id: String,
    steps: Mutex<Steps>,
    /// The number of the latest step, or that there will be no more.
    latest: watch::Sender<Latest>,
}

#[derive(Debug, Default)]
struct Steps {
    /// The latest steps, with at most [`WATCH_CHANGES_MAX`] changes in all.
    recent: VecDeque<Arc<Step>>,
    changes: usize,
    /// All as of the latest step.
    snapshot: Option<(u64, WorkflowView, Arc<Vec<TaskView>>)>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Latest {
    number: u64,
    ended: Option<String>,
}

/// Reads one workflow's channel.
#[derive(Debug)]
pub struct Watcher {
    channel: Arc<Channel>,
    latest: watch::Receiver<Latest>,
    /// The step told last; none before the first snapshot.
    position: Option<u64>,
    gap: Option<&'static str>,
    ended: bool,
}

impl WatchHub {
    /// The hub of the use cases of a process.
    #[must_use]
    pub fn new(control: Control) -> Self {
        Self {
            control,
            channels: Arc::default(),
        }
    }

    fn channels(&self) -> MutexGuard<'_, HashMap<WorkflowId, Arc<Channel>>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts to watch a workflow, from its present state or after the event with this token.
    ///
    /// # Errors
    /// The store's own, among them that it does not exist; [`Error::InvalidArgument`] while as many
    /// workflows as possible are watched.
    pub async fn watch(&self, id: &WorkflowId, resume_token: Option<&str>) -> Result<Watcher> {
        // Whoever waits for a workflow that does not exist should learn it now.
        let present = self.control.get(id).await?.value;
        let channel = self.channel(id, &present)?;
        let (position, gap) = match resume_token {
            None => (None, None),
            Some(token) => match channel.position(token) {
                Some(position) => (Some(position), None),
                None => (None, Some("the token is of an earlier server, or too old")),
            },
        };
        Ok(Watcher {
            latest: channel.latest.subscribe(),
            channel,
            position,
            gap,
            ended: false,
        })
    }

    /// The channel of a workflow that is in this state at present. One that has told everything stays
    /// for those who come back for the rest, until the workflow gets another life.
    fn channel(&self, id: &WorkflowId, present: &WorkflowView) -> Result<Arc<Channel>> {
        let mut channels = self.channels();
        if let Some(channel) = channels.get(id)
            && (channel.latest.borrow().ended.is_none() || channel.told_all_of(present))
        {
            return Ok(channel.clone());
        }
        if channels.len() >= WATCHED_WORKFLOWS_MAX {
            let reason = format!("{WATCHED_WORKFLOWS_MAX} workflows are watched; try again later");
            return Err(Error::invalid("watch", reason));
        }
        let channel = Arc::new(Channel {
            id: self.control.clock.new_id(),
            steps: Mutex::default(),
            latest: watch::channel(Latest::default()).0,
        });
        channels.insert(id.clone(), channel.clone());
        let (hub, id, weak) = (self.clone(), id.clone(), Arc::downgrade(&channel));
        tokio::spawn(async move { hub.feed(&id, &weak).await });
        Ok(channel)
    }

    /// Polls a workflow into its channel until it ends, or nobody has listened for a while.
    async fn feed(self, id: &WorkflowId, channel: &Weak<Channel>) {
        let mut watch = self.control.watch(id);
        let reason = loop {
            let Some(channel) = channel.upgrade() else {
                return;
            };
            let listeners = async {
                // Some time after the last listener has gone.
                loop {
                    channel.latest.closed().await;
                    tokio::time::sleep(LINGER).await;
                    if channel.latest.receiver_count() == 0 {
                        return;
                    }
                }
            };
            tokio::select! {
                snapshot = watch.next() => match snapshot {
                    Ok(snapshot) => {
                        let state = snapshot.workflow.workflow_state;
                        channel.push(snapshot.workflow.clone(), snapshot.changes.clone(), snapshot.tasks());
                        if state.is_terminal() {
                            break format!("the workflow is {state}");
                        }
                    }
                    Err(Error::Store(store::Error::NotFound(_))) => {
                        break "the workflow was deleted".to_owned();
                    }
                    Err(error) if error.retry() == Retry::Never => break error.to_string(),
                    Err(error) => {
                        tracing::warn!(workflow_id = %id, %error, "cannot look at a watched workflow");
                    }
                },
                () = listeners => break "nobody watches".to_owned(),
            }
        };
        if let Some(channel) = channel.upgrade() {
            channel
                .latest
                .send_modify(|latest| latest.ended = Some(reason));
            tokio::time::sleep(LINGER).await;
            let mut channels = self.channels();
            if channels
                .get(id)
                .is_some_and(|present| Arc::ptr_eq(present, &channel))
            {
                channels.remove(id);
            }
        }
    }
}

impl Channel {
    fn steps(&self) -> MutexGuard<'_, Steps> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, workflow: WorkflowView, changes: Vec<Change>, tasks: Vec<TaskView>) {
        let number = self.latest.borrow().number + 1;
        let mut steps = self.steps();
        steps.changes += changes.len();
        steps.snapshot = Some((number, workflow.clone(), Arc::new(tasks)));
        steps.recent.push_back(Arc::new(Step {
            number,
            workflow,
            changes,
        }));
        while steps.changes > WATCH_CHANGES_MAX
            && let Some(oldest) = steps.recent.pop_front()
        {
            steps.changes -= oldest.changes.len();
        }
        drop(steps);
        self.latest.send_modify(|latest| latest.number = number);
    }

    fn token(&self, number: u64) -> String {
        format!("{}-{number}", self.id)
    }

    /// Whether the latest step is the end of a workflow that is in this state at present.
    fn told_all_of(&self, present: &WorkflowView) -> bool {
        let steps = self.steps();
        let told = steps.snapshot.as_ref().map(|(_, workflow, _)| workflow);
        told.is_some_and(|told| {
            told.workflow_state.is_terminal()
                && told.workflow_state == present.workflow_state
                && told.updated_at == present.updated_at
                && told.created_at == present.created_at
        })
    }

    /// The step that a token names, if all after it are still here.
    fn position(&self, token: &str) -> Option<u64> {
        let (id, number) = token.rsplit_once('-')?;
        let number = number.parse().ok().filter(|_| id == self.id)?;
        let latest = self.latest.borrow().number;
        (number <= latest && (number == latest || self.has(number + 1))).then_some(number)
    }

    fn has(&self, number: u64) -> bool {
        let steps = self.steps();
        steps
            .recent
            .front()
            .is_some_and(|first| first.number <= number)
    }

    fn step(&self, number: u64) -> Option<Arc<Step>> {
        let steps = self.steps();
        let first = steps.recent.front()?.number;
        let position = usize::try_from(number.checked_sub(first)?).ok()?;
        steps.recent.get(position).cloned()
    }
}

impl Watcher {
    /// Waits for the next event; `None` after the end.
    pub async fn next(&mut self) -> Option<WatchEvent> {
        loop {
            if self.ended {
                return None;
            }
            if let Some(reason) = self.gap.take() {
                let reason = reason.to_owned();
                return Some(WatchEvent::Gap { reason });
            }
            let latest = self.latest.borrow_and_update().clone();
            if let Some(event) = self.pending(latest.number) {
                return Some(event);
            }
            if self.gap.is_some() {
                continue;
            }
            if let Some(reason) = latest.ended {
                self.ended = true;
                return Some(WatchEvent::End { reason });
            }
            if self.latest.changed().await.is_err() {
                self.ended = true;
                let reason = "the server stops".to_owned();
                return Some(WatchEvent::End { reason });
            }
        }
    }

    /// The next event that is there by now.
    fn pending(&mut self, latest: u64) -> Option<WatchEvent> {
        match self.position {
            None => {
                let steps = self.channel.steps();
                let (number, workflow, tasks) = steps.snapshot.as_ref()?;
                self.position = Some(*number);
                Some(WatchEvent::Snapshot {
                    resume_token: self.channel.token(*number),
                    workflow: workflow.clone(),
                    tasks: tasks.to_vec(),
                })
            }
            Some(position) if position < latest => {
                let Some(step) = self.channel.step(position + 1) else {
                    self.gap = Some("this watcher was too slow");
                    self.position = None;
                    return None;
                };
                self.position = Some(step.number);
                Some(WatchEvent::Changes {
                    resume_token: self.channel.token(step.number),
                    workflow: step.workflow.clone(),
                    changes: step.changes.clone(),
                })
            }
            Some(_) => None,
        }
    }
}
