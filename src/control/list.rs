//! Listing workflows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::page_token;
use super::{Control, Error, Result, WorkflowSummary};
use crate::clock::Timestamp;
use crate::limits::PAGE_MAX;
use crate::store::RowFilter;
use crate::workflow::WorkflowState;

/// Requests to the store that one page may take before it is given out short.
const REQUESTS_PER_PAGE_MAX: usize = 8;

/// In which order workflows are listed.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema, clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub enum ListOrder {
    /// By the time of submit, the newest first.
    #[default]
    Newest,
    /// By id, ascending.
    Id,
}

/// Which workflows to list.
#[derive(Debug, Clone)]
pub struct ListRequest {
    /// Only workflows in one of these states; all if empty.
    pub states: Vec<WorkflowState>,
    /// Only workflows whose name starts so.
    pub name_prefix: Option<String>,
    /// Only workflows with all of these labels.
    pub labels: BTreeMap<String, String>,
    /// Only workflows submitted at this moment or later.
    pub created_from: Option<Timestamp>,
    /// Only workflows submitted before this moment.
    pub created_to: Option<Timestamp>,
    /// The order.
    pub order: ListOrder,
    /// At most this many, 1 to 1,000.
    pub limit: usize,
    /// Where the page before ended; none for the first.
    pub page_token: Option<String>,
}

impl Default for ListRequest {
    fn default() -> Self {
        Self {
            states: Vec::new(),
            name_prefix: None,
            labels: BTreeMap::new(),
            created_from: None,
            created_to: None,
            order: ListOrder::Newest,
            limit: 50,
            page_token: None,
        }
    }
}

/// A page of workflows.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct WorkflowPage {
    /// The workflows. A page may be short, even empty, and still have a successor.
    pub workflows: Vec<WorkflowSummary>,
    /// Hand this to the next call; absent after the last page.
    pub next_page_token: Option<String>,
}

impl ListRequest {
    fn fingerprint(&self) -> String {
        let mut states: Vec<_> = self.states.iter().map(|state| state.as_str()).collect();
        states.sort_unstable();
        page_token::fingerprint(&(
            states,
            &self.name_prefix,
            &self.labels,
            self.created_from,
            self.created_to,
            self.order,
        ))
    }

    fn filter(&self) -> RowFilter {
        RowFilter {
            states: self.states.clone(),
            name_prefix: self.name_prefix.clone(),
            labels: self.labels.clone(),
            created_from: self.created_from,
            created_to: self.created_to,
        }
    }
}

impl Control {
    /// A page of the matching workflows. It costs a bounded number of requests, whatever the table
    /// holds, and pages stay right while workflows are submitted and deleted: each that exists
    /// throughout is listed once.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an impossible limit; [`Error::PageToken`]; the store's own.
    pub async fn list(&self, request: &ListRequest) -> Result<WorkflowPage> {
        if !(1..=PAGE_MAX).contains(&request.limit) {
            return Err(Error::invalid(
                "limit",
                format!("{} is not from 1 to {PAGE_MAX}", request.limit),
            ));
        }
        let fingerprint = request.fingerprint();
        let after = match &request.page_token {
            None => None,
            Some(token) => Some(page_token::decode(&fingerprint, token)?),
        };
        let filter = request.filter();
        let (workflows, next) = match request.order {
            ListOrder::Newest => self.newest(&filter, after, request.limit).await?,
            ListOrder::Id => {
                let (rows, more) = self
                    .store
                    .rows_by_id(&filter, after.as_deref(), request.limit)
                    .await?;
                let last = rows.last().map(|row| row.workflow_id.clone());
                (rows, last.filter(|_| more))
            }
        };
        Ok(WorkflowPage {
            workflows,
            next_page_token: next.map(|key| page_token::encode(&fingerprint, &key)),
        })
    }

    async fn newest(
        &self,
        filter: &RowFilter,
        mut after: Option<String>,
        limit: usize,
    ) -> Result<(Vec<WorkflowSummary>, Option<String>)> {
        let mut rows = Vec::new();
        for _ in 0..REQUESTS_PER_PAGE_MAX {
            let wanted = limit - rows.len();
            let (found, next) = self
                .store
                .rows_newest(filter, after.as_deref(), wanted)
                .await?;
            rows.extend(found);
            after = next;
            if after.is_none() || rows.len() == limit {
                break;
            }
        }
        Ok((rows, after))
    }
}
