//! Leases on blobs.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension as _};

use super::SqliteStorage;
use super::blob;
use super::writer::Sync;
use crate::storage::{Error, Holder, LeaseId, LeaseStore, Result};

fn what(container: &str, name: &str) -> String {
    format!("blob {container}/{name}")
}

/// Who leased the blob last, for how long, and until when.
struct Lease {
    id: String,
    duration: i64,
    expires_at: i64,
}

fn find(connection: &Connection, container: &str, name: &str) -> rusqlite::Result<Option<Lease>> {
    connection
        .prepare_cached(
            "SELECT lease_id, duration, expires_at FROM leases
             WHERE container = ?1 AND name = ?2",
        )?
        .query_row([container, name], |row| {
            Ok(Lease {
                id: row.get(0)?,
                duration: row.get(1)?,
                expires_at: row.get(2)?,
            })
        })
        .optional()
}

fn set(
    connection: &Connection,
    container: &str,
    name: &str,
    lease: &Lease,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO leases (container, name, lease_id, duration, expires_at)
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute((container, name, &lease.id, lease.duration, lease.expires_at))?;
    Ok(())
}

#[async_trait]
impl LeaseStore for SqliteStorage {
    async fn acquire(
        &self,
        container: &str,
        name: &str,
        id: &LeaseId,
        duration: Duration,
        content: Bytes,
    ) -> Result<()> {
        let what = what(container, name);
        let (container, name, id) = (container.to_owned(), name.to_owned(), id.0.clone());
        let (now, held) = (self.now(), Error::LeaseHeld { what: what.clone() });
        let duration = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX / 4);
        self.writer
            .run(Sync::Durable, &what, move |group| {
                let connection = group.connection;
                match find(connection, &container, &name)? {
                    Some(lease) if lease.id != id && lease.expires_at > now => {
                        return Ok(Err(held));
                    }
                    _ => {}
                }
                let lease = Lease {
                    id,
                    duration,
                    expires_at: now.saturating_add(duration),
                };
                set(connection, &container, &name, &lease)?;
                blob::write(connection, &container, &name, &content, group.next_number())?;
                Ok(Ok(()))
            })
            .await
    }

    async fn renew(&self, container: &str, name: &str, id: &LeaseId) -> Result<()> {
        let what = what(container, name);
        let (container, name, id) = (container.to_owned(), name.to_owned(), id.0.clone());
        let (now, held) = (self.now(), Error::LeaseHeld { what: what.clone() });
        self.writer
            .run(Sync::Durable, &what, move |group| {
                match find(group.connection, &container, &name)? {
                    Some(mut lease) if lease.id == id => {
                        lease.expires_at = now.saturating_add(lease.duration);
                        set(group.connection, &container, &name, &lease)?;
                        Ok(Ok(()))
                    }
                    _ => Ok(Err(held)),
                }
            })
            .await
    }

    async fn release(&self, container: &str, name: &str, id: &LeaseId) -> Result<()> {
        let what = what(container, name);
        let (container, name, id) = (container.to_owned(), name.to_owned(), id.0.clone());
        self.writer
            .run(Sync::Durable, &what, move |group| {
                group
                    .connection
                    .prepare_cached(
                        "DELETE FROM leases WHERE container = ?1 AND name = ?2 AND lease_id = ?3",
                    )?
                    .execute([container, name, id])?;
                Ok(Ok(()))
            })
            .await
    }

    async fn break_lease(&self, container: &str, name: &str) -> Result<()> {
        let what = what(container, name);
        let (container, name) = (container.to_owned(), name.to_owned());
        self.writer
            .run(Sync::Durable, &what, move |group| {
                group
                    .connection
                    .prepare_cached("DELETE FROM leases WHERE container = ?1 AND name = ?2")?
                    .execute([container, name])?;
                Ok(Ok(()))
            })
            .await
    }

    async fn holder(&self, container: &str, name: &str) -> Result<Holder> {
        let what = what(container, name);
        let (container, name, now) = (container.to_owned(), name.to_owned(), self.now());
        let missing = Error::NotFound { what: what.clone() };
        self.readers
            .run(&what, move |connection| {
                let content: Option<Vec<u8>> = connection
                    .prepare_cached("SELECT data FROM blobs WHERE container = ?1 AND name = ?2")?
                    .query_row([&container, &name], |row| row.get(0))
                    .optional()?;
                let Some(content) = content else {
                    return Ok(Err(missing));
                };
                let lease = find(connection, &container, &name)?;
                let held = lease.is_some_and(|lease| lease.expires_at > now);
                Ok(Ok(Holder {
                    content: content.into(),
                    held,
                }))
            })
            .await
    }
}
