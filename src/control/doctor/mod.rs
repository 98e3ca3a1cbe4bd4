//! The doctor: looks at everything that can be wrong, says what it saw, and what to do.
//!
//! `live` looks at who leads, the queues and the workflows that have not ended; `index` compares states and
//! rows, and mends what crashes leave. Every look is bounded, and says how far it went.

mod index;
mod live;

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Control, Error, Result};
use crate::limits::{AGE_MAX, DOCTOR_SAMPLE_MAX};
use crate::store;

/// Workflows that one check names; it counts the others.
const NAMED_MAX: usize = 20;

/// Every code with what it means and what to do; `docs/doctor.md` lists the same.
pub const CODES: &[(&str, &str, &str)] = &[
    (
        "storage",
        "Blobs and tables can be reached",
        "Check the storage's name, the network and the credentials; `jobq config` shows what is in effect",
    ),
    (
        "configuration",
        "Everything that the prefix names is there",
        "`jobq serve` creates what is missing; `jobq config` shows which prefix and storage are in effect",
    ),
    (
        "queues",
        "The completion queue can be reached",
        "Check the queues' storage and the credentials; `jobq serve` creates missing queues",
    ),
    (
        "leader",
        "A coordinator holds the lease and writes its status",
        "Start one with `jobq serve`; if its machine died, the lease lapses within 60 s",
    ),
    (
        "clock",
        "This machine's clock agrees with the coordinator's",
        "Set the clocks of both machines",
    ),
    (
        "completions",
        "Completions do not wait",
        "See that a coordinator leads and that its log has no errors",
    ),
    (
        "poison",
        "No message arrived that is no completion",
        "The coordinator's log has the text; find the program that sends to the completion queue",
    ),
    (
        "pending",
        "No workflow waits for its start for long",
        "See that a coordinator leads; `jobq explain ID TASK` says more",
    ),
    (
        "running",
        "No workflow stands still for long",
        "`jobq tasks ID --state running` shows what it waits for; `jobq explain ID TASK` says more",
    ),
    (
        "ready",
        "No task that may run waits to be pushed",
        "See that a coordinator leads and can send to the tasks' queues",
    ),
    (
        "task_queues",
        "Messages of task queues are received",
        "Start a worker for the queue: `jobq worker QUEUE`",
    ),
    (
        "states",
        "Every state can be read",
        "A newer version may have written it: upgrade; otherwise restore the blob, or `jobq delete --force ID`",
    ),
    (
        "orphans",
        "Every state has its row in the index",
        "`jobq doctor --fix` writes the row from the state",
    ),
    (
        "drift",
        "Rows say what the states say",
        "`jobq doctor --fix` writes the rows from the states",
    ),
    (
        "rows",
        "Every row has its state",
        "`jobq doctor --fix` removes the row",
    ),
];

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    /// All is well.
    Ok,
    /// Somebody should look at it.
    Warn,
    /// Something does not work.
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Check {
    /// A short stable word.
    pub code: Cow<'static, str>,
    /// How it ended.
    pub status: CheckStatus,
    /// What was seen, and how far the look went.
    pub evidence: String,
    /// What to do about it, if something is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<Cow<'static, str>>,
    /// The workflows it is about, at most twenty of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workflow_ids: Vec<String>,
}

/// All that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DoctorReport {
    /// The worst of the checks.
    pub status: CheckStatus,
    /// The checks, in a fixed order. What cannot be looked at without the storage is left out while it is
    /// away.
    pub checks: Vec<Check>,
    /// How many rows were mended or removed.
    pub fixed: usize,
}

/// How to look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoctorRequest {
    /// From when on a workflow has waited for its start for too long.
    pub pending_too_long: Duration,
    /// From when on a workflow that has not changed stands still.
    pub running_too_long: Duration,
    /// From what age on the oldest completion has waited for too long.
    pub completion_too_old: Duration,
    /// From what age on a message of a task queue that nobody received has waited for too long.
    pub task_too_old: Duration,
    /// How many workflows to look at.
    pub sample: usize,
    /// Mends rows.
    pub fix: bool,
}

impl Default for DoctorRequest {
    fn default() -> Self {
        Self {
            pending_too_long: Duration::from_secs(300),
            running_too_long: Duration::from_secs(24 * 3_600),
            completion_too_old: Duration::from_secs(120),
            task_too_old: Duration::from_secs(3_600),
            sample: 1_000,
            fix: false,
        }
    }
}

impl Check {
    fn new(code: &'static str, status: CheckStatus, evidence: impl Into<String>) -> Self {
        let fix = CODES.iter().find(|(known, ..)| *known == code);
        let fix = fix.map(|(_, _, fix)| Cow::Borrowed(*fix));
        Self {
            code: Cow::Borrowed(code),
            status,
            evidence: evidence.into(),
            fix: fix.filter(|_| status != CheckStatus::Ok),
            workflow_ids: Vec::new(),
        }
    }

    /// A check that found these workflows: well if there are none.
    fn about(code: &'static str, wrong: CheckStatus, ids: &[String], seen: &str) -> Self {
        if ids.is_empty() {
            return Self::new(code, CheckStatus::Ok, format!("none of {seen}"));
        }
        let evidence = format!("{} of {seen}", ids.len());
        let mut check = Self::new(code, wrong, evidence);
        check.workflow_ids = ids.iter().take(NAMED_MAX).cloned().collect();
        check
    }
}

impl DoctorRequest {
    fn check(&self) -> Result<()> {
        let ages = [
            ("pending_too_long", self.pending_too_long),
            ("running_too_long", self.running_too_long),
            ("completion_too_old", self.completion_too_old),
            ("task_too_old", self.task_too_old),
        ];
        if let Some((field, _)) = ages.iter().find(|(_, age)| *age > AGE_MAX) {
            let reason = format!("more than {} s", AGE_MAX.as_secs());
            return Err(Error::invalid(field, reason));
        }
        if !(1..=DOCTOR_SAMPLE_MAX).contains(&self.sample) {
            let reason = format!("{} is not from 1 to {DOCTOR_SAMPLE_MAX}", self.sample);
            return Err(Error::invalid("sample", reason));
        }
        Ok(())
    }
}

impl Control {
    /// Looks at everything.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an impossible age or sample; the store's own, if the storage goes away in the middle; one that is away from the start is a
    /// finding.
    pub async fn doctor(&self, request: &DoctorRequest) -> Result<DoctorReport> {
        request.check()?;
        let (mut checks, mut fixed) = (Vec::new(), 0);
        let (storage, reachable) = self.check_storage().await;
        checks.push(storage);
        if reachable {
            checks.push(self.check_configuration().await?);
            let queues = self.check_queues(request).await;
            let answering = queues
                .iter()
                .all(|check| check.code != "queues" || check.status == CheckStatus::Ok);
            checks.extend(queues);
            checks.extend(self.check_leader().await?);
            checks.extend(self.check_live(request, answering).await?);
            let (index, mended) = self.check_index(request).await?;
            checks.extend(index);
            fixed = mended;
        }
        let place = |check: &Check| CODES.iter().position(|(code, ..)| *code == check.code);
        checks.sort_by_key(place);
        Ok(DoctorReport {
            status: checks
                .iter()
                .map(|check| check.status)
                .max()
                .unwrap_or(CheckStatus::Ok),
            checks,
            fixed,
        })
    }

    async fn check_storage(&self) -> (Check, bool) {
        let (names, storage) = (self.store.names(), self.store.storage());
        let container = names.state_container();
        let blobs = storage.blobs.list(container, "", None, 1).await;
        let nothing = crate::storage::Filter::Or(Vec::new());
        let tables = storage
            .tables
            .query(names.index_table(), &nothing, None, 1)
            .await;
        match blobs.and_then(|_| tables.map(drop)) {
            Ok(()) => {
                let evidence = format!("{container} and {} answer", names.index_table());
                (Check::new("storage", CheckStatus::Ok, evidence), true)
            }
            Err(error) => (
                Check::new("storage", CheckStatus::Fail, error.to_string()),
                false,
            ),
        }
    }
}

impl Control {
    /// Whether the containers and tables are there that the prefix names, besides those that the check of
    /// the storage looked at.
    async fn check_configuration(&self) -> Result<Check> {
        let (names, storage) = (self.store.names(), self.store.storage());
        let nothing = crate::storage::Filter::Or(Vec::new());
        let (outputs, recent) = (names.outputs_container(), names.recent_table());
        let looked = [
            (
                outputs,
                storage.blobs.list(outputs, "", None, 1).await.map(drop),
            ),
            (
                recent,
                storage
                    .tables
                    .query(recent, &nothing, None, 1)
                    .await
                    .map(drop),
            ),
        ];
        let mut missing = Vec::new();
        for (name, result) in looked {
            match result {
                Ok(()) => {}
                Err(crate::storage::Error::NotFound { .. }) => missing.push(name),
                Err(error) => return Err(port(error)),
            }
        }
        let prefix = names.prefix();
        if missing.is_empty() {
            let evidence = format!("{outputs} and {recent} are there, under the prefix {prefix}");
            return Ok(Check::new("configuration", CheckStatus::Ok, evidence));
        }
        let evidence = format!(
            "{} missing, under the prefix {prefix}",
            missing.join(" and ")
        );
        Ok(Check::new("configuration", CheckStatus::Fail, evidence))
    }
}

/// An error of a port as one of the use cases.
fn port(error: crate::storage::Error) -> Error {
    store::Error::from(error).into()
}

#[cfg(test)]
mod tests;
