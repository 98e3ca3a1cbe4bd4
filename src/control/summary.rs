//! How many workflows are in each state.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Control, Result};
use crate::limits::PAGE_MAX;
use crate::store::RowFilter;
use crate::workflow::WorkflowState;

/// Pages of the index one summary reads at the most.
const PAGES_MAX: usize = 200;

/// Counts over the index.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Summary {
    /// Workflows by state; every state is there.
    #[schema(value_type = BTreeMap<String, u64>)]
    pub workflows: BTreeMap<WorkflowState, u64>,
    /// Running tasks of all workflows.
    pub running_tasks: u64,
    /// Pending and ready tasks of all workflows.
    pub pending_tasks: u64,
    /// Whether every workflow was counted. Workflows that have not ended always are; the count of
    /// others stops at 200,000.
    pub complete: bool,
}

impl Control {
    /// Counts workflows by state: the live ones first, so that they are counted however many have
    /// ended.
    ///
    /// # Errors
    /// The store's own.
    pub async fn summary(&self) -> Result<Summary> {
        let of = |terminal: bool| {
            let all = WorkflowState::ALL.iter().copied();
            all.filter(move |state| state.is_terminal() == terminal)
                .collect()
        };
        let mut summary = Summary {
            workflows: WorkflowState::ALL.iter().map(|&state| (state, 0)).collect(),
            complete: true,
            ..Summary::default()
        };
        self.count(of(false), usize::MAX, &mut summary).await?;
        self.count(of(true), PAGES_MAX, &mut summary).await?;
        Ok(summary)
    }

    async fn count(
        &self,
        states: Vec<WorkflowState>,
        pages_max: usize,
        summary: &mut Summary,
    ) -> Result<()> {
        let filter = RowFilter {
            states,
            ..RowFilter::default()
        };
        let mut after = None;
        for _ in 0..pages_max {
            let page = self.store.rows(&filter, after.as_ref(), PAGE_MAX).await?;
            for row in page.rows {
                *summary.workflows.entry(row.workflow_state).or_default() += 1;
                summary.running_tasks += u64::from(row.running_tasks);
                summary.pending_tasks += u64::from(row.pending_tasks);
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
        summary.complete = false;
        Ok(())
    }
}
