//! The walk of a query over the rows of a table.

use rusqlite::{Connection, params};

use super::error::Outcome;
use super::table::properties;
use crate::storage::filter::{Bounds, Key};
use crate::storage::{ETag, Entity, EntityKey, Filter, Value};

/// A walk in the order of the keys, one partition after the other, so that bounds on the row key
/// skip the rest of every partition.
pub(super) struct Scan<'a> {
    db: &'a Connection,
    table: i64,
    filter: &'a Filter,
    rows: Bounds<'a>,
    index: Index<'a>,
    limit: usize,
    /// The page as far as it is filled.
    pub(super) entities: Vec<Entity>,
}

/// Which rows the walk visits at all. Each kind has an index that keeps them in the order of
/// their keys; what it visits still has to match the filter.
///
/// The coordinator's sweeps ask every second for pending workflows and for those to be cancelled:
/// a few among perhaps 100,000, which must not be read one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Index<'a> {
    /// All.
    All,
    /// Those with this `workflow_state`.
    State(&'a str),
    /// Those whose `cancel_requested` is true.
    Cancelled,
}

impl<'a> Index<'a> {
    /// The narrowest that visits every row the filter matches.
    fn of(filter: &'a Filter) -> Self {
        match (
            filter.required("cancel_requested"),
            filter.required("workflow_state"),
        ) {
            (Some(Value::Bool(true)), _) => Self::Cancelled,
            // The engine's JSON functions end a text at a zero character.
            (_, Some(Value::String(state))) if !state.contains('\0') => Self::State(state),
            _ => Self::All,
        }
    }

    /// What comes after `FROM`, up to conditions on the keys. The state is parameter 2.
    const fn source(self) -> &'static str {
        match self {
            Self::All => "entities WHERE table_id = ?1 AND ?2 IS NULL",
            Self::State(_) => {
                "entities INDEXED BY entities_by_state
                 WHERE table_id = ?1 AND json_extract(properties, '$.workflow_state') = ?2"
            }
            Self::Cancelled => {
                "entities INDEXED BY entities_cancelled
                 WHERE json_extract(properties, '$.cancel_requested') = 1
                 AND table_id = ?1 AND ?2 IS NULL"
            }
        }
    }

    const fn state(self) -> Option<&'a str> {
        match self {
            Self::State(state) => Some(state),
            Self::All | Self::Cancelled => None,
        }
    }
}

impl<'a> Scan<'a> {
    /// A walk for at most `limit` rows that match.
    pub(super) fn new(db: &'a Connection, table: i64, filter: &'a Filter, limit: usize) -> Self {
        Self {
            db,
            table,
            filter,
            rows: filter.bounds(Key::Row),
            index: Index::of(filter),
            limit,
            entities: Vec::new(),
        }
    }

    /// Fills the page with what comes after `after`; whether there is more.
    pub(super) fn run(&mut self, after: Option<&EntityKey>) -> Outcome<bool> {
        let Bounds { least, greatest } = self.filter.bounds(Key::Partition);
        let mut partition = match after {
            Some(after) if least.is_none_or(|least| after.partition.as_str() >= least) => {
                if self.partition(&after.partition, Some(&after.row))? {
                    return Ok(true);
                }
                self.next_partition(">", &after.partition)?
            }
            Some(_) | None => self.next_partition(">=", least.unwrap_or(""))?,
        };
        while let Some(current) = partition {
            if greatest.is_some_and(|greatest| current.as_str() > greatest) {
                break;
            }
            if self.partition(&current, None)? {
                return Ok(true);
            }
            partition = self.next_partition(">", &current)?;
        }
        Ok(false)
    }

    /// The first partition that compares so with `from`.
    fn next_partition(&self, operator: &str, from: &str) -> Outcome<Option<String>> {
        let sql = format!(
            "SELECT min(partition_key) FROM {} AND partition_key {operator} ?3",
            self.index.source()
        );
        let parameters = params![self.table, self.index.state(), from];
        let mut statement = self.db.prepare_cached(&sql)?;
        Ok(statement.query_row(parameters, |row| row.get(0))?)
    }

    /// Adds the matching rows of one partition; whether one more was found than fits.
    fn partition(&mut self, partition: &str, after: Option<&str>) -> Outcome<bool> {
        // There is no greatest text to stand for a missing bound.
        let upper = match self.rows.greatest {
            Some(_) => "row_key <= ?5",
            None => "?5 IS NULL",
        };
        let sql = format!(
            "SELECT row_key, etag, properties FROM {}
             AND partition_key = ?3 AND row_key >= ?4 AND {upper} ORDER BY row_key",
            self.index.source()
        );
        let mut statement = self.db.prepare_cached(&sql)?;
        let mut rows = statement.query(params![
            self.table,
            self.index.state(),
            partition,
            after.max(self.rows.least).unwrap_or(""),
            self.rows.greatest
        ])?;
        while let Some(row) = rows.next()? {
            let key = EntityKey {
                partition: partition.to_owned(),
                row: row.get(0)?,
            };
            if Some(key.row.as_str()) == after {
                continue;
            }
            let properties = properties(row, 2)?;
            if !self.filter.matches(&key, &properties) {
                continue;
            }
            if self.entities.len() == self.limit {
                return Ok(true);
            }
            self.entities.push(Entity {
                key,
                properties,
                etag: ETag(row.get::<_, i64>(1)?.to_string()),
            });
        }
        Ok(false)
    }
}
