//! The lease port on the blob service.

use std::time::Duration;

use async_trait::async_trait;
use azure_core::LeaseState;
use azure_core::prelude::{IfMatchCondition, LeaseId as ServiceLeaseId, ProposedLeaseId};
use azure_storage_blobs::prelude::BlobClient;
use bytes::Bytes;
use uuid::Uuid;

use super::AzureStorage;
use super::errors::{Service, Translate};
use super::retry::{SHORT, once, repeatable};
use crate::storage::{BlobStore as _, Error, Holder, LeaseId, LeaseStore, Result, check};

impl AzureStorage {
    fn about_lease(&self, container: &str, name: &str) -> Translate<'_> {
        self.translate(Service::Blob, format!("blob {container}/{name}"))
    }

    async fn try_acquire(
        &self,
        client: &BlobClient,
        about: &Translate<'_>,
        id: Uuid,
        duration: Duration,
    ) -> Result<()> {
        // The id is ours, so that a repetition finds its own lease and renews it.
        let acquire = || {
            client
                .acquire_lease(duration)
                .proposed_lease_id(ProposedLeaseId::from(ServiceLeaseId::from(id)))
                .into_future()
        };
        repeatable(about, SHORT, acquire).await.map(drop)
    }
}

fn uuid(id: &LeaseId) -> Result<Uuid> {
    id.0.parse().map_err(|_| Error::Invalid {
        message: format!("{:?} is no lease id: a UUID in the dashed form", id.0),
    })
}

#[async_trait]
impl LeaseStore for AzureStorage {
    async fn acquire(
        &self,
        container: &str,
        name: &str,
        id: &LeaseId,
        duration: Duration,
        content: Bytes,
    ) -> Result<()> {
        check::lease(duration)?;
        let client = self.blob_client(container, name)?;
        let (about, id) = (self.about_lease(container, name), uuid(id)?);
        match self.try_acquire(&client, &about, id, duration).await {
            Err(Error::NotFound { .. }) => {
                let empty = || {
                    client
                        .put_block_blob(Bytes::new())
                        .if_match(IfMatchCondition::NotMatch("*".to_owned()))
                        .into_future()
                };
                match once(&about, SHORT, empty).await {
                    // Somebody else made it first, and may hold it by now.
                    Ok(_) | Err(Error::AlreadyExists { .. } | Error::LeaseHeld { .. }) => {}
                    Err(error) => return Err(error),
                }
                self.try_acquire(&client, &about, id, duration).await?;
            }
            other => other?,
        }
        let write = || {
            client
                .put_block_blob(content.clone())
                .lease_id(ServiceLeaseId::from(id))
                .into_future()
        };
        repeatable(&about, SHORT, write).await.map(drop)
    }

    async fn renew(&self, container: &str, name: &str, id: &LeaseId) -> Result<()> {
        let client = self.blob_client(container, name)?;
        let lease = client.blob_lease_client(ServiceLeaseId::from(uuid(id)?));
        let renew = || lease.renew().into_future();
        let renewed = repeatable(&self.about_lease(container, name), SHORT, renew).await;
        renewed.map(drop)
    }

    async fn release(&self, container: &str, name: &str, id: &LeaseId) -> Result<()> {
        let client = self.blob_client(container, name)?;
        let lease = client.blob_lease_client(ServiceLeaseId::from(uuid(id)?));
        let release = || lease.release().into_future();
        match repeatable(&self.about_lease(container, name), SHORT, release).await {
            Ok(_) | Err(Error::LeaseHeld { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn break_lease(&self, container: &str, name: &str) -> Result<()> {
        let client = self.blob_client(container, name)?;
        let at_once = || {
            client
                .break_lease()
                .lease_break_period(azure_core::prelude::LeaseBreakPeriod::from(Duration::ZERO))
                .into_future()
        };
        match repeatable(&self.about_lease(container, name), SHORT, at_once).await {
            Ok(_) | Err(Error::LeaseHeld { .. }) => Ok(()),
            // Nobody ever took it, unless the container is what is missing.
            Err(Error::NotFound { .. }) => self.container_exists(container).await,
            Err(error) => Err(error),
        }
    }

    async fn holder(&self, container: &str, name: &str) -> Result<Holder> {
        let content = self.get(container, name).await?.data;
        let client = self.blob_client(container, name)?;
        let look = || client.get_properties().into_future();
        let found = repeatable(&self.about_lease(container, name), SHORT, look).await?;
        let state = found.blob.properties.lease_state;
        let held = matches!(state, Some(LeaseState::Leased | LeaseState::Breaking));
        Ok(Holder { content, held })
    }
}
