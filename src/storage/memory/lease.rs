//! Leases on blobs.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::{Lease, MemoryStorage, StoredBlob};
use crate::storage::{Error, Holder, LeaseId, LeaseStore, Result};

fn held(container: &str, name: &str) -> Error {
    Error::LeaseHeld {
        what: format!("blob {container}/{name}"),
    }
}

fn key(container: &str, name: &str) -> (String, String) {
    (container.to_owned(), name.to_owned())
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
        let now = self.clock.now();
        let mut state = self.state();
        match state.leases.get(&key(container, name)) {
            Some(lease) if lease.id != id.0 && lease.expires_at > now => {
                return Err(held(container, name));
            }
            _ => {}
        }
        let lease = Lease {
            id: id.0.clone(),
            duration,
            expires_at: now.plus(duration),
        };
        state.leases.insert(key(container, name), lease);
        let blob = StoredBlob {
            data: content,
            etag: state.next_etag(),
        };
        state
            .containers
            .entry(container.to_owned())
            .or_default()
            .insert(name.to_owned(), blob);
        Ok(())
    }

    async fn renew(&self, container: &str, name: &str, id: &LeaseId) -> Result<()> {
        let now = self.clock.now();
        match self.state().leases.get_mut(&key(container, name)) {
            Some(lease) if lease.id == id.0 => {
                lease.expires_at = now.plus(lease.duration);
                Ok(())
            }
            _ => Err(held(container, name)),
        }
    }

    async fn release(&self, container: &str, name: &str, id: &LeaseId) -> Result<()> {
        let key = key(container, name);
        let mut state = self.state();
        if state.leases.get(&key).is_some_and(|lease| lease.id == id.0) {
            state.leases.remove(&key);
        }
        Ok(())
    }

    async fn break_lease(&self, container: &str, name: &str) -> Result<()> {
        self.state().leases.remove(&key(container, name));
        Ok(())
    }

    async fn holder(&self, container: &str, name: &str) -> Result<Holder> {
        let now = self.clock.now();
        let state = self.state();
        let blob = state
            .containers
            .get(container)
            .and_then(|blobs| blobs.get(name));
        let Some(blob) = blob else {
            return Err(Error::NotFound {
                what: format!("blob {container}/{name}"),
            });
        };
        let lease = state.leases.get(&key(container, name));
        let held = lease.is_some_and(|lease| lease.expires_at > now);
        Ok(Holder {
            content: blob.data.clone(),
            held,
        })
    }
}
