//! The table port.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::{ETag, Result};
use crate::clock::Timestamp;

/// A property of a row, with the types the index uses (Edm String, Boolean, Int32, `DateTime`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Text.
    String(String),
    /// True or false.
    Bool(bool),
    /// A 32-bit number.
    Int32(i32),
    /// A moment.
    DateTime(Timestamp),
}

/// Named properties of a row.
pub type Properties = BTreeMap<String, Value>;

/// A row's place: rows sort by partition, then row, in byte order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityKey {
    /// The partition key.
    pub partition: String,
    /// The row key, unique within its partition.
    pub row: String,
}

/// A row as read.
#[derive(Debug, Clone, PartialEq)]
pub struct Entity {
    /// Where it stands.
    pub key: EntityKey,
    /// What it holds. Properties of types the index does not use are left out.
    pub properties: Properties,
    /// Its version.
    pub etag: ETag,
}

/// How a property is compared. A row without the property, or with one of another type, never
/// matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// Equal.
    Eq,
    /// Different.
    Ne,
    /// Less than.
    Lt,
    /// At most.
    Le,
    /// Greater than.
    Gt,
    /// At least.
    Ge,
}

/// One comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compare {
    /// The property; `PartitionKey` and `RowKey` name the keys.
    pub property: String,
    /// The comparison.
    pub operator: Operator,
    /// What it is compared with.
    pub value: Value,
}

/// Which rows a query returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// All rows.
    Everything,
    /// Rows whose property compares so.
    Compare(Compare),
    /// Rows that match all of these.
    And(Vec<Self>),
    /// Rows that match any of these; with none given, no row.
    Or(Vec<Self>),
}

impl Filter {
    /// `property == value`.
    pub fn eq(property: impl Into<String>, value: Value) -> Self {
        Self::compare(property, Operator::Eq, value)
    }

    /// `property operator value`.
    pub fn compare(property: impl Into<String>, operator: Operator, value: Value) -> Self {
        Self::Compare(Compare {
            property: property.into(),
            operator,
            value,
        })
    }
}

/// A page of rows.
#[derive(Debug, Clone, Default)]
pub struct EntityPage {
    /// Rows in ascending order of their keys.
    pub entities: Vec<Entity>,
    /// Hand this to the next call; `None` after the last page. It is a key, not a position: rows
    /// inserted or deleted between two pages never make others appear twice or not at all.
    pub next: Option<EntityKey>,
}

/// Rows with keys and typed properties. Every call on a missing table is `NotFound`.
#[async_trait]
pub trait TableStore: Send + Sync + 'static {
    /// Creates the table; fine if it exists. Survives a crash after `Ok`.
    async fn create_table(&self, table: &str) -> Result<()>;

    /// Adds a row. `AlreadyExists` if the key is taken. Survives a crash after `Ok`.
    async fn insert(&self, table: &str, key: &EntityKey, properties: Properties) -> Result<ETag>;

    /// Writes the given properties of an existing row and leaves the others as they are, whoever
    /// wrote them last. With `etag`, only if the row still has that version
    /// (`PreconditionFailed`). `NotFound` if the row is missing. Survives a crash after `Ok`.
    async fn merge(
        &self,
        table: &str,
        key: &EntityKey,
        properties: Properties,
        etag: Option<&ETag>,
    ) -> Result<ETag>;

    /// Writes a row whole, whether or not it exists, dropping properties not given. Survives a
    /// crash after `Ok`.
    async fn upsert(&self, table: &str, key: &EntityKey, properties: Properties) -> Result<ETag>;

    /// Reads one row. `NotFound` if it is missing.
    async fn get(&self, table: &str, key: &EntityKey) -> Result<Entity>;

    /// Deletes a row. `NotFound` if it is missing.
    async fn delete(&self, table: &str, key: &EntityKey) -> Result<()>;

    /// Up to `limit` (1 to 1,000) matching rows after the key `after`. A page may be short, even
    /// empty, and still have a successor.
    async fn query(
        &self,
        table: &str,
        filter: &Filter,
        after: Option<&EntityKey>,
        limit: usize,
    ) -> Result<EntityPage>;
}
