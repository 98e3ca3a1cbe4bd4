//! Blobs in the database.

use async_trait::async_trait;
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, params};

use super::error::Outcome;
use super::{Room, SqliteStorage, take_etag};
use crate::storage::{
    Blob, BlobInfo, BlobPage, BlobStore, ETag, Error, Expect, IfChanged, Result, check,
};

pub(super) fn missing(container: &str, name: &str) -> Error {
    Error::NotFound {
        what: format!("blob {container}/{name}"),
    }
}

/// Writes a blob's bytes, whatever is there, and leaves its lease alone.
pub(super) fn store(db: &Connection, container: i64, name: &str, data: &[u8]) -> Outcome<ETag> {
    let (number, etag) = take_etag(db)?;
    db.prepare_cached(
        "INSERT INTO blobs (container, name, etag, size, data)
         VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (container, name)
         DO UPDATE SET etag = excluded.etag, size = excluded.size, data = excluded.data",
    )?
    .execute(params![container, name, number, data.len(), data])?;
    Ok(etag)
}

fn version(db: &Connection, container: i64, name: &str) -> Outcome<Option<ETag>> {
    let version = db
        .prepare_cached("SELECT etag FROM blobs WHERE container = ?1 AND name = ?2")?
        .query_row(params![container, name], |row| row.get::<_, i64>(0))
        .optional()?;
    Ok(version.map(|number| ETag(number.to_string())))
}

/// Whether `present` is what the write expects.
fn admit(expect: &Expect, present: Option<&ETag>, what: impl FnOnce() -> String) -> Result<()> {
    match (expect, present) {
        (Expect::Absent, Some(_)) => Err(Error::AlreadyExists { what: what() }),
        (Expect::Version(etag), present) if present != Some(etag) => {
            Err(Error::PreconditionFailed { what: what() })
        }
        (Expect::Absent | Expect::Version(_) | Expect::Anything, _) => Ok(()),
    }
}

#[async_trait]
impl BlobStore for SqliteStorage {
    async fn create_container(&self, container: &str) -> Result<()> {
        check::container(container)?;
        let container = container.to_owned();
        self.write(move |db| Room::Container.create(db, &container))
            .await
    }

    async fn get(&self, container: &str, name: &str) -> Result<Blob> {
        // No blob ever has this version.
        match self
            .get_if_changed(container, name, &ETag(String::new()))
            .await?
        {
            IfChanged::Changed(blob) => Ok(blob),
            IfChanged::Unchanged => Err(missing(container, name)),
        }
    }

    async fn get_if_changed(&self, container: &str, name: &str, etag: &ETag) -> Result<IfChanged> {
        let (container, name, known) = (container.to_owned(), name.to_owned(), etag.clone());
        self.read(move |db| {
            let id = Room::Container.find(db, &container)?;
            db.prepare_cached("SELECT etag, data FROM blobs WHERE container = ?1 AND name = ?2")?
                .query_row(params![id, name], |row| {
                    let etag = ETag(row.get::<_, i64>(0)?.to_string());
                    if etag == known {
                        return Ok(IfChanged::Unchanged);
                    }
                    let data = Bytes::from(row.get::<_, Vec<u8>>(1)?);
                    Ok(IfChanged::Changed(Blob { data, etag }))
                })
                .optional()?
                .ok_or_else(|| missing(&container, &name).into())
        })
        .await
    }

    async fn put(&self, container: &str, name: &str, data: Bytes, expect: Expect) -> Result<ETag> {
        check::blob(name)?;
        check::blob_size(name, data.len())?;
        let (container, name) = (container.to_owned(), name.to_owned());
        self.write(move |db| {
            let id = Room::Container.find(db, &container)?;
            let present = version(db, id, &name)?;
            admit(&expect, present.as_ref(), || {
                format!("blob {container}/{name}")
            })?;
            store(db, id, &name, &data)
        })
        .await
    }

    async fn delete(&self, container: &str, name: &str) -> Result<()> {
        let (container, name) = (container.to_owned(), name.to_owned());
        self.write(move |db| {
            let id = Room::Container.find(db, &container)?;
            let deleted = db
                .prepare_cached("DELETE FROM blobs WHERE container = ?1 AND name = ?2")?
                .execute(params![id, name])?;
            if deleted == 0 {
                return Err(missing(&container, &name).into());
            }
            Ok(())
        })
        .await
    }

    async fn list(
        &self,
        container: &str,
        prefix: &str,
        page: Option<&str>,
        limit: usize,
    ) -> Result<BlobPage> {
        check::page(limit)?;
        let (container, prefix) = (container.to_owned(), prefix.to_owned());
        // A page's token is the last name of the page before.
        let after = page.map(str::to_owned);
        self.read(move |db| {
            let id = Room::Container.find(db, &container)?;
            list(db, id, &prefix, after.as_deref().unwrap_or(""), limit)
        })
        .await
    }
}

/// The names after `after` that start with `prefix`. No name is empty, so all come after "".
fn list(
    db: &Connection,
    container: i64,
    prefix: &str,
    after: &str,
    limit: usize,
) -> Outcome<BlobPage> {
    let mut statement = db.prepare_cached(
        "SELECT name, size FROM blobs
         WHERE container = ?1 AND name > ?2 AND name >= ?3 ORDER BY name LIMIT ?4",
    )?;
    let found = statement.query_map(params![container, after, prefix, limit + 1], |row| {
        Ok(BlobInfo {
            name: row.get(0)?,
            size: row.get(1)?,
        })
    })?;
    let mut page = BlobPage::default();
    for blob in found {
        let blob = blob?;
        if !blob.name.starts_with(prefix) {
            break;
        }
        if page.blobs.len() == limit {
            page.next = page.blobs.last().map(|last| last.name.clone());
            break;
        }
        page.blobs.push(blob);
    }
    Ok(page)
}
