//! Submit, load and flush.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;

use super::{Error, Result, WorkflowStore};
use crate::storage::{self, Blob, ETag, Expect, IfChanged};
use crate::wire::{Names, state_blob};
use crate::workflow::WorkflowId;
use crate::workflow::runtime::{Runtime, Task};

/// A state blob without an index row is either a submit under way or what a crash left of one.
/// Beyond this age it is the latter: the row is written milliseconds after the blob.
const SUBMIT_UNDER_WAY_MAX: Duration = Duration::from_secs(30);

/// A workflow's runtime and the version it was loaded from.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The runtime.
    pub runtime: Runtime,
    /// The version that a flush must still find.
    pub etag: ETag,
}

/// The answer to a conditional load.
#[derive(Debug, Clone)]
pub enum LoadedIfChanged {
    /// Still the version given.
    Unchanged,
    /// Another version.
    Changed(Box<Loaded>),
}

/// What a submit did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Submitted {
    /// The workflow is new.
    Created,
    /// It was there already, with the same definition; nothing was changed.
    Existed,
}

impl WorkflowStore {
    /// Makes a workflow durable: first its state, create-only, then its index row. After `Ok` it
    /// survives a crash and will be activated. Repeating the call with the same definition changes
    /// nothing and mends what a crash between the two writes left.
    ///
    /// # Errors
    /// [`Error::DifferentDefinition`] if the id is taken; the storage's own.
    pub async fn submit(&self, runtime: &Runtime) -> Result<Submitted> {
        self.create_queues(runtime).await?;
        let id = &runtime.header().workflow_id;
        match self.write(id, runtime, Expect::Absent).await {
            Ok(_) => {
                self.write_row(runtime).await?;
                Ok(Submitted::Created)
            }
            Err(storage::Error::AlreadyExists { .. }) => self.resubmit(runtime).await,
            Err(error) => Err(error.into()),
        }
    }

    async fn resubmit(&self, runtime: &Runtime) -> Result<Submitted> {
        let id = &runtime.header().workflow_id;
        let existing = self.load(id).await?;
        let has_row = self.row(id).await?.is_some();
        let header = existing.runtime.header();
        if header.definition_sha256 == runtime.header().definition_sha256 {
            if !has_row {
                self.write_row(&existing.runtime).await?;
            }
            return Ok(Submitted::Existed);
        }
        let age = runtime.header().created_at.since(header.created_at);
        if has_row || age < SUBMIT_UNDER_WAY_MAX {
            return Err(Error::DifferentDefinition(id.clone()));
        }
        match self
            .write(id, runtime, Expect::Version(existing.etag))
            .await
        {
            Ok(_) => {
                self.write_row(runtime).await?;
                Ok(Submitted::Created)
            }
            Err(storage::Error::PreconditionFailed { .. }) => {
                Err(Error::DifferentDefinition(id.clone()))
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn create_queues(&self, runtime: &Runtime) -> Result<()> {
        let queues: BTreeSet<_> = runtime.tasks().iter().map(Task::queue).collect();
        for queue in queues {
            self.storage.queues.create_queue(queue).await?;
        }
        Ok(())
    }

    /// Reads a workflow.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::BadState`] if the blob is corrupt or of an unknown version;
    /// the storage's own.
    pub async fn load(&self, id: &WorkflowId) -> Result<Loaded> {
        let name = Names::state_blob(id);
        match self
            .storage
            .blobs
            .get(self.names.state_container(), &name)
            .await
        {
            Ok(blob) => decode(id, &blob),
            Err(error) => Err(not_found(id, error)),
        }
    }

    /// As [`load`](Self::load), but without the bytes if the version is still `etag`.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub async fn load_if_changed(&self, id: &WorkflowId, etag: &ETag) -> Result<LoadedIfChanged> {
        let name = Names::state_blob(id);
        let container = self.names.state_container();
        match self
            .storage
            .blobs
            .get_if_changed(container, &name, etag)
            .await
        {
            Ok(IfChanged::Unchanged) => Ok(LoadedIfChanged::Unchanged),
            Ok(IfChanged::Changed(blob)) => {
                decode(id, &blob).map(|loaded| LoadedIfChanged::Changed(Box::new(loaded)))
            }
            Err(error) => Err(not_found(id, error)),
        }
    }

    /// Writes a workflow's state if it still has the version it was loaded from.
    ///
    /// # Errors
    /// [`Error::Conflict`] if another writer was there first; the storage's own. After
    /// `Unavailable` the write may have taken effect: loading again tells.
    pub async fn flush(&self, runtime: &Runtime, etag: &ETag) -> Result<ETag> {
        let id = &runtime.header().workflow_id;
        match self.write(id, runtime, Expect::Version(etag.clone())).await {
            Ok(etag) => Ok(etag),
            Err(storage::Error::PreconditionFailed { .. }) => Err(Error::Conflict(id.clone())),
            Err(error) => Err(error.into()),
        }
    }

    async fn write(
        &self,
        id: &WorkflowId,
        runtime: &Runtime,
        expect: Expect,
    ) -> storage::Result<ETag> {
        let data: Bytes = state_blob::encode(runtime);
        let name = Names::state_blob(id);
        self.storage
            .blobs
            .put(self.names.state_container(), &name, data, expect)
            .await
    }
}

fn decode(id: &WorkflowId, blob: &Blob) -> Result<Loaded> {
    let runtime = state_blob::decode(&blob.data).map_err(|reason| Error::BadState {
        id: id.clone(),
        reason,
    })?;
    if runtime.header().workflow_id != *id {
        let found = &runtime.header().workflow_id;
        let reason = state_blob::Error::Corrupt(format!("it is the state of workflow {found}"));
        return Err(Error::BadState {
            id: id.clone(),
            reason,
        });
    }
    Ok(Loaded {
        runtime,
        etag: blob.etag.clone(),
    })
}

fn not_found(id: &WorkflowId, error: storage::Error) -> Error {
    match error {
        storage::Error::NotFound { .. } => Error::NotFound(id.clone()),
        other => other.into(),
    }
}
