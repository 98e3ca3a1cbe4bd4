//! Leases in the database: each is a property of its blob.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, params};

use super::blob::{missing, store};
use super::error::Outcome;
use super::{Room, SqliteStorage};
use crate::clock::Timestamp;
use crate::storage::{Error, Holder, LeaseId, LeaseStore, Result, check};

struct Lease {
    /// The id of who took it last; none if it was released or broken, or never taken.
    id: Option<String>,
    until: i64,
    micros: i64,
}

impl Lease {
    fn held(&self, now: Timestamp) -> bool {
        self.id.is_some() && self.until > now.as_micros()
    }
}

fn read(db: &Connection, container: i64, name: &str) -> Outcome<Option<Lease>> {
    let lease = db
        .prepare_cached(
            "SELECT lease_id, coalesce(lease_until, 0), coalesce(lease_micros, 0)
             FROM blobs WHERE container = ?1 AND name = ?2",
        )?
        .query_row(params![container, name], |row| {
            Ok(Lease {
                id: row.get(0)?,
                until: row.get(1)?,
                micros: row.get(2)?,
            })
        })
        .optional()?;
    Ok(lease)
}

fn set(db: &Connection, container: i64, name: &str, lease: &Lease) -> Outcome<()> {
    db.prepare_cached(
        "UPDATE blobs SET lease_id = ?3, lease_until = ?4, lease_micros = ?5
         WHERE container = ?1 AND name = ?2",
    )?
    .execute(params![
        container,
        name,
        lease.id,
        lease.until,
        lease.micros
    ])?;
    Ok(())
}

/// Ends a lease: anyone's, or only the one of `id`.
fn end(db: &Connection, container: i64, name: &str, id: Option<&str>) -> Outcome<()> {
    db.prepare_cached(
        "UPDATE blobs SET lease_id = NULL
         WHERE container = ?1 AND name = ?2 AND (?3 IS NULL OR lease_id = ?3)",
    )?
    .execute(params![container, name, id])?;
    Ok(())
}

fn held_by_another(container: &str, name: &str) -> Error {
    Error::LeaseHeld {
        what: format!("{container}/{name}"),
    }
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
        check::blob(name)?;
        check::blob_size(name, content.len())?;
        check::lease(duration)?;
        let now = self.clock.now();
        let (container, name, id) = (container.to_owned(), name.to_owned(), id.0.clone());
        let until = now.plus(duration).as_micros();
        self.write(move |db| {
            let room = Room::Container.find(db, &container)?;
            let present = read(db, room, &name)?;
            let other = present.filter(|lease| lease.held(now) && lease.id.as_ref() != Some(&id));
            if other.is_some() {
                return Err(held_by_another(&container, &name).into());
            }
            store(db, room, &name, &content)?;
            let lease = Lease {
                id: Some(id.clone()),
                until,
                micros: until - now.as_micros(),
            };
            set(db, room, &name, &lease)
        })
        .await
    }

    async fn renew(&self, container: &str, name: &str, id: &LeaseId) -> Result<()> {
        let now = self.clock.now().as_micros();
        let (container, name, id) = (container.to_owned(), name.to_owned(), id.0.clone());
        self.write(move |db| {
            let room = Room::Container.find(db, &container)?;
            let Some(mut lease) = read(db, room, &name)? else {
                return Err(missing(&container, &name).into());
            };
            if lease.id.as_ref() != Some(&id) {
                return Err(held_by_another(&container, &name).into());
            }
            lease.until = now.saturating_add(lease.micros);
            set(db, room, &name, &lease)
        })
        .await
    }

    async fn release(&self, container: &str, name: &str, id: &LeaseId) -> Result<()> {
        let (container, name, id) = (container.to_owned(), name.to_owned(), id.0.clone());
        self.write(move |db| {
            let room = Room::Container.find(db, &container)?;
            end(db, room, &name, Some(&id))
        })
        .await
    }

    async fn break_lease(&self, container: &str, name: &str) -> Result<()> {
        let (container, name) = (container.to_owned(), name.to_owned());
        self.write(move |db| {
            let room = Room::Container.find(db, &container)?;
            end(db, room, &name, None)
        })
        .await
    }

    async fn holder(&self, container: &str, name: &str) -> Result<Holder> {
        let now = self.clock.now();
        let (container, name) = (container.to_owned(), name.to_owned());
        self.read(move |db| {
            let room = Room::Container.find(db, &container)?;
            db.prepare_cached(
                "SELECT data, lease_id IS NOT NULL AND lease_until > ?3
                 FROM blobs WHERE container = ?1 AND name = ?2",
            )?
            .query_row(params![room, name, now.as_micros()], |row| {
                Ok(Holder {
                    content: Bytes::from(row.get::<_, Vec<u8>>(0)?),
                    held: row.get(1)?,
                })
            })
            .optional()?
            .ok_or_else(|| missing(&container, &name).into())
        })
        .await
    }
}
