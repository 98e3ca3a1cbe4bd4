//! Tables in memory.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;

use async_trait::async_trait;

use super::{MemoryStorage, Rooms};
use crate::storage::{
    ETag, Entity, EntityKey, EntityPage, Error, Filter, Properties, Result, TableStore, check,
};

pub(super) struct StoredRow {
    properties: Properties,
    etag: ETag,
}

type Rows = BTreeMap<EntityKey, StoredRow>;

impl Rooms {
    fn table(&mut self, table: &str) -> Result<&mut Rows> {
        self.tables.get_mut(table).ok_or_else(|| Error::NotFound {
            what: format!("table {table}"),
        })
    }
}

fn name(table: &str, key: &EntityKey) -> String {
    format!("row {}/{} of table {table}", key.partition, key.row)
}

fn missing(table: &str, key: &EntityKey) -> Error {
    Error::NotFound {
        what: name(table, key),
    }
}

#[async_trait]
impl TableStore for MemoryStorage {
    async fn create_table(&self, table: &str) -> Result<()> {
        check::table(table)?;
        self.rooms().tables.entry(table.to_owned()).or_default();
        Ok(())
    }

    async fn insert(&self, table: &str, key: &EntityKey, properties: Properties) -> Result<ETag> {
        check::key(key)?;
        check::properties(&properties)?;
        let mut rooms = self.rooms();
        let etag = rooms.next_etag();
        match rooms.table(table)?.entry(key.clone()) {
            Entry::Occupied(_) => Err(Error::AlreadyExists {
                what: name(table, key),
            }),
            Entry::Vacant(place) => {
                let etag = place.insert(StoredRow { properties, etag }).etag.clone();
                Ok(etag)
            }
        }
    }

    async fn merge(
        &self,
        table: &str,
        key: &EntityKey,
        properties: Properties,
        etag: Option<&ETag>,
    ) -> Result<ETag> {
        check::properties(&properties)?;
        let mut rooms = self.rooms();
        let next = rooms.next_etag();
        let row = rooms
            .table(table)?
            .get_mut(key)
            .ok_or_else(|| missing(table, key))?;
        if etag.is_some_and(|etag| *etag != row.etag) {
            return Err(Error::PreconditionFailed {
                what: name(table, key),
            });
        }
        let mut merged = row.properties.clone();
        merged.extend(properties);
        check::properties(&merged)?;
        row.properties = merged;
        row.etag = next.clone();
        Ok(next)
    }

    async fn upsert(&self, table: &str, key: &EntityKey, properties: Properties) -> Result<ETag> {
        check::key(key)?;
        check::properties(&properties)?;
        let mut rooms = self.rooms();
        let etag = rooms.next_etag();
        let row = StoredRow {
            properties,
            etag: etag.clone(),
        };
        rooms.table(table)?.insert(key.clone(), row);
        Ok(etag)
    }

    async fn get(&self, table: &str, key: &EntityKey) -> Result<Entity> {
        let mut rooms = self.rooms();
        let row = rooms
            .table(table)?
            .get(key)
            .ok_or_else(|| missing(table, key))?;
        Ok(Entity {
            key: key.clone(),
            properties: row.properties.clone(),
            etag: row.etag.clone(),
        })
    }

    async fn delete(&self, table: &str, key: &EntityKey) -> Result<()> {
        let removed = self.rooms().table(table)?.remove(key);
        removed.map(|_| ()).ok_or_else(|| missing(table, key))
    }

    async fn query(
        &self,
        table: &str,
        filter: &Filter,
        after: Option<&EntityKey>,
        limit: usize,
    ) -> Result<EntityPage> {
        check::page(limit)?;
        let mut rooms = self.rooms();
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut entities: Vec<Entity> = rooms
            .table(table)?
            .range::<EntityKey, _>((start, Bound::Unbounded))
            .filter(|(key, row)| filter.matches(key, &row.properties))
            .take(limit + 1)
            .map(|(key, row)| Entity {
                key: key.clone(),
                properties: row.properties.clone(),
                etag: row.etag.clone(),
            })
            .collect();
        let more = entities.len() > limit;
        entities.truncate(limit);
        let next = entities
            .last()
            .filter(|_| more)
            .map(|last| last.key.clone());
        Ok(EntityPage { entities, next })
    }
}
