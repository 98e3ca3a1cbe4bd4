//! The index rows of workflows.

use std::collections::BTreeMap;

use super::{Error, Result, WorkflowStore};
use crate::clock::Timestamp;
use crate::storage::{self, Compare, Entity, EntityKey, Filter, Operator, Properties, Value};
use crate::wire::Names;
use crate::wire::index_row::{self, CANCEL_REQUESTED, IndexRow, WORKFLOW_STATE};
use crate::workflow::runtime::Runtime;
use crate::workflow::{WorkflowId, WorkflowState};

/// Which rows a listing shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowFilter {
    /// Only workflows in one of these states; all if empty.
    pub states: Vec<WorkflowState>,
    /// Only workflows whose name starts so.
    pub name_prefix: Option<String>,
    /// Only workflows with these labels.
    pub labels: BTreeMap<String, String>,
    /// Only workflows submitted at this moment or later.
    pub created_from: Option<Timestamp>,
    /// Only workflows submitted before this moment.
    pub created_to: Option<Timestamp>,
}

/// A page of rows.
#[derive(Debug, Clone, Default)]
pub struct RowPage {
    /// Rows in the order of the table: by partition, then id.
    pub rows: Vec<IndexRow>,
    /// Hand this to the next call; `None` after the last page.
    pub next: Option<EntityKey>,
}

impl WorkflowStore {
    /// Writes the counts and state of a workflow into its row, never its cancel request. A row
    /// that was deleted stays deleted.
    ///
    /// # Errors
    /// The storage's own.
    pub async fn index_progress(&self, runtime: &Runtime) -> Result<()> {
        let key = key_of(&runtime.header().workflow_id);
        let row = index_row::progress(runtime);
        let table = self.names.index_table();
        match self.storage.tables.merge(table, &key, row, None).await {
            Ok(_) => self.recent_progress(runtime).await,
            Err(storage::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Asks for a workflow to be cancelled. Whoever leads sees it at the next poll; it is never
    /// lost to a concurrent write of progress, because the two touch different columns.
    ///
    /// # Errors
    /// [`Error::NotFound`]; the storage's own.
    pub async fn request_cancel(&self, id: &WorkflowId) -> Result<()> {
        let row = Properties::from([(CANCEL_REQUESTED.to_owned(), Value::Bool(true))]);
        match self
            .storage
            .tables
            .merge(self.names.index_table(), &key_of(id), row, None)
            .await
        {
            Ok(_) => Ok(()),
            Err(storage::Error::NotFound { .. }) => Err(Error::NotFound(id.clone())),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes a request to cancel back, before a retry: one that is made afterwards counts.
    ///
    /// # Errors
    /// The storage's own.
    pub async fn clear_cancel(&self, id: &WorkflowId) -> Result<()> {
        let row = Properties::from([(CANCEL_REQUESTED.to_owned(), Value::Bool(false))]);
        let table = self.names.index_table();
        match self
            .storage
            .tables
            .merge(table, &key_of(id), row, None)
            .await
        {
            Ok(_) | Err(storage::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Has whoever leads look at a workflow within its poll interval, though nothing in the row
    /// says that there is something to do: a row that says `pending` is looked at, and then says
    /// what is true.
    ///
    /// # Errors
    /// The storage's own.
    pub async fn ask_for_a_look(&self, id: &WorkflowId) -> Result<()> {
        let pending = Value::String(WorkflowState::Pending.as_str().to_owned());
        let row = Properties::from([(WORKFLOW_STATE.to_owned(), pending)]);
        let table = self.names.index_table();
        match self
            .storage
            .tables
            .merge(table, &key_of(id), row, None)
            .await
        {
            Ok(_) | Err(storage::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The row of one workflow.
    ///
    /// # Errors
    /// The storage's own.
    pub async fn row(&self, id: &WorkflowId) -> Result<Option<IndexRow>> {
        match self
            .storage
            .tables
            .get(self.names.index_table(), &key_of(id))
            .await
        {
            Ok(entity) => Ok(read(&entity)),
            Err(storage::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// A page of at most `limit` (1 to 1,000) rows, in the order of the table; it may be short and
    /// still have a successor.
    ///
    /// # Errors
    /// The storage's own.
    pub async fn rows(
        &self,
        filter: &RowFilter,
        after: Option<&EntityKey>,
        limit: usize,
    ) -> Result<RowPage> {
        self.query(&filter.to_storage(), after, limit).await
    }

    /// Up to `limit` (1 to 1,000) rows in the order of their ids, after an id if one is given, and
    /// whether there are more. Reads every partition once.
    ///
    /// # Errors
    /// The storage's own.
    pub async fn rows_by_id(
        &self,
        filter: &RowFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<IndexRow>, bool)> {
        let filter = filter.to_storage();
        let partitions = Names::partition_keys().map(|partition| {
            let filter = &filter;
            async move { self.partition_by_id(&partition, filter, after, limit).await }
        });
        let mut rows = Vec::new();
        for found in futures::future::join_all(partitions).await {
            rows.extend(found?);
        }
        rows.sort_unstable_by(|one, another| one.workflow_id.cmp(&another.workflow_id));
        let more = rows.len() > limit;
        rows.truncate(limit);
        Ok((rows, more))
    }

    /// One row more than `limit` of one partition, if there are so many.
    async fn partition_by_id(
        &self,
        partition: &str,
        filter: &Filter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<IndexRow>> {
        let here = Filter::eq("PartitionKey", Value::String(partition.to_owned()));
        let filter = Filter::And(vec![here, filter.clone()]);
        let mut after = after.map(|id| EntityKey {
            partition: partition.to_owned(),
            row: id.to_owned(),
        });
        let mut rows = Vec::new();
        loop {
            let wanted = (limit + 1 - rows.len()).min(crate::limits::PAGE_MAX);
            let page = self.query(&filter, after.as_ref(), wanted).await?;
            rows.extend(page.rows);
            after = page.next;
            if after.is_none() || rows.len() > limit {
                return Ok(rows);
            }
        }
    }

    /// A page of the rows that a sweep must look at: workflows that were never activated, and
    /// cancels that have not taken effect.
    ///
    /// # Errors
    /// The storage's own.
    pub async fn rows_to_act_on(&self, after: Option<&EntityKey>) -> Result<RowPage> {
        let waiting = state_is(WorkflowState::Pending);
        let asked = Filter::eq(CANCEL_REQUESTED, Value::Bool(true));
        let unheard = Filter::And(vec![asked, state_is(WorkflowState::Running)]);
        self.query(
            &Filter::Or(vec![waiting, unheard]),
            after,
            crate::limits::PAGE_MAX,
        )
        .await
    }

    /// A page of the rows of workflows that are not terminal.
    ///
    /// # Errors
    /// The storage's own.
    pub async fn rows_not_terminal(&self, after: Option<&EntityKey>) -> Result<RowPage> {
        let states = WorkflowState::ALL
            .iter()
            .copied()
            .filter(|state| !state.is_terminal());
        let filter = Filter::Or(states.map(state_is).collect());
        self.query(&filter, after, crate::limits::PAGE_MAX).await
    }

    async fn query(
        &self,
        filter: &Filter,
        after: Option<&EntityKey>,
        limit: usize,
    ) -> Result<RowPage> {
        let table = self.names.index_table();
        let page = self
            .storage
            .tables
            .query(table, filter, after, limit)
            .await?;
        Ok(RowPage {
            rows: page.entities.iter().filter_map(read).collect(),
            next: page.next,
        })
    }

    /// Writes the row of a new workflow. Where one stands already (another client mended it first)
    /// a cancel request in it is kept.
    ///
    /// # Errors
    /// The storage's own.
    pub async fn write_row(&self, runtime: &Runtime) -> Result<()> {
        let (tables, table) = (&self.storage.tables, self.names.index_table());
        let key = key_of(&runtime.header().workflow_id);
        let mut row = index_row::complete(runtime);
        match tables.insert(table, &key, row.clone()).await {
            Ok(_) => {}
            Err(storage::Error::AlreadyExists { .. }) => {
                row.remove(CANCEL_REQUESTED);
                tables.merge(table, &key, row, None).await?;
            }
            Err(error) => return Err(error.into()),
        }
        self.write_recent(runtime).await
    }
}

pub(super) fn key_of(id: &WorkflowId) -> EntityKey {
    EntityKey {
        partition: Names::partition_key(id),
        row: id.to_string(),
    }
}

pub(super) fn read(entity: &Entity) -> Option<IndexRow> {
    IndexRow::read(&entity.key.row, &entity.properties)
}

fn state_is(state: WorkflowState) -> Filter {
    Filter::eq(WORKFLOW_STATE, Value::String(state.as_str().to_owned()))
}

impl RowFilter {
    pub(super) fn to_storage(&self) -> Filter {
        let mut parts = Vec::new();
        if !self.states.is_empty() {
            parts.push(Filter::Or(
                self.states.iter().copied().map(state_is).collect(),
            ));
        }
        if let Some(prefix) = &self.name_prefix {
            parts.extend(starts_with("name", prefix));
        }
        let labels = self.labels.iter().map(|(key, value)| {
            Filter::eq(index_row::label_property(key), Value::String(value.clone()))
        });
        parts.extend(labels);
        let created = [
            (Operator::Ge, self.created_from),
            (Operator::Lt, self.created_to),
        ];
        parts.extend(created.into_iter().filter_map(|(operator, time)| {
            Some(Filter::compare(
                "created_at",
                operator,
                Value::DateTime(time?),
            ))
        }));
        if parts.is_empty() {
            Filter::Everything
        } else {
            Filter::And(parts)
        }
    }
}

/// Tables compare whole strings only, so a prefix is a range: from the prefix to the least text
/// above all that start with it.
fn starts_with(property: &str, prefix: &str) -> Vec<Filter> {
    let compare = |operator, text: String| {
        Filter::Compare(Compare {
            property: property.to_owned(),
            operator,
            value: Value::String(text),
        })
    };
    let mut range = vec![compare(Operator::Ge, prefix.to_owned())];
    range.extend(next_above(prefix).map(|end| compare(Operator::Lt, end)));
    range
}

fn next_above(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        // Surrogates are no characters, so the successor of the one before them lies behind them.
        let next = match last {
            '\u{d7ff}' => Some('\u{e000}'),
            other => char::from_u32(u32::from(other) + 1),
        };
        if let Some(next) = next {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::next_above;

    #[test]
    fn the_range_of_a_prefix_ends_at_its_successor() {
        assert_eq!(next_above("ab"), Some("ac".to_owned()));
        assert_eq!(next_above("a\u{10ffff}"), Some("b".to_owned()));
        assert_eq!(next_above("\u{d7ff}"), Some("\u{e000}".to_owned()));
        assert_eq!(next_above("\u{10ffff}"), None);
        assert_eq!(next_above(""), None);
    }
}
