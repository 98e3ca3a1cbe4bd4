//! Removing workflows, and finding what crashes left of them.

use super::index::key_of;
use super::recent::recent_key;
use super::{Error, Result, WorkflowStore};
use crate::limits::PAGE_MAX;
use crate::storage::{self, EntityKey};
use crate::wire::Names;
use crate::workflow::WorkflowId;

/// What a removal found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removed {
    /// Something of the workflow was there, and is gone.
    Gone,
    /// There was nothing.
    Nothing,
}

/// Whether a delete found something.
fn found(result: storage::Result<()>) -> Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(storage::Error::NotFound { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

impl WorkflowStore {
    /// Removes a workflow: its state first, from when on it does not exist, then its outputs and
    /// logs, then its rows. A crash in between leaves rows without a state, or outputs, which
    /// repeating the call removes.
    ///
    /// # Errors
    /// The storage's own.
    pub async fn remove(&self, id: &WorkflowId) -> Result<Removed> {
        // The row in the table of recent workflows is found by the time of submit.
        let recent = match self.load(id).await {
            Ok(loaded) => Some(recent_key(&loaded.runtime)),
            Err(Error::NotFound(_) | Error::BadState { .. }) => {
                let row = self.row(id).await?;
                row.map(|row| EntityKey {
                    partition: Names::RECENT_PARTITION.to_owned(),
                    row: Names::recent_row_key(row.created_at, id),
                })
            }
            Err(error) => return Err(error),
        };
        let (blobs, tables) = (&self.storage.blobs, &self.storage.tables);
        let state = Names::state_blob(id);
        let state = blobs.delete(self.names.state_container(), &state).await;
        let mut any = found(state)?;
        any |= self.remove_outputs(id).await?;
        if let Some(recent) = recent {
            let gone = tables.delete(self.names.recent_table(), &recent).await;
            any |= found(gone)?;
        }
        let gone = tables.delete(self.names.index_table(), &key_of(id)).await;
        any |= found(gone)?;
        Ok(if any { Removed::Gone } else { Removed::Nothing })
    }

    async fn remove_outputs(&self, id: &WorkflowId) -> Result<bool> {
        let (blobs, container) = (&self.storage.blobs, self.names.outputs_container());
        let prefix = format!("{id}/");
        let mut any = false;
        loop {
            let page = blobs.list(container, &prefix, None, PAGE_MAX).await?;
            if page.blobs.is_empty() {
                return Ok(any);
            }
            for blob in page.blobs {
                any |= found(blobs.delete(container, &blob.name).await)?;
            }
        }
    }

    /// A page of the ids of all workflows that have a state, and where to go on.
    ///
    /// # Errors
    /// The storage's own.
    pub async fn stored_ids(
        &self,
        page: Option<&str>,
    ) -> Result<(Vec<WorkflowId>, Option<String>)> {
        let container = self.names.state_container();
        let listed = self
            .storage
            .blobs
            .list(container, "", page, PAGE_MAX)
            .await?;
        let ids = listed.blobs.iter().filter_map(|blob| {
            let id = blob.name.strip_suffix(".json")?;
            WorkflowId::parse(id).ok()
        });
        Ok((ids.collect(), listed.next))
    }

    /// Writes the rows of a workflow anew from its state.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub async fn mend_rows(&self, id: &WorkflowId) -> Result<()> {
        let runtime = self.load(id).await?.runtime;
        self.write_row(&runtime).await
    }
}
