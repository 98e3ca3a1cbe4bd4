//! Rows and filters as the table service writes them: JSON with type annotations, and `OData`
//! expressions.

use serde_json::{Map, Value as Json};

use crate::clock::Timestamp;
use crate::storage::{Compare, EntityKey, Filter, Operator, Properties, Value};

/// A row as the service takes and gives it.
pub(super) type Row = Map<String, Json>;

const PARTITION_KEY: &str = "PartitionKey";
const ROW_KEY: &str = "RowKey";
const TYPE: &str = "@odata.type";
const DATE_TIME: &str = "Edm.DateTime";

/// The service's form of a row.
pub(super) fn row(key: &EntityKey, properties: &Properties) -> Row {
    let mut row = Row::new();
    row.insert(PARTITION_KEY.to_owned(), key.partition.clone().into());
    row.insert(ROW_KEY.to_owned(), key.row.clone().into());
    for (name, value) in properties {
        let json = match value {
            Value::String(text) => Json::from(text.clone()),
            Value::Bool(flag) => Json::from(*flag),
            Value::Int32(number) => Json::from(*number),
            Value::DateTime(time) => {
                row.insert(format!("{name}{TYPE}"), DATE_TIME.into());
                Json::from(date_time(*time))
            }
        };
        row.insert(name.clone(), json);
    }
    row
}

/// The key of a row.
pub(super) fn key(row: &Row) -> Option<EntityKey> {
    let text = |name| row.get(name).and_then(Json::as_str).map(str::to_owned);
    Some(EntityKey {
        partition: text(PARTITION_KEY)?,
        row: text(ROW_KEY)?,
    })
}

/// The properties of a row. Those of types the index does not use are left out.
pub(super) fn properties(row: &Row) -> Properties {
    row.iter()
        .filter(|(name, _)| !is_own(name))
        .filter_map(|(name, json)| {
            let annotation = row.get(&format!("{name}{TYPE}")).and_then(Json::as_str);
            Some((name.clone(), value(json, annotation)?))
        })
        .collect()
}

fn is_own(name: &str) -> bool {
    matches!(name, PARTITION_KEY | ROW_KEY | "Timestamp") || name.contains("odata.")
}

fn value(json: &Json, annotation: Option<&str>) -> Option<Value> {
    match (json, annotation) {
        (Json::String(text), None | Some("Edm.String")) => Some(Value::String(text.clone())),
        (Json::String(text), Some(DATE_TIME)) => text.parse().ok().map(Value::DateTime),
        (Json::Bool(flag), None | Some("Edm.Boolean")) => Some(Value::Bool(*flag)),
        (Json::Number(number), None | Some("Edm.Int32")) => {
            let number = i32::try_from(number.as_i64()?).ok()?;
            Some(Value::Int32(number))
        }
        _ => None,
    }
}

/// A key as it stands between quotes in an address.
pub(super) fn quoted(text: &str) -> String {
    text.replace('\'', "''")
}

/// The filter expression for the matching rows after a key; empty if all rows are wanted.
pub(super) fn expression(filter: &Filter, after: Option<&EntityKey>) -> String {
    let matching = write(filter);
    let Some(after) = after else {
        return matching;
    };
    let (partition, row) = (quoted(&after.partition), quoted(&after.row));
    let later = format!(
        "({PARTITION_KEY} gt '{partition}' or ({PARTITION_KEY} eq '{partition}' and {ROW_KEY} gt \
         '{row}'))"
    );
    if matching.is_empty() {
        later
    } else {
        format!("{later} and ({matching})")
    }
}

fn write(filter: &Filter) -> String {
    match filter {
        Filter::Everything => String::new(),
        Filter::Compare(compare) => compared(compare),
        Filter::And(all) => joined(all, " and "),
        // No key is empty and not empty.
        Filter::Or(any) if any.is_empty() => {
            format!("{PARTITION_KEY} eq '' and {PARTITION_KEY} ne ''")
        }
        // One that matches everything makes the others idle.
        Filter::Or(any) if any.iter().any(|filter| write(filter).is_empty()) => String::new(),
        Filter::Or(any) => joined(any, " or "),
    }
}

fn joined(filters: &[Filter], by: &str) -> String {
    let parts = filters.iter().map(write).filter(|part| !part.is_empty());
    let parts: Vec<_> = parts.map(|part| format!("({part})")).collect();
    parts.join(by)
}

fn compared(compare: &Compare) -> String {
    let operator = match compare.operator {
        Operator::Eq => "eq",
        Operator::Ne => "ne",
        Operator::Lt => "lt",
        Operator::Le => "le",
        Operator::Gt => "gt",
        Operator::Ge => "ge",
    };
    let value = match &compare.value {
        Value::String(text) => format!("'{}'", quoted(text)),
        Value::Bool(flag) => flag.to_string(),
        Value::Int32(number) => number.to_string(),
        Value::DateTime(time) => format!("datetime'{}'", date_time(*time)),
    };
    format!("{} {operator} {value}", compare.property)
}

/// The service's form of a moment.
fn date_time(time: Timestamp) -> String {
    time.to_string().replace("+00:00", "Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at() -> EntityKey {
        EntityKey {
            partition: "0f".to_owned(),
            row: "it's".to_owned(),
        }
    }

    #[test]
    fn a_row_comes_back_as_it_went() {
        let time: Timestamp = "2026-01-02T03:04:05.678901+00:00".parse().unwrap();
        let given = Properties::from([
            ("text".to_owned(), Value::String("a'b".to_owned())),
            ("flag".to_owned(), Value::Bool(true)),
            ("number".to_owned(), Value::Int32(-7)),
            ("time".to_owned(), Value::DateTime(time)),
        ]);
        let row = row(&at(), &given);
        assert_eq!(key(&row), Some(at()));
        assert_eq!(properties(&row), given);
    }

    #[test]
    fn properties_of_other_types_are_left_out() {
        let text = r#"{"PartitionKey":"p","RowKey":"r","odata.etag":"x","Timestamp":"2026-01-02T03:04:05Z",
            "Timestamp@odata.type":"Edm.DateTime","big":"5","big@odata.type":"Edm.Int64",
            "real":1.5,"kept":1}"#;
        let row: Row = serde_json::from_str(text).unwrap();
        assert_eq!(
            properties(&row),
            Properties::from([("kept".to_owned(), Value::Int32(1))])
        );
    }

    #[test]
    fn filters_are_written_with_their_texts_quoted() {
        let name = Filter::eq("name", Value::String("it's".to_owned()));
        let flag = Filter::compare("flag", Operator::Ne, Value::Bool(false));
        assert_eq!(expression(&name, None), "name eq 'it''s'");
        assert_eq!(
            expression(&Filter::And(vec![name.clone(), flag.clone()]), None),
            "(name eq 'it''s') and (flag ne false)"
        );
        assert_eq!(
            expression(&Filter::Or(vec![flag]), Some(&at())),
            "(PartitionKey gt '0f' or (PartitionKey eq '0f' and RowKey gt 'it''s')) and ((flag ne \
             false))"
        );
        assert_eq!(expression(&Filter::And(vec![]), None), "");
        assert_eq!(
            expression(&Filter::Or(vec![name, Filter::Everything]), None),
            ""
        );
    }
}
