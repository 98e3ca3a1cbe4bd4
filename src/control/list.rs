//! Listing workflows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Control, Result, WorkflowSummary};
use crate::clock::Timestamp;
use crate::limits::PAGE_MAX;
use crate::store::RowFilter;
use crate::workflow::WorkflowState;

/// Which workflows to list.
#[derive(Debug, Clone)]
pub struct ListRequest {
    /// Only workflows in one of these states; all if empty.
    pub states: Vec<WorkflowState>,
    /// Only workflows whose name starts so.
    pub name_prefix: Option<String>,
    /// At most this many, 1 to 1,000.
    pub limit: usize,
}

impl Default for ListRequest {
    fn default() -> Self {
        Self {
            states: Vec::new(),
            name_prefix: None,
            limit: 50,
        }
    }
}

/// A row in the heap of the newest, ordered by time, then id.
#[derive(PartialEq, Eq)]
struct ByAge(WorkflowSummary);

impl ByAge {
    fn key(&self) -> (Timestamp, &str) {
        (self.0.created_at, &self.0.workflow_id)
    }
}

impl PartialOrd for ByAge {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByAge {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl Control {
    /// The newest matching workflows, newest first. Memory stays in proportion to `limit`,
    /// whatever the table holds.
    ///
    /// # Errors
    /// The store's own.
    pub async fn list(&self, request: &ListRequest) -> Result<Vec<WorkflowSummary>> {
        let limit = request.limit.clamp(1, PAGE_MAX);
        let filter = RowFilter {
            states: request.states.clone(),
            name_prefix: request.name_prefix.clone(),
        };
        let mut newest = BinaryHeap::with_capacity(limit + 1);
        let mut after = None;
        loop {
            let page = self.store.rows(&filter, after.as_ref(), PAGE_MAX).await?;
            for row in page.rows {
                newest.push(Reverse(ByAge(row)));
                if newest.len() > limit {
                    newest.pop();
                }
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        // Sorted ascending by the reversed key: newest first.
        Ok(newest
            .into_sorted_vec()
            .into_iter()
            .map(|Reverse(ByAge(row))| row)
            .collect())
    }
}
