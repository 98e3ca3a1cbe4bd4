//! Tables.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;

use async_trait::async_trait;

use super::{MemoryStorage, State};
use crate::limits::PAGE_MAX;
use crate::storage::{
    Compare, ETag, Entity, EntityKey, EntityPage, Error, Filter, Operator, Properties, Result,
    TableStore, Value,
};

type Table = BTreeMap<EntityKey, (ETag, Properties)>;

fn missing(table: &str, key: &EntityKey) -> Error {
    Error::NotFound {
        what: what(table, key),
    }
}

fn what(table: &str, key: &EntityKey) -> String {
    format!("row {}/{} of table {table}", key.partition, key.row)
}

impl State {
    fn table(&mut self, table: &str) -> Result<&mut Table> {
        let missing = || Error::NotFound {
            what: format!("table {table}"),
        };
        self.tables.get_mut(table).ok_or_else(missing)
    }

    fn write(&mut self, table: &str, key: &EntityKey, properties: Properties) -> Result<ETag> {
        let etag = self.next_etag();
        self.table(table)?
            .insert(key.clone(), (etag.clone(), properties));
        Ok(etag)
    }
}

#[async_trait]
impl TableStore for MemoryStorage {
    async fn create_table(&self, table: &str) -> Result<()> {
        self.state().tables.entry(table.to_owned()).or_default();
        Ok(())
    }

    async fn insert(&self, table: &str, key: &EntityKey, properties: Properties) -> Result<ETag> {
        let mut state = self.state();
        if state.table(table)?.contains_key(key) {
            return Err(Error::AlreadyExists {
                what: what(table, key),
            });
        }
        state.write(table, key, properties)
    }

    async fn merge(
        &self,
        table: &str,
        key: &EntityKey,
        properties: Properties,
        etag: Option<&ETag>,
    ) -> Result<ETag> {
        let mut state = self.state();
        let found = state.table(table)?.get(key);
        let (version, mut merged) = found.ok_or_else(|| missing(table, key))?.clone();
        if etag.is_some_and(|expected| *expected != version) {
            return Err(Error::PreconditionFailed {
                what: what(table, key),
            });
        }
        merged.extend(properties);
        state.write(table, key, merged)
    }

    async fn upsert(&self, table: &str, key: &EntityKey, properties: Properties) -> Result<ETag> {
        self.state().write(table, key, properties)
    }

    async fn get(&self, table: &str, key: &EntityKey) -> Result<Entity> {
        let mut state = self.state();
        let found = state.table(table)?.get(key);
        let (etag, properties) = found.ok_or_else(|| missing(table, key))?.clone();
        Ok(Entity {
            key: key.clone(),
            properties,
            etag,
        })
    }

    async fn delete(&self, table: &str, key: &EntityKey) -> Result<()> {
        let removed = self.state().table(table)?.remove(key);
        removed.map(drop).ok_or_else(|| missing(table, key))
    }

    async fn query(
        &self,
        table: &str,
        filter: &Filter,
        after: Option<&EntityKey>,
        limit: usize,
    ) -> Result<EntityPage> {
        let limit = limit.clamp(1, PAGE_MAX);
        let mut state = self.state();
        let table = state.table(table)?;
        let from = after.map_or(Bound::Unbounded, |key| Bound::Excluded(key.clone()));
        let mut matching = table
            .range((from, Bound::Unbounded))
            .filter(|(key, (_, properties))| matches(filter, key, properties))
            .map(|(key, (etag, properties))| Entity {
                key: key.clone(),
                properties: properties.clone(),
                etag: etag.clone(),
            });
        let entities: Vec<_> = matching.by_ref().take(limit).collect();
        let more = matching.next().is_some();
        let next = entities
            .last()
            .filter(|_| more)
            .map(|last| last.key.clone());
        Ok(EntityPage { entities, next })
    }
}

fn matches(filter: &Filter, key: &EntityKey, properties: &Properties) -> bool {
    match filter {
        Filter::Everything => true,
        Filter::And(parts) => parts.iter().all(|part| matches(part, key, properties)),
        Filter::Or(parts) => parts.iter().any(|part| matches(part, key, properties)),
        Filter::Compare(compare) => compares(compare, key, properties),
    }
}

fn compares(compare: &Compare, key: &EntityKey, properties: &Properties) -> bool {
    let ordering = match (compare.property.as_str(), &compare.value) {
        ("PartitionKey", Value::String(text)) => Some(key.partition.cmp(text)),
        ("RowKey", Value::String(text)) => Some(key.row.cmp(text)),
        (name, value) => properties.get(name).and_then(|found| order(found, value)),
    };
    ordering.is_some_and(|ordering| match compare.operator {
        Operator::Eq => ordering == Ordering::Equal,
        Operator::Ne => ordering != Ordering::Equal,
        Operator::Lt => ordering == Ordering::Less,
        Operator::Le => ordering != Ordering::Greater,
        Operator::Gt => ordering == Ordering::Greater,
        Operator::Ge => ordering != Ordering::Less,
    })
}

/// How two values of one type compare; values of different types do not.
fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (Value::Int32(left), Value::Int32(right)) => Some(left.cmp(right)),
        (Value::DateTime(left), Value::DateTime(right)) => Some(left.cmp(right)),
        _ => None,
    }
}
