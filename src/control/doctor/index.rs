//! Whether states and rows agree, and mending rows that do not.

use std::collections::HashSet;
use std::time::Duration;

use super::{Check, CheckStatus, DoctorRequest};
use crate::control::{Control, Result};
use crate::limits::PAGE_MAX;
use crate::store::{self, RowFilter};
use crate::workflow::WorkflowId;

/// A state younger than this may be a submit under way, and a row may lag behind one.
const SETTLED_AFTER: Duration = Duration::from_secs(30);

#[derive(Default)]
struct Found {
    looked_at: usize,
    unreadable: Vec<String>,
    orphans: Vec<WorkflowId>,
    drifted: Vec<WorkflowId>,
    stateless: Vec<WorkflowId>,
}

impl Control {
    /// Compares a sample of states with their rows, and of rows with their states. Also the number of
    /// rows that were mended.
    pub(super) async fn check_index(&self, request: &DoctorRequest) -> Result<(Vec<Check>, usize)> {
        let mut found = Found::default();
        let stored = self.look_at_states(request.sample, &mut found).await?;
        let rows = self
            .look_at_rows(request.sample, &stored, &mut found)
            .await?;
        let mut fixed = 0;
        if request.fix {
            for id in found.orphans.iter().chain(&found.drifted) {
                self.store.mend_rows(id).await?;
                fixed += 1;
            }
            for id in &found.stateless {
                self.store.remove(id).await?;
                fixed += 1;
            }
        }
        let names = |ids: &[WorkflowId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
        let states = format!("{} states looked at", found.looked_at);
        let looked = format!("{rows} rows looked at");
        let checks = vec![
            Check::about("states", CheckStatus::Fail, &found.unreadable, &states),
            Check::about(
                "orphans",
                CheckStatus::Warn,
                &names(&found.orphans),
                &states,
            ),
            Check::about("drift", CheckStatus::Warn, &names(&found.drifted), &states),
            Check::about("rows", CheckStatus::Warn, &names(&found.stateless), &looked),
        ];
        Ok((checks, fixed))
    }

    /// The ids that have a state.
    async fn look_at_states(&self, max: usize, found: &mut Found) -> Result<HashSet<WorkflowId>> {
        let (mut stored, mut page) = (HashSet::new(), None);
        loop {
            let (ids, next) = self.store.stored_ids(page.as_deref()).await?;
            for id in ids {
                if found.looked_at < max {
                    found.looked_at += 1;
                    self.look_at_state(&id, found).await?;
                }
                stored.insert(id);
            }
            page = next;
            if page.is_none() || found.looked_at >= max {
                return Ok(stored);
            }
        }
    }

    async fn look_at_state(&self, id: &WorkflowId, found: &mut Found) -> Result<()> {
        let runtime = match self.store.load(id).await {
            Ok(loaded) => loaded.runtime,
            Err(store::Error::BadState { .. }) => {
                found.unreadable.push(id.to_string());
                return Ok(());
            }
            // Deleted meanwhile.
            Err(store::Error::NotFound(_)) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if self.clock.now().since(runtime.updated_at()) < SETTLED_AFTER {
            return Ok(());
        }
        match self.store.row(id).await? {
            None => found.orphans.push(id.clone()),
            Some(row) if row.workflow_state != runtime.state() => found.drifted.push(id.clone()),
            Some(_) => {}
        }
        Ok(())
    }

    /// How many rows were looked at.
    async fn look_at_rows(
        &self,
        max: usize,
        stored: &HashSet<WorkflowId>,
        found: &mut Found,
    ) -> Result<usize> {
        let everything = RowFilter::default();
        let (mut looked, mut after) = (0, None);
        loop {
            let page = self
                .store
                .rows(&everything, after.as_ref(), PAGE_MAX)
                .await?;
            for row in page.rows.into_iter().take(max - looked) {
                looked += 1;
                let Ok(id) = WorkflowId::parse(&row.workflow_id) else {
                    continue;
                };
                let old = self.clock.now().since(row.created_at) >= SETTLED_AFTER;
                if !stored.contains(&id) && old && !self.has_state(&id).await? {
                    found.stateless.push(id);
                }
            }
            after = page.next;
            if after.is_none() || looked >= max {
                return Ok(looked);
            }
        }
    }

    async fn has_state(&self, id: &WorkflowId) -> Result<bool> {
        match self.store.load(id).await {
            Ok(_) | Err(store::Error::BadState { .. }) => Ok(true),
            Err(store::Error::NotFound(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
