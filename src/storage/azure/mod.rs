//! The cloud store: the four ports on Azure Storage, and on its emulator.
//!
//! - [`account`](self): which account, how to sign in; the clients of its three services.
//! - `transport`: the one pooled HTTP client under all of them.
//! - `errors`: what an answer means at the ports. Decided by status and error code alone, and
//!   never printing an address, because addresses may be signed.
//! - `retry`: which calls may be repeated, and which may not because a lost answer is no refusal.
//! - `blob`, `lease`, `queue`, `table` (with `odata`): one file per port.
//!
//! Callers: `cli` opens it; everything else sees the ports.

mod account;
mod blob;
mod errors;
mod lease;
mod odata;
mod queue;
mod retry;
mod table;
mod transport;

pub use account::{Account, Credential, Endpoints};

use std::sync::Arc;

use azure_data_tables::clients::TableServiceClient;
use azure_storage_blobs::prelude::BlobServiceClient;
use azure_storage_queues::QueueServiceClient;

use super::Result;
use crate::clock::Clock;
use errors::{Service, Translate};
use transport::Transport;

/// One account as a storage: all four ports.
#[derive(Debug)]
pub struct AzureStorage {
    blobs: BlobServiceClient,
    queues: QueueServiceClient,
    tables: TableServiceClient,
    transport: Arc<Transport>,
    clock: Clock,
}

impl AzureStorage {
    /// The storage of an account. Connects to nothing yet.
    ///
    /// # Errors
    /// `Unauthorized` if the credential is unusable as it stands.
    pub fn new(account: &Account, clock: Clock) -> Result<Self> {
        let transport = Arc::new(Transport::new(clock.clone(), account.credential.is_key())?);
        let clients = account::Clients::new(account, &transport)?;
        Ok(Self {
            blobs: clients.blobs,
            queues: clients.queues,
            tables: clients.tables,
            transport,
            clock,
        })
    }

    /// How an error of a service is told, for something of this kind and name.
    fn translate(&self, service: Service, what: impl Into<String>) -> Translate<'_> {
        Translate {
            service,
            what: what.into(),
            transport: &self.transport,
        }
    }
}
