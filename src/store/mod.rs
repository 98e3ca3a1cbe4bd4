//! The workflow store: workflows as durable things, built on the storage ports.
//!
//! The state blob is the truth; the index row is derived from it, written after it, and may be
//! rebuilt from it. Every change of a state blob is a compare-and-swap on its version: [`flush`]
//! takes the version that was loaded, and a conflict means "load again".
//!
//! Callers: `coordinator` (load, flush, index), `control` (submit, list, cancel), `worker` (outputs
//! and the state of a redelivered attempt).
//!
//! [`flush`]: WorkflowStore::flush

mod error;
mod index;
mod outputs;
mod recent;
mod remove;
mod state;

pub use error::{Error, Result};
pub use index::{RowFilter, RowPage};
pub use remove::Removed;
pub use state::{Loaded, LoadedIfChanged, Submitted};

use crate::storage::Storage;
use crate::wire::Names;

/// The workflows of one prefix in one storage. Cheap to clone.
#[derive(Debug, Clone)]
pub struct WorkflowStore {
    storage: Storage,
    names: Names,
}

impl WorkflowStore {
    /// The store of the workflows named by `names`.
    #[must_use]
    pub const fn new(storage: Storage, names: Names) -> Self {
        Self { storage, names }
    }

    /// The ports it stands on.
    #[must_use]
    pub const fn storage(&self) -> &Storage {
        &self.storage
    }

    /// The names it uses.
    #[must_use]
    pub const fn names(&self) -> &Names {
        &self.names
    }

    /// Creates the containers, the table and the completion queue where they are missing. Task
    /// queues are created when a workflow that uses them is submitted.
    ///
    /// # Errors
    /// The storage's own.
    pub async fn ensure(&self) -> Result<()> {
        let Storage {
            blobs,
            queues,
            tables,
            ..
        } = &self.storage;
        blobs.create_container(self.names.state_container()).await?;
        blobs
            .create_container(self.names.outputs_container())
            .await?;
        queues.create_queue(self.names.completion_queue()).await?;
        tables.create_table(self.names.index_table()).await?;
        tables.create_table(self.names.recent_table()).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
