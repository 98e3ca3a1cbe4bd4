//! Deleting workflows, and purging old ones.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Control, Error, Result};
use crate::limits::{AGE_MAX, PAGE_MAX, PURGE_MAX};
use crate::store::{self, Removed, RowFilter};
use crate::workflow::{WorkflowId, WorkflowState};

/// Which workflows to purge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurgeRequest {
    /// Only workflows in one of these terminal states; all terminal ones if empty.
    pub states: Vec<WorkflowState>,
    /// Only workflows that have not changed for at least this long.
    pub older_than: Duration,
    /// At most this many, 1 to 1,000.
    pub limit: usize,
    /// Only tell which would go.
    pub dry_run: bool,
}

/// What was purged, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PurgeResult {
    /// The ids.
    #[schema(value_type = Vec<String>)]
    pub workflow_ids: Vec<WorkflowId>,
    /// Whether more match; purge again for them.
    pub more: bool,
    /// Whether it was only asked.
    pub dry_run: bool,
}

impl Control {
    /// Deletes a workflow with its outputs and logs. A workflow that has not ended is deleted only
    /// with `force`: its commands are stopped as soon as their workers notice, and their completions
    /// are dropped. Safe to repeat after a crash.
    ///
    /// # Errors
    /// [`Error::NotTerminal`]; the store's own, among them that it does not exist.
    pub async fn delete(&self, id: &WorkflowId, force: bool) -> Result<()> {
        match self.store.load(id).await {
            Ok(loaded) => {
                let state = loaded.runtime.state();
                if !state.is_terminal() && !force {
                    return Err(Error::NotTerminal(id.clone(), state));
                }
            }
            // What a crash left of a delete, or a state that nobody can use.
            Err(store::Error::NotFound(_)) => {}
            Err(store::Error::BadState { .. }) if force => {}
            Err(error) => return Err(error.into()),
        }
        match self.store.remove(id).await? {
            Removed::Gone => Ok(()),
            Removed::Nothing => Err(store::Error::NotFound(id.clone()).into()),
        }
    }

    /// Deletes old workflows that have ended, at most `limit` of them.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for states that are not terminal or an impossible limit; the
    /// store's own.
    pub async fn purge(&self, request: &PurgeRequest) -> Result<PurgeResult> {
        if !(1..=PURGE_MAX).contains(&request.limit) {
            let reason = format!("{} is not from 1 to {PURGE_MAX}", request.limit);
            return Err(Error::invalid("limit", reason));
        }
        if request.older_than > AGE_MAX {
            let reason = format!("more than {} s", AGE_MAX.as_secs());
            return Err(Error::invalid("older_than", reason));
        }
        if let Some(state) = request.states.iter().find(|state| !state.is_terminal()) {
            let reason = format!("{state} workflows have not ended");
            return Err(Error::invalid("states", reason));
        }
        let (ids, more) = self.purgeable(request).await?;
        if !request.dry_run {
            for id in &ids {
                match self.delete(id, false).await {
                    // Retried or deleted meanwhile.
                    Err(Error::NotTerminal(..) | Error::Store(store::Error::NotFound(_)))
                    | Ok(()) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(PurgeResult {
            workflow_ids: ids,
            more,
            dry_run: request.dry_run,
        })
    }

    /// The ids of rows that match, and whether there are more than asked for.
    async fn purgeable(&self, request: &PurgeRequest) -> Result<(Vec<WorkflowId>, bool)> {
        let changed_before = self.clock.now().minus(request.older_than);
        let mut states = request.states.clone();
        if states.is_empty() {
            let terminal = WorkflowState::ALL
                .iter()
                .filter(|state| state.is_terminal());
            states.extend(terminal);
        }
        let filter = RowFilter {
            states,
            ..RowFilter::default()
        };
        let (mut ids, mut after) = (Vec::new(), None);
        loop {
            let page = self.store.rows(&filter, after.as_ref(), PAGE_MAX).await?;
            let old = page.rows.into_iter();
            let old = old.filter(|row| row.updated_at <= changed_before);
            ids.extend(old.filter_map(|row| WorkflowId::parse(&row.workflow_id).ok()));
            after = page.next;
            if ids.len() > request.limit {
                ids.truncate(request.limit);
                return Ok((ids, true));
            }
            if after.is_none() {
                return Ok((ids, false));
            }
        }
    }
}
