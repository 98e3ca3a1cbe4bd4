//! Leases in memory: each is a property of its blob.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::MemoryStorage;
use crate::clock::Timestamp;
use crate::storage::{Error, Holder, LeaseId, LeaseStore, Result, check};

pub(super) struct Lease {
    id: LeaseId,
    until: Timestamp,
    duration: Duration,
}

fn held(container: &str, name: &str) -> Error {
    Error::LeaseHeld {
        what: format!("{container}/{name}"),
    }
}

#[async_trait]
impl LeaseStore for MemoryStorage {
    async fn acquire(
        &self,
        container: &str,
        name: &str,
        id: &LeaseId,
        duration: Duration,
        content: Bytes,
    ) -> Result<()> {
        check::blob(name)?;
        check::blob_size(name, content.len())?;
        check::lease(duration)?;
        let now = self.clock.now();
        let mut rooms = self.rooms();
        let blob = rooms.container(container)?.get(name);
        if let Some(lease) = blob.and_then(|blob| blob.lease.as_ref())
            && lease.id != *id
            && lease.until > now
        {
            return Err(held(container, name));
        }
        rooms.write(container, name, content)?;
        rooms.blob(container, name)?.lease = Some(Lease {
            id: id.clone(),
            until: now.plus(duration),
            duration,
        });
        Ok(())
    }

    async fn renew(&self, container: &str, name: &str, id: &LeaseId) -> Result<()> {
        let now = self.clock.now();
        let mut rooms = self.rooms();
        match &mut rooms.blob(container, name)?.lease {
            Some(lease) if lease.id == *id => {
                lease.until = now.plus(lease.duration);
                Ok(())
            }
            Some(_) | None => Err(held(container, name)),
        }
    }

    async fn release(&self, container: &str, name: &str, id: &LeaseId) -> Result<()> {
        let mut rooms = self.rooms();
        if let Some(blob) = rooms.container(container)?.get_mut(name) {
            blob.lease.take_if(|lease| lease.id == *id);
        }
        Ok(())
    }

    async fn break_lease(&self, container: &str, name: &str) -> Result<()> {
        let mut rooms = self.rooms();
        if let Some(blob) = rooms.container(container)?.get_mut(name) {
            blob.lease = None;
        }
        Ok(())
    }

    async fn holder(&self, container: &str, name: &str) -> Result<Holder> {
        let now = self.clock.now();
        let mut rooms = self.rooms();
        let blob = rooms.blob(container, name)?;
        Ok(Holder {
            content: blob.data.clone(),
            held: blob.lease.as_ref().is_some_and(|lease| lease.until > now),
        })
    }
}
