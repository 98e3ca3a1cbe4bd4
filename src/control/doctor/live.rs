//! Who leads, the queues, and the workflows that have not ended.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Check, CheckStatus, DoctorRequest, port};
use crate::control::{Control, Error, Result};
use crate::limits::{PEEK_MAX, SAMPLED_QUEUES_MAX};
use crate::storage;
use crate::store;
use crate::wire::Names;
use crate::wire::index_row::IndexRow;
use crate::workflow::{WorkflowId, WorkflowState};

/// A coordinator writes its status every ten seconds.
const STATUS_AGE_MAX: Duration = Duration::from_secs(60);

/// By how much clocks may differ before times of different machines mislead.
const CLOCK_AHEAD_MAX: Duration = Duration::from_secs(5);

/// A task may be ready for this long while its coordinator is at it.
const READY_AGE_MAX: Duration = Duration::from_secs(60);

/// States of live workflows that are read to look for ready tasks.
const STATES_READ_MAX: usize = 200;

impl Control {
    pub(super) async fn check_queues(&self, request: &DoctorRequest) -> Vec<Check> {
        let queue = self.store.names().completion_queue();
        let queues = &self.store.storage().queues;
        let looked = (
            queues.length(queue).await,
            queues.peek(queue, PEEK_MAX).await,
        );
        let (length, peeked) = match looked {
            (Ok(length), Ok(peeked)) => (length, peeked),
            (Err(error), _) | (_, Err(error)) => {
                return vec![Check::new("queues", CheckStatus::Fail, error.to_string())];
            }
        };
        let oldest = peeked
            .iter()
            .map(|message| message.age)
            .max()
            .unwrap_or_default();
        let evidence = format!(
            "{length} completions, of which the oldest visible one is {} s old",
            oldest.as_secs()
        );
        let status = if oldest >= request.completion_too_old {
            CheckStatus::Fail
        } else {
            CheckStatus::Ok
        };
        vec![
            Check::new("queues", CheckStatus::Ok, format!("{queue} answers")),
            Check::new("completions", status, evidence),
        ]
    }

    pub(super) async fn check_leader(&self) -> Result<Vec<Check>> {
        let container = self.store.names().state_container();
        let leases = &self.store.storage().leases;
        let held = match leases.holder(container, Names::LOCK_BLOB).await {
            Ok(holder) => holder.held,
            Err(storage::Error::NotFound { .. }) => false,
            Err(error) => return Err(port(error)),
        };
        let status = match self.coordinator_status().await {
            Ok(status) => status,
            Err(Error::NoCoordinator) => {
                let evidence = Error::NoCoordinator.to_string();
                return Ok(vec![Check::new("leader", CheckStatus::Fail, evidence)]);
            }
            Err(error) => return Err(error),
        };
        let now = self.clock.now();
        let age = now.since(status.written_at);
        let evidence = format!(
            "the lease is {}; the latest status, by {}, is {} s old",
            if held { "held" } else { "free" },
            status.holder,
            age.as_secs()
        );
        let leads = held && age <= STATUS_AGE_MAX;
        let leader = if leads {
            CheckStatus::Ok
        } else {
            CheckStatus::Fail
        };
        let ahead = status.written_at.since(now);
        let (clock, seen) = if ahead > CLOCK_AHEAD_MAX {
            (
                CheckStatus::Warn,
                format!("the latest status is {} s in the future", ahead.as_secs()),
            )
        } else {
            (
                CheckStatus::Ok,
                "the latest status is not in the future".to_owned(),
            )
        };
        let poison = status.counters["poison_messages"].as_u64().unwrap_or(0);
        let poisoned = if poison > 0 {
            CheckStatus::Warn
        } else {
            CheckStatus::Ok
        };
        let counted = format!("{poison} such messages since {}", status.holder.since);
        Ok(vec![
            Check::new("leader", leader, evidence),
            Check::new("clock", clock, seen),
            Check::new("poison", poisoned, counted),
        ])
    }

    pub(super) async fn check_live(
        &self,
        request: &DoctorRequest,
        queues_answer: bool,
    ) -> Result<Vec<Check>> {
        let (rows, more) = self.live_rows(request.sample).await?;
        let seen = format!(
            "{} workflows that have not ended{}",
            rows.len(),
            if more {
                ", of more that were not looked at"
            } else {
                ""
            }
        );
        let now = self.clock.now();
        let older = |row: &&IndexRow, than: Duration| now.since(row.updated_at) >= than;
        let ids = |rows: Vec<&IndexRow>| -> Vec<String> {
            rows.into_iter()
                .map(|row| row.workflow_id.clone())
                .collect()
        };
        let is_pending = |row: &&IndexRow| row.workflow_state == WorkflowState::Pending;
        let pending = rows.iter().filter(is_pending);
        let pending = pending
            .filter(|row| older(row, request.pending_too_long))
            .collect();
        let running = rows.iter().filter(|row| !is_pending(row));
        let running = running
            .filter(|row| older(row, request.running_too_long))
            .collect();
        let mut checks = vec![
            Check::about("pending", CheckStatus::Fail, &ids(pending), &seen),
            Check::about("running", CheckStatus::Warn, &ids(running), &seen),
            self.check_ready(&rows).await?,
        ];
        if queues_answer {
            checks.push(self.check_task_queues(&rows, request).await?);
        }
        Ok(checks)
    }

    async fn live_rows(&self, max: usize) -> Result<(Vec<IndexRow>, bool)> {
        let (mut rows, mut after) = (Vec::new(), None);
        loop {
            let page = self.store.rows_not_terminal(after.as_ref()).await?;
            rows.extend(page.rows);
            after = page.next;
            if after.is_none() || rows.len() > max {
                let more = rows.len() > max;
                rows.truncate(max);
                return Ok((rows, more));
            }
        }
    }

    /// Workflows with a task that may run now and was not pushed though there was time for it.
    async fn check_ready(&self, rows: &[IndexRow]) -> Result<Check> {
        let mut ids = Vec::new();
        let read = rows.iter().take(STATES_READ_MAX);
        for row in read {
            let Ok(id) = WorkflowId::parse(&row.workflow_id) else {
                continue;
            };
            let runtime = match self.store.load(&id).await {
                Ok(loaded) => loaded.runtime,
                // Told by the checks of the index.
                Err(store::Error::NotFound(_) | store::Error::BadState { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            let unchanged = self.clock.now().since(runtime.updated_at());
            if runtime.dispatchable().next().is_some() && unchanged >= READY_AGE_MAX {
                ids.push(row.workflow_id.clone());
            }
        }
        let seen = format!("{} states read", rows.len().min(STATES_READ_MAX));
        Ok(Check::about("ready", CheckStatus::Fail, &ids, &seen))
    }

    async fn check_task_queues(&self, rows: &[IndexRow], request: &DoctorRequest) -> Result<Check> {
        let used: BTreeSet<&String> = rows.iter().flat_map(|row| &row.queues_used).collect();
        let mut unserved = Vec::new();
        for queue in used.iter().take(SAMPLED_QUEUES_MAX) {
            let peeked = match self.store.storage().queues.peek(queue, PEEK_MAX).await {
                Ok(peeked) => peeked,
                Err(storage::Error::NotFound { .. }) => {
                    unserved.push(format!("{queue} does not exist"));
                    continue;
                }
                Err(error) => return Err(port(error)),
            };
            let untouched = peeked.iter().filter(|message| message.dequeue_count == 0);
            let oldest = untouched
                .map(|message| message.age)
                .max()
                .unwrap_or_default();
            if !peeked.is_empty() && oldest >= request.task_too_old {
                unserved.push(format!(
                    "{queue} was not received from for {} s",
                    oldest.as_secs()
                ));
            }
        }
        if unserved.is_empty() {
            let evidence = format!("{} queues of workflows that have not ended", used.len());
            return Ok(Check::new("task_queues", CheckStatus::Ok, evidence));
        }
        Ok(Check::new(
            "task_queues",
            CheckStatus::Warn,
            unserved.join("; "),
        ))
    }
}
