//! The coordinator's status blob: who leads, for people and `doctor`.

use serde::{Deserialize, Serialize};

use super::{HolderInfo, StatsSnapshot};
use crate::clock::Timestamp;
use crate::storage::{self, Expect};
use crate::store::WorkflowStore;
use crate::wire::Names;

/// What `_coordinator.json` holds.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CoordinatorStatus {
    /// Who leads.
    #[serde(flatten)]
    pub holder: HolderInfo,
    /// When this was written; more than a minute ago means that nobody leads.
    #[schema(value_type = String, format = DateTime)]
    pub written_at: Timestamp,
    /// What it counted since it started.
    pub counters: serde_json::Value,
}

impl CoordinatorStatus {
    pub(super) fn new(holder: HolderInfo, written_at: Timestamp, stats: StatsSnapshot) -> Self {
        let counters = serde_json::to_value(stats).expect("counters are plain data");
        Self {
            holder,
            written_at,
            counters,
        }
    }

    pub(super) async fn write(&self, store: &WorkflowStore) -> storage::Result<()> {
        let data = serde_json::to_vec(self).expect("a status is plain data");
        let container = store.names().state_container();
        let blobs = &store.storage().blobs;
        blobs
            .put(
                container,
                Names::COORDINATOR_STATUS_BLOB,
                data.into(),
                Expect::Anything,
            )
            .await?;
        Ok(())
    }

    /// The latest status, if a coordinator ever wrote one.
    ///
    /// # Errors
    /// The storage's own; `Corrupt` if the blob is not a status.
    pub async fn read(store: &WorkflowStore) -> storage::Result<Option<Self>> {
        let container = store.names().state_container();
        let what = Names::COORDINATOR_STATUS_BLOB;
        match store.storage().blobs.get(container, what).await {
            Ok(blob) => serde_json::from_slice(&blob.data)
                .map(Some)
                .map_err(|error| storage::Error::Corrupt {
                    what: what.to_owned(),
                    message: error.to_string(),
                }),
            Err(storage::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
