//! Tables.

use async_trait::async_trait;
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OptionalExtension as _, params_from_iter};
use serde_json::{Map, Value as Json, json};

use super::SqliteStorage;
use super::blob::etag;
use super::writer::{Group, Sync};
use crate::clock::Timestamp;
use crate::limits::PAGE_MAX;
use crate::storage::{
    Compare, ETag, Entity, EntityKey, EntityPage, Error, Filter, Operator, Properties, Result,
    TableStore, Value,
};

fn what(table: &str, key: &EntityKey) -> String {
    format!("row {}/{} of table {table}", key.partition, key.row)
}

/// Properties as they are stored. A moment is an object, so that it is no other type's value.
fn to_json(properties: &Properties) -> String {
    let members = properties.iter().map(|(name, value)| {
        let json = match value {
            Value::String(text) => Json::from(text.as_str()),
            Value::Bool(flag) => Json::from(*flag),
            Value::Int32(number) => Json::from(*number),
            Value::DateTime(time) => json!({ "t": time.as_micros() }),
        };
        (name.clone(), json)
    });
    Json::Object(members.collect()).to_string()
}

fn from_json(text: &str) -> Option<Properties> {
    let members: Map<String, Json> = serde_json::from_str(text).ok()?;
    let properties = members.into_iter().filter_map(|(name, json)| {
        let value = match json {
            Json::String(text) => Value::String(text),
            Json::Bool(flag) => Value::Bool(flag),
            Json::Number(number) => Value::Int32(i32::try_from(number.as_i64()?).ok()?),
            Json::Object(object) => {
                Value::DateTime(Timestamp::from_micros(object.get("t")?.as_i64()?))
            }
            Json::Null | Json::Array(_) => return None,
        };
        Some((name, value))
    });
    Some(properties.collect())
}

fn has_table(connection: &Connection, table: &str) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM tables WHERE name = ?1")?
        .exists([table])
}

fn find(
    connection: &Connection,
    table: &str,
    key: &EntityKey,
) -> rusqlite::Result<Option<Result<Entity>>> {
    connection
        .prepare_cached(
            "SELECT part, row, etag, properties FROM entities
             WHERE tbl = ?1 AND part = ?2 AND row = ?3",
        )?
        .query_row((table, &key.partition, &key.row), read)
        .optional()
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Result<Entity>> {
    let key = EntityKey {
        partition: row.get(0)?,
        row: row.get(1)?,
    };
    let (number, text): (i64, String) = (row.get(2)?, row.get(3)?);
    Ok(match from_json(&text) {
        Some(properties) => Ok(Entity {
            key,
            properties,
            etag: etag(number),
        }),
        None => Err(Error::Corrupt {
            what: format!("row {}/{}", key.partition, key.row),
            message: "its properties are no JSON object".to_owned(),
        }),
    })
}

fn write(
    group: &Group<'_>,
    table: &str,
    key: &EntityKey,
    properties: &Properties,
) -> rusqlite::Result<ETag> {
    let number = group.next_number();
    group
        .connection
        .prepare_cached(
            "INSERT OR REPLACE INTO entities (tbl, part, row, etag, properties)
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute((table, &key.partition, &key.row, number, to_json(properties)))?;
    Ok(etag(number))
}

impl SqliteStorage {
    /// Runs a job on a row of an existing table.
    async fn on_row<T, F>(&self, table: &str, key: &EntityKey, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Group<'_>, &str, &EntityKey) -> rusqlite::Result<Result<T>> + Send + 'static,
    {
        let (table, key) = (table.to_owned(), key.clone());
        self.writer
            .run(Sync::Durable, &what(&table, &key), move |group| {
                if !has_table(group.connection, &table)? {
                    let what = format!("table {table}");
                    return Ok(Err(Error::NotFound { what }));
                }
                work(group, &table, &key)
            })
            .await
    }
}

#[async_trait]
impl TableStore for SqliteStorage {
    async fn create_table(&self, table: &str) -> Result<()> {
        let name = table.to_owned();
        self.writer
            .run(Sync::Durable, table, move |group| {
                group
                    .connection
                    .prepare_cached("INSERT OR IGNORE INTO tables (name) VALUES (?1)")?
                    .execute([name])?;
                Ok(Ok(()))
            })
            .await
    }

    async fn insert(&self, table: &str, key: &EntityKey, properties: Properties) -> Result<ETag> {
        self.on_row(table, key, move |group, table, key| {
            match find(group.connection, table, key)? {
                Some(_) => Ok(Err(Error::AlreadyExists {
                    what: what(table, key),
                })),
                None => write(group, table, key, &properties).map(Ok),
            }
        })
        .await
    }

    async fn merge(
        &self,
        table: &str,
        key: &EntityKey,
        properties: Properties,
        expected: Option<&ETag>,
    ) -> Result<ETag> {
        let expected = expected.cloned();
        self.on_row(table, key, move |group, table, key| {
            let mut entity = match find(group.connection, table, key)? {
                Some(Ok(entity)) => entity,
                Some(Err(error)) => return Ok(Err(error)),
                None => {
                    return Ok(Err(Error::NotFound {
                        what: what(table, key),
                    }));
                }
            };
            if expected.is_some_and(|expected| expected != entity.etag) {
                return Ok(Err(Error::PreconditionFailed {
                    what: what(table, key),
                }));
            }
            entity.properties.extend(properties);
            write(group, table, key, &entity.properties).map(Ok)
        })
        .await
    }

    async fn upsert(&self, table: &str, key: &EntityKey, properties: Properties) -> Result<ETag> {
        self.on_row(table, key, move |group, table, key| {
            write(group, table, key, &properties).map(Ok)
        })
        .await
    }

    async fn get(&self, table: &str, key: &EntityKey) -> Result<Entity> {
        let what = what(table, key);
        let (table, key) = (table.to_owned(), key.clone());
        let missing = Error::NotFound { what: what.clone() };
        self.readers
            .run(&what, move |connection| {
                Ok(find(connection, &table, &key)?.unwrap_or(Err(missing)))
            })
            .await
    }

    async fn delete(&self, table: &str, key: &EntityKey) -> Result<()> {
        self.on_row(table, key, |group, table, key| {
            let deleted = group
                .connection
                .prepare_cached("DELETE FROM entities WHERE tbl = ?1 AND part = ?2 AND row = ?3")?
                .execute((table, &key.partition, &key.row))?;
            Ok(if deleted == 0 {
                Err(Error::NotFound {
                    what: what(table, key),
                })
            } else {
                Ok(())
            })
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
        let limit = limit.clamp(1, PAGE_MAX);
        let mut query = Query::new(table);
        query.and_filter(filter);
        if let Some(after) = after {
            query.and_after(after);
        }
        let (what, table) = (format!("table {table}"), table.to_owned());
        let missing = Error::NotFound { what: what.clone() };
        self.readers
            .run(&what, move |connection| {
                if !has_table(connection, &table)? {
                    return Ok(Err(missing));
                }
                query.run(connection, limit)
            })
            .await
    }
}

/// A query under construction.
struct Query {
    condition: String,
    values: Vec<Sql>,
}

impl Query {
    fn new(table: &str) -> Self {
        Self {
            condition: "tbl = ?".to_owned(),
            values: vec![Sql::Text(table.to_owned())],
        }
    }

    fn and_filter(&mut self, filter: &Filter) {
        self.condition += " AND ";
        self.filter(filter);
    }

    fn and_after(&mut self, key: &EntityKey) {
        self.condition += " AND (part, row) > (?, ?)";
        self.values
            .extend([key.partition.clone(), key.row.clone()].map(Sql::Text));
    }

    fn filter(&mut self, filter: &Filter) {
        match filter {
            Filter::Everything => self.condition += "TRUE",
            Filter::Compare(compare) => self.compare(compare),
            Filter::And(parts) => self.join(parts, " AND ", "TRUE"),
            Filter::Or(parts) => self.join(parts, " OR ", "FALSE"),
        }
    }

    fn join(&mut self, parts: &[Filter], with: &str, empty: &str) {
        if parts.is_empty() {
            self.condition += empty;
            return;
        }
        self.condition += "(";
        for (position, part) in parts.iter().enumerate() {
            if position > 0 {
                self.condition += with;
            }
            self.filter(part);
        }
        self.condition += ")";
    }

    /// A missing property is NULL, which compares as neither true nor false; one of another type
    /// is kept out by its JSON type.
    fn compare(&mut self, compare: &Compare) {
        let operator = match compare.operator {
            Operator::Eq => "=",
            Operator::Ne => "<>",
            Operator::Lt => "<",
            Operator::Le => "<=",
            Operator::Gt => ">",
            Operator::Ge => ">=",
        };
        let column = match compare.property.as_str() {
            "PartitionKey" => Some("part"),
            "RowKey" => Some("row"),
            _ => None,
        };
        if let (Some(column), Value::String(text)) = (column, &compare.value) {
            self.condition += &format!("{column} {operator} ?");
            self.values.push(Sql::Text(text.clone()));
            return;
        }
        let path = format!("$.\"{}\"", compare.property.replace(['"', '\''], ""));
        let (path, types, value) = match &compare.value {
            Value::String(text) => (path, "('text')", Sql::Text(text.clone())),
            Value::Bool(flag) => (path, "('true', 'false')", Sql::Integer((*flag).into())),
            Value::Int32(number) => (path, "('integer')", Sql::Integer((*number).into())),
            Value::DateTime(time) => (path + ".t", "('integer')", Sql::Integer(time.as_micros())),
        };
        self.condition += &format!(
            "(json_extract(properties, '{path}') {operator} ? \
             AND json_type(properties, '{path}') IN {types})"
        );
        self.values.push(value);
    }

    fn run(
        mut self,
        connection: &Connection,
        limit: usize,
    ) -> rusqlite::Result<Result<EntityPage>> {
        // One more than asked for tells whether there is a next page.
        self.values
            .push(Sql::Integer(i64::try_from(limit + 1).unwrap_or(i64::MAX)));
        let sql = format!(
            "SELECT part, row, etag, properties FROM entities WHERE {} ORDER BY part, row LIMIT ?",
            self.condition
        );
        let mut statement = connection.prepare_cached(&sql)?;
        let rows = statement.query_map(params_from_iter(self.values), read)?;
        let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
        let more = rows.len() > limit;
        let entities = rows.into_iter().take(limit).collect::<Result<Vec<_>>>();
        Ok(entities.map(|entities| {
            let next = entities
                .last()
                .filter(|_| more)
                .map(|last| last.key.clone());
            EntityPage { entities, next }
        }))
    }
}
