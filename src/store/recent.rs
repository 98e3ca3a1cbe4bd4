//! The rows of workflows, the newest first.
//!
//! A second table holds each index row once more, under a key that ascends as times of submit
//! descend: what people look at most, the latest workflows, is one page of it, however many there
//! are. It is written after the index row and never read for a decision; a row that a crash, or
//! another program's submit, left out comes with the workflow's next progress.

use super::index::{RowFilter, read};
use super::{Result, WorkflowStore};
use crate::storage::{self, EntityKey, Filter, Operator, Value};
use crate::wire::Names;
use crate::wire::index_row::{self, CANCEL_REQUESTED, IndexRow};
use crate::workflow::runtime::Runtime;

impl WorkflowStore {
    /// A page of at most `limit` (1 to 1,000) rows, the newest first, after the key that the page
    /// before ended with; and the key to go on after. A page may be short and have a successor.
    ///
    /// # Errors
    /// The storage's own.
    pub async fn rows_newest(
        &self,
        filter: &RowFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<IndexRow>, Option<String>)> {
        let mut parts = vec![filter.to_storage()];
        // Keys descend with time, so a bound on the time is one on the key.
        let row = |operator, bound| Filter::compare("RowKey", operator, Value::String(bound));
        if let Some(from) = filter.created_from {
            let end = format!("{}.", Names::recent_row_bound(from));
            parts.push(row(Operator::Lt, end));
        }
        if let Some(to) = filter.created_to {
            let end = format!("{}.", Names::recent_row_bound(to));
            parts.push(row(Operator::Gt, end));
        }
        let after = after.map(|row| EntityKey {
            partition: Names::RECENT_PARTITION.to_owned(),
            row: row.to_owned(),
        });
        let (tables, table) = (&self.storage.tables, self.names.recent_table());
        let page = tables
            .query(table, &Filter::And(parts), after.as_ref(), limit)
            .await?;
        let rows = page.entities.iter().filter_map(|entity| {
            // The key begins with the time.
            let (_, id) = entity.key.row.split_once('-')?;
            let mut row = read(entity)?;
            id.clone_into(&mut row.workflow_id);
            Some(row)
        });
        Ok((rows.collect(), page.next.map(|key| key.row)))
    }

    /// Writes the row of a new workflow. A cancel request in one that stands there is kept.
    pub(super) async fn write_recent(&self, runtime: &Runtime) -> Result<()> {
        let (tables, table) = (&self.storage.tables, self.names.recent_table());
        let key = recent_key(runtime);
        let mut row = index_row::complete(runtime);
        match tables.insert(table, &key, row.clone()).await {
            Ok(_) => Ok(()),
            Err(storage::Error::AlreadyExists { .. }) => {
                row.remove(CANCEL_REQUESTED);
                tables.merge(table, &key, row, None).await?;
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the progress of a workflow, and the whole row where there is none.
    pub(super) async fn recent_progress(&self, runtime: &Runtime) -> Result<()> {
        let (tables, table) = (&self.storage.tables, self.names.recent_table());
        let mut row = index_row::progress(runtime);
        // Here it only informs.
        row.insert(
            CANCEL_REQUESTED.to_owned(),
            Value::Bool(runtime.cancel_requested()),
        );
        match tables.merge(table, &recent_key(runtime), row, None).await {
            Ok(_) => Ok(()),
            Err(storage::Error::NotFound { .. }) => self.write_recent(runtime).await,
            Err(error) => Err(error.into()),
        }
    }
}

pub(super) fn recent_key(runtime: &Runtime) -> EntityKey {
    let header = runtime.header();
    EntityKey {
        partition: Names::RECENT_PARTITION.to_owned(),
        row: Names::recent_row_key(header.created_at, &header.workflow_id),
    }
}
