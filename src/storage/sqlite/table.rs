//! Tables in the database.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::error::{Failure, Outcome};
use super::properties::{decode, encode};
use super::scan::Scan;
use super::{Room, SqliteStorage, take_etag};
use crate::storage::{
    ETag, Entity, EntityKey, EntityPage, Error, Filter, Properties, Result, TableStore, check,
};

fn name(table: &str, key: &EntityKey) -> String {
    format!("row {}/{} of table {table}", key.partition, key.row)
}

fn missing(table: &str, key: &EntityKey) -> Failure {
    Failure::Refused(Error::NotFound {
        what: name(table, key),
    })
}

pub(super) fn properties(row: &Row<'_>, column: usize) -> rusqlite::Result<Properties> {
    decode(row.get_ref(column)?.as_str()?)
}

fn find(db: &Connection, table: i64, key: &EntityKey) -> Outcome<Option<Entity>> {
    let found = db
        .prepare_cached(
            "SELECT etag, properties FROM entities
             WHERE table_id = ?1 AND partition_key = ?2 AND row_key = ?3",
        )?
        .query_row(params![table, key.partition, key.row], |row| {
            Ok(Entity {
                key: key.clone(),
                properties: properties(row, 1)?,
                etag: ETag(row.get::<_, i64>(0)?.to_string()),
            })
        })
        .optional()?;
    Ok(found)
}

/// Writes a row whole, whatever is there.
fn store(db: &Connection, table: i64, key: &EntityKey, properties: &Properties) -> Outcome<ETag> {
    let text = encode(properties)?;
    let (number, etag) = take_etag(db)?;
    db.prepare_cached(
        "INSERT INTO entities (table_id, partition_key, row_key, etag, properties)
         VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (table_id, partition_key, row_key)
         DO UPDATE SET etag = excluded.etag, properties = excluded.properties",
    )?
    .execute(params![table, key.partition, key.row, number, text])?;
    Ok(etag)
}

#[async_trait]
impl TableStore for SqliteStorage {
    async fn create_table(&self, table: &str) -> Result<()> {
        check::table(table)?;
        let table = table.to_owned();
        self.write(move |db| Room::Table.create(db, &table)).await
    }

    async fn insert(&self, table: &str, key: &EntityKey, properties: Properties) -> Result<ETag> {
        check::key(key)?;
        check::properties(&properties)?;
        let (table, key) = (table.to_owned(), key.clone());
        self.write(move |db| {
            let room = Room::Table.find(db, &table)?;
            if find(db, room, &key)?.is_some() {
                let what = name(&table, &key);
                return Err(Error::AlreadyExists { what }.into());
            }
            store(db, room, &key, &properties)
        })
        .await
    }

    async fn merge(
        &self,
        table: &str,
        key: &EntityKey,
        properties: Properties,
        etag: Option<&ETag>,
    ) -> Result<ETag> {
        check::properties(&properties)?;
        let (table, key, etag) = (table.to_owned(), key.clone(), etag.cloned());
        self.write(move |db| {
            let room = Room::Table.find(db, &table)?;
            let Some(mut entity) = find(db, room, &key)? else {
                return Err(missing(&table, &key));
            };
            if etag.as_ref().is_some_and(|etag| *etag != entity.etag) {
                let what = name(&table, &key);
                return Err(Error::PreconditionFailed { what }.into());
            }
            entity.properties.extend(properties.clone());
            check::properties(&entity.properties)?;
            store(db, room, &key, &entity.properties)
        })
        .await
    }

    async fn upsert(&self, table: &str, key: &EntityKey, properties: Properties) -> Result<ETag> {
        check::key(key)?;
        check::properties(&properties)?;
        let (table, key) = (table.to_owned(), key.clone());
        self.write(move |db| {
            let room = Room::Table.find(db, &table)?;
            store(db, room, &key, &properties)
        })
        .await
    }

    async fn get(&self, table: &str, key: &EntityKey) -> Result<Entity> {
        let (table, key) = (table.to_owned(), key.clone());
        self.read(move |db| {
            let room = Room::Table.find(db, &table)?;
            find(db, room, &key)?.ok_or_else(|| missing(&table, &key))
        })
        .await
    }

    async fn delete(&self, table: &str, key: &EntityKey) -> Result<()> {
        let (table, key) = (table.to_owned(), key.clone());
        self.write(move |db| {
            let room = Room::Table.find(db, &table)?;
            let deleted = db
                .prepare_cached(
                    "DELETE FROM entities
                     WHERE table_id = ?1 AND partition_key = ?2 AND row_key = ?3",
                )?
                .execute(params![room, key.partition, key.row])?;
            if deleted == 0 {
                return Err(missing(&table, &key));
            }
            Ok(())
        })
        .await
    }

    async fn query(
        &self,
        table: &str,
        filter: &Filter,
        after: Option<&EntityKey>,
        limit: usize,
    ) -> Result<EntityPage> {
        check::page(limit)?;
        let (table, filter, after) = (table.to_owned(), filter.clone(), after.cloned());
        self.read(move |db| {
            // One snapshot for the whole page.
            let tx = db.unchecked_transaction()?;
            let table = Room::Table.find(&tx, &table)?;
            let mut scan = Scan::new(&tx, table, &filter, limit);
            let more = scan.run(after.as_ref())?;
            let entities = scan.entities;
            let next = entities.last().filter(|_| more).map(|e| e.key.clone());
            Ok(EntityPage { entities, next })
        })
        .await
    }
}
