//! Blobs.

use async_trait::async_trait;
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension as _};

use super::SqliteStorage;
use super::writer::Sync;
use crate::limits::PAGE_MAX;
use crate::storage::{Blob, BlobInfo, BlobPage, BlobStore, ETag, Error, Expect, IfChanged, Result};

/// Bytes of one blob; the database allows a little less than 1 GiB.
const BLOB_BYTES_MAX: usize = 900 * 1024 * 1024;

fn what(container: &str, name: &str) -> String {
    format!("blob {container}/{name}")
}

pub(super) fn etag(number: i64) -> ETag {
    ETag(number.to_string())
}

fn version(connection: &Connection, container: &str, name: &str) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT etag FROM blobs WHERE container = ?1 AND name = ?2")?
        .query_row([container, name], |row| row.get(0))
        .optional()
}

fn has_container(connection: &Connection, container: &str) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM containers WHERE name = ?1")?
        .exists([container])
}

fn read(connection: &Connection, container: &str, name: &str) -> rusqlite::Result<Option<Blob>> {
    connection
        .prepare_cached("SELECT data, etag FROM blobs WHERE container = ?1 AND name = ?2")?
        .query_row([container, name], |row| {
            Ok(Blob {
                data: row.get::<_, Vec<u8>>(0)?.into(),
                etag: etag(row.get(1)?),
            })
        })
        .optional()
}

/// Writes a blob, whatever is there, and gives it the version `number`.
pub(super) fn write(
    connection: &Connection,
    container: &str,
    name: &str,
    data: &[u8],
    number: i64,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO blobs (container, name, etag, data) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (container, name) DO UPDATE SET etag = ?3, data = ?4",
        )?
        .execute((container, name, number, data))?;
    Ok(())
}

#[async_trait]
impl BlobStore for SqliteStorage {
    async fn create_container(&self, container: &str) -> Result<()> {
        let name = container.to_owned();
        self.writer
            .run(Sync::Durable, container, move |group| {
                group
                    .connection
                    .prepare_cached("INSERT OR IGNORE INTO containers (name) VALUES (?1)")?
                    .execute([name])?;
                Ok(Ok(()))
            })
            .await
    }

    async fn get(&self, container: &str, name: &str) -> Result<Blob> {
        let what = what(container, name);
        let (container, name) = (container.to_owned(), name.to_owned());
        let missing = Error::NotFound { what: what.clone() };
        self.readers
            .run(&what, move |connection| {
                Ok(read(connection, &container, &name)?.ok_or(missing))
            })
            .await
    }

    async fn get_if_changed(&self, container: &str, name: &str, seen: &ETag) -> Result<IfChanged> {
        let what = what(container, name);
        let (container, name, seen) = (container.to_owned(), name.to_owned(), seen.clone());
        let missing = Error::NotFound { what: what.clone() };
        self.readers
            .run(&what, move |connection| {
                match version(connection, &container, &name)? {
                    None => Ok(Err(missing)),
                    Some(number) if etag(number) == seen => Ok(Ok(IfChanged::Unchanged)),
                    Some(_) => Ok(read(connection, &container, &name)?
                        .map(IfChanged::Changed)
                        .ok_or(missing)),
                }
            })
            .await
    }

    async fn put(&self, container: &str, name: &str, data: Bytes, expect: Expect) -> Result<ETag> {
        let what = what(container, name);
        if data.len() > BLOB_BYTES_MAX {
            return Err(Error::TooLarge {
                what,
                bytes: data.len(),
                limit: BLOB_BYTES_MAX,
            });
        }
        let (container, name, blob) = (container.to_owned(), name.to_owned(), what.clone());
        self.writer
            .run(Sync::Durable, &what, move |group| {
                let connection = group.connection;
                if !has_container(connection, &container)? {
                    let what = format!("container {container}");
                    return Ok(Err(Error::NotFound { what }));
                }
                let found = version(connection, &container, &name)?.map(etag);
                match (expect, found) {
                    (Expect::Absent, Some(_)) => {
                        return Ok(Err(Error::AlreadyExists { what: blob }));
                    }
                    (Expect::Version(expected), found) if found.as_ref() != Some(&expected) => {
                        return Ok(Err(Error::PreconditionFailed { what: blob }));
                    }
                    _ => {}
                }
                let number = group.next_number();
                write(connection, &container, &name, &data, number)?;
                Ok(Ok(etag(number)))
            })
            .await
    }

    async fn delete(&self, container: &str, name: &str) -> Result<()> {
        let what = what(container, name);
        let (container, name) = (container.to_owned(), name.to_owned());
        let missing = Error::NotFound { what: what.clone() };
        self.writer
            .run(Sync::Durable, &what, move |group| {
                let deleted = group
                    .connection
                    .prepare_cached("DELETE FROM blobs WHERE container = ?1 AND name = ?2")?
                    .execute([container, name])?;
                Ok(if deleted == 0 { Err(missing) } else { Ok(()) })
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
        let limit = limit.clamp(1, PAGE_MAX);
        let what = format!("container {container}");
        let (container, prefix) = (container.to_owned(), prefix.to_owned());
        let after = page.unwrap_or_default().to_owned();
        let missing = Error::NotFound { what: what.clone() };
        self.readers
            .run(&what, move |connection| {
                if !has_container(connection, &container)? {
                    return Ok(Err(missing));
                }
                let mut statement = connection.prepare_cached(
                    "SELECT name, length(data) FROM blobs
                     WHERE container = ?1 AND name >= ?2 AND name > ?3 ORDER BY name",
                )?;
                let mut rows = statement.query([&container, &prefix, &after])?;
                let mut page = BlobPage::default();
                while let Some(row) = rows.next()? {
                    let name: String = row.get(0)?;
                    if !name.starts_with(&prefix) {
                        break;
                    }
                    if page.blobs.len() == limit {
                        page.next = page.blobs.last().map(|last: &BlobInfo| last.name.clone());
                        break;
                    }
                    let size: i64 = row.get(1)?;
                    page.blobs.push(BlobInfo {
                        name,
                        size: u64::try_from(size).unwrap_or(0),
                    });
                }
                Ok(Ok(page))
            })
            .await
    }
}
