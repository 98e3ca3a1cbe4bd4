//! Cases of the table port.

use std::collections::BTreeSet;

use tokio::task::JoinSet;

use super::{Gap, Subject, assert_fails};
use crate::clock::Timestamp;
use crate::limits;
use crate::storage::{ETag, Entity, EntityKey, Filter, Operator, Properties, Value};

fn key(partition: &str, row: &str) -> EntityKey {
    EntityKey {
        partition: partition.to_owned(),
        row: row.to_owned(),
    }
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

fn moment(seconds: i64) -> Value {
    Value::DateTime(Timestamp::from_micros(
        1_767_000_000_000_000 + seconds * 1_000_000,
    ))
}

fn properties<const N: usize>(list: [(&str, Value); N]) -> Properties {
    list.into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

async fn insert<const N: usize>(
    subject: &Subject,
    table: &str,
    at: &EntityKey,
    list: [(&str, Value); N],
) -> ETag {
    let tables = &subject.storage.tables;
    tables.insert(table, at, properties(list)).await.unwrap()
}

async fn get(subject: &Subject, table: &str, at: &EntityKey) -> Entity {
    subject.storage.tables.get(table, at).await.unwrap()
}

/// All rows that match, over however many pages of at most `limit`.
async fn query(subject: &Subject, table: &str, filter: &Filter, limit: usize) -> Vec<EntityKey> {
    let (mut keys, mut after) = (Vec::new(), None);
    loop {
        let tables = &subject.storage.tables;
        let page = tables.query(table, filter, after.as_ref(), limit).await;
        let page = page.unwrap();
        assert!(page.entities.len() <= limit);
        keys.extend(page.entities.into_iter().map(|entity| entity.key));
        after = page.next;
        if after.is_none() {
            return keys;
        }
    }
}

/// The row keys of all rows that match.
async fn rows(subject: &Subject, table: &str, filter: &Filter) -> Vec<String> {
    let keys = query(subject, table, filter, 100).await;
    keys.into_iter().map(|key| key.row).collect()
}

/// Creating a table twice keeps what is in it.
pub async fn table_create_may_be_repeated(subject: &Subject) {
    let table = subject.table().await;
    let at = key("p", "r");
    insert(subject, &table, &at, [("a", text("x"))]).await;
    subject.storage.tables.create_table(&table).await.unwrap();
    assert_eq!(get(subject, &table, &at).await.properties["a"], text("x"));
}

/// A deleted row is gone, and may come again.
pub async fn table_delete_removes_the_row(subject: &Subject) {
    let table = subject.table().await;
    let tables = &subject.storage.tables;
    let at = key("p", "r");
    assert_fails(tables.delete(&table, &at).await, "not_found");
    insert(subject, &table, &at, [("a", text("x"))]).await;
    tables.delete(&table, &at).await.unwrap();
    assert_fails(tables.get(&table, &at).await, "not_found");
    assert_fails(tables.delete(&table, &at).await, "not_found");
    insert(subject, &table, &at, [("b", text("y"))]).await;
    assert!(!get(subject, &table, &at).await.properties.contains_key("a"));
}

/// Versions tell writes apart even when the properties are equal.
pub async fn table_etag_differs_after_every_write(subject: &Subject) {
    let table = subject.table().await;
    let tables = &subject.storage.tables;
    let at = key("p", "r");
    let same = || properties([("a", text("x"))]);
    let inserted = tables.insert(&table, &at, same()).await.unwrap();
    let merged = tables.merge(&table, &at, same(), None).await.unwrap();
    let upserted = tables.upsert(&table, &at, same()).await.unwrap();
    assert_ne!(inserted, merged);
    assert_ne!(merged, upserted);
    assert_ne!(inserted, upserted);
    assert_eq!(get(subject, &table, &at).await.etag, upserted);
}

/// Filters nest.
pub async fn table_filter_and_or_combine(subject: &Subject) {
    let table = subject.table().await;
    for (row, state, cancel) in [
        ("1", "running", false),
        ("2", "running", true),
        ("3", "failed", true),
        ("4", "pending", false),
    ] {
        let list = [("state", text(state)), ("cancel", Value::Bool(cancel))];
        insert(subject, &table, &key("p", row), list).await;
    }
    let state = |name| Filter::eq("state", text(name));
    let cancelled = Filter::eq("cancel", Value::Bool(true));
    let both = Filter::And(vec![state("running"), cancelled.clone()]);
    assert_eq!(rows(subject, &table, &both).await, ["2"]);
    let either = Filter::Or(vec![state("pending"), state("failed")]);
    assert_eq!(rows(subject, &table, &either).await, ["3", "4"]);
    let nested = Filter::And(vec![cancelled, Filter::Or(vec![either, state("running")])]);
    assert_eq!(rows(subject, &table, &nested).await, ["2", "3"]);
    let all = ["1", "2", "3", "4"];
    assert_eq!(rows(subject, &table, &Filter::Everything).await, all);
}

/// The keys are compared like properties, and ranges of them select.
pub async fn table_filter_by_keys(subject: &Subject) {
    let table = subject.table().await;
    for partition in ["p1", "p2", "p3"] {
        for row in ["a", "b", "c"] {
            insert(subject, &table, &key(partition, row), []).await;
        }
    }
    let partition = |operator, name| Filter::compare("PartitionKey", operator, text(name));
    let row = |operator, name| Filter::compare("RowKey", operator, text(name));
    let check = async |filters: Vec<Filter>, expected: &[&str]| {
        let keys = query(subject, &table, &Filter::And(filters), 2).await;
        let keys: Vec<String> = keys
            .into_iter()
            .map(|key| format!("{}{}", key.partition, key.row))
            .collect();
        assert_eq!(keys, expected);
    };
    let one = partition(Operator::Eq, "p2");
    check(vec![one.clone()], &["p2a", "p2b", "p2c"]).await;
    check(vec![one.clone(), row(Operator::Eq, "b")], &["p2b"]).await;
    check(vec![one.clone(), row(Operator::Gt, "a")], &["p2b", "p2c"]).await;
    check(vec![one, row(Operator::Ne, "b")], &["p2a", "p2c"]).await;
    let range = vec![row(Operator::Ge, "b"), row(Operator::Lt, "c")];
    check(range, &["p1b", "p2b", "p3b"]).await;
    let late = vec![partition(Operator::Gt, "p1"), row(Operator::Le, "a")];
    check(late, &["p2a", "p3a"]).await;
    check(vec![partition(Operator::Eq, "p4")], &[]).await;
    check(vec![partition(Operator::Lt, "p1")], &[]).await;
}

/// Every operator on every type, over three rows that hold a lesser, an equal and a greater value.
pub async fn table_filter_compares_each_type(subject: &Subject) {
    let table = subject.table().await;
    for (row, state, number, at) in [
        ("1", "Alpha", -5, -1),
        ("2", "beta", 0, 0),
        ("3", "gamma", 70_000, 1),
    ] {
        let list = [
            ("state", text(state)),
            ("number", Value::Int32(number)),
            ("at", moment(at)),
            ("flag", Value::Bool(number == 0)),
        ];
        insert(subject, &table, &key("p", row), list).await;
    }
    let middle = [
        ("state", text("beta")),
        ("number", Value::Int32(0)),
        ("at", moment(0)),
    ];
    let expected = [
        (Operator::Eq, vec!["2"]),
        (Operator::Ne, vec!["1", "3"]),
        (Operator::Lt, vec!["1"]),
        (Operator::Le, vec!["1", "2"]),
        (Operator::Gt, vec!["3"]),
        (Operator::Ge, vec!["2", "3"]),
    ];
    for (property, value) in middle {
        for (operator, expected) in &expected {
            let filter = Filter::compare(property, *operator, value.clone());
            let found = rows(subject, &table, &filter).await;
            assert_eq!(&found, expected, "{property} {operator:?}");
        }
    }
    for (flag, expected) in [(true, vec!["2"]), (false, vec!["1", "3"])] {
        let equal = Filter::eq("flag", Value::Bool(flag));
        assert_eq!(rows(subject, &table, &equal).await, expected);
        let other = Filter::compare("flag", Operator::Ne, Value::Bool(!flag));
        assert_eq!(rows(subject, &table, &other).await, expected);
    }
}

/// A comparison says something about a value; where there is none, it does not hold.
pub async fn table_filter_never_matches_a_missing_or_differently_typed_property(subject: &Subject) {
    let table = subject.table().await;
    insert(subject, &table, &key("p", "has"), [("a", text("x"))]).await;
    insert(subject, &table, &key("p", "lacks"), [("b", text("x"))]).await;
    insert(
        subject,
        &table,
        &key("p", "number"),
        [("a", Value::Int32(1))],
    )
    .await;
    for (operator, expected) in [
        (Operator::Eq, &[][..]),
        (Operator::Ne, &["has"]),
        (Operator::Lt, &["has"]),
        (Operator::Le, &["has"]),
        (Operator::Gt, &[]),
        (Operator::Ge, &[]),
    ] {
        let filter = Filter::compare("a", operator, text("y"));
        let mut found = rows(subject, &table, &filter).await;
        if operator == Operator::Ne && subject.has(Gap::NeMatchesOtherTypes) {
            found.retain(|row| row != "number");
        }
        assert_eq!(found, expected, "{operator:?}");
    }
}

/// Calls that some backend cannot make are refused by all.
pub async fn table_impossible_calls_are_invalid(subject: &Subject) {
    let table = subject.table().await;
    let tables = &subject.storage.tables;
    for name in ["ab", "1table", "with-dash"] {
        assert_fails(tables.create_table(name).await, "invalid");
    }
    for row in ["a/b", "a\\b", "a#b", "a?b", "a\nb"] {
        let (at, none) = (key("p", row), Properties::new());
        assert_fails(tables.insert(&table, &at, none).await, "invalid");
        let (at, none) = (key(row, "r"), Properties::new());
        assert_fails(tables.upsert(&table, &at, none).await, "invalid");
    }
    for name in ["PartitionKey", "RowKey", "Timestamp", ""] {
        let (at, list) = (key("p", "r"), properties([(name, text("x"))]));
        assert_fails(tables.insert(&table, &at, list).await, "invalid");
    }
    for limit in [0, limits::PAGE_MAX + 1] {
        let query = tables.query(&table, &Filter::Everything, None, limit);
        assert_fails(query.await, "invalid");
    }
}

/// An insert never replaces.
pub async fn table_insert_conflicts_with_an_existing_row(subject: &Subject) {
    let table = subject.table().await;
    let tables = &subject.storage.tables;
    let at = key("p", "r");
    let etag = insert(subject, &table, &at, [("a", text("first"))]).await;
    let again = tables.insert(&table, &at, properties([("a", text("second"))]));
    assert_fails(again.await, "already_exists");
    let entity = get(subject, &table, &at).await;
    assert_eq!(entity.etag, etag);
    assert_eq!(entity.properties, properties([("a", text("first"))]));
    // The same row key in another partition is another row.
    insert(subject, &table, &key("q", "r"), []).await;
}

/// A merge changes rows, it does not make them.
pub async fn table_merge_into_a_missing_row_is_not_found(subject: &Subject) {
    let table = subject.table().await;
    let tables = &subject.storage.tables;
    let at = key("p", "r");
    let list = || properties([("a", text("x"))]);
    assert_fails(tables.merge(&table, &at, list(), None).await, "not_found");
    let etag = insert(subject, &table, &at, []).await;
    tables.delete(&table, &at).await.unwrap();
    let late = tables.merge(&table, &at, list(), Some(&etag)).await;
    assert_fails(late, "not_found");
    assert_fails(tables.get(&table, &at).await, "not_found");
}

/// A merge writes what it is given and nothing else, whoever wrote before.
pub async fn table_merge_keeps_other_properties(subject: &Subject) {
    let table = subject.table().await;
    let tables = &subject.storage.tables;
    let at = key("p", "r");
    let old = insert(
        subject,
        &table,
        &at,
        [("a", text("x")), ("b", Value::Int32(1))],
    )
    .await;
    let flag = properties([("cancel_requested", Value::Bool(true))]);
    tables.merge(&table, &at, flag, None).await.unwrap();
    let counts = properties([("b", text("now a text"))]);
    let etag = tables.merge(&table, &at, counts, None).await.unwrap();
    assert_ne!(etag, old);
    let entity = get(subject, &table, &at).await;
    let expected = [
        ("a", text("x")),
        ("b", text("now a text")),
        ("cancel_requested", Value::Bool(true)),
    ];
    assert_eq!(entity.properties, properties(expected));
    assert_eq!(entity.etag, etag);
}

/// A conditional merge leaves a newer row alone.
pub async fn table_merge_with_a_stale_etag_changes_nothing(subject: &Subject) {
    let table = subject.table().await;
    let tables = &subject.storage.tables;
    let at = key("p", "r");
    let first = insert(subject, &table, &at, [("a", text("first"))]).await;
    let list = |value| properties([("a", text(value))]);
    let second = tables
        .merge(&table, &at, list("second"), Some(&first))
        .await
        .unwrap();
    let stale = tables.merge(&table, &at, list("third"), Some(&first)).await;
    assert_fails(stale, "precondition_failed");
    let entity = get(subject, &table, &at).await;
    assert_eq!(entity.properties, list("second"));
    assert_eq!(entity.etag, second);
}

/// Goal: a merge cannot lose what another writes at the same time. Method: eight writers merge
/// a property of their own many times, and the last value of each is there.
pub async fn table_merges_of_different_properties_all_stay(subject: &Subject) {
    let table = subject.table().await;
    let at = key("p", "r");
    insert(subject, &table, &at, []).await;
    let mut writers = JoinSet::new();
    for writer in 0..8 {
        let (tables, table, at) = (subject.storage.tables.clone(), table.clone(), at.clone());
        writers.spawn(async move {
            for round in 1..=10 {
                tokio::task::yield_now().await;
                let list = Properties::from([(format!("w{writer}"), Value::Int32(round))]);
                tables.merge(&table, &at, list, None).await.unwrap();
            }
        });
    }
    writers.join_all().await;
    let expected = (0..8).map(|writer| (format!("w{writer}"), Value::Int32(10)));
    let entity = get(subject, &table, &at).await;
    assert_eq!(entity.properties, expected.collect());
}

/// Without a table there are no rows.
pub async fn table_missing_table_is_not_found(subject: &Subject) {
    let table = format!("Missing{}", subject.run);
    let tables = &subject.storage.tables;
    let at = key("p", "r");
    let none = Properties::new;
    assert_fails(tables.insert(&table, &at, none()).await, "not_found");
    assert_fails(tables.merge(&table, &at, none(), None).await, "not_found");
    assert_fails(tables.upsert(&table, &at, none()).await, "not_found");
    assert_fails(tables.get(&table, &at).await, "not_found");
    assert_fails(tables.delete(&table, &at).await, "not_found");
    let query = tables.query(&table, &Filter::Everything, None, 10);
    assert_fails(query.await, "not_found");
}

/// Rows that stay appear exactly once, in order, whatever comes and goes between the pages.
pub async fn table_pages_have_no_gap_and_no_double_while_rows_change(subject: &Subject) {
    let table = subject.table().await;
    let tables = &subject.storage.tables;
    let mut stable = BTreeSet::new();
    for i in 0..20 {
        let at = key(&format!("p{}", i / 7), &format!("{i:02}"));
        insert(subject, &table, &at, [("keep", Value::Bool(true))]).await;
        stable.insert(at);
        let doomed = key(&format!("p{}", i / 7), &format!("{i:02}-doomed"));
        insert(subject, &table, &doomed, [("keep", Value::Bool(true))]).await;
    }
    let filter = Filter::eq("keep", Value::Bool(true));
    let (mut seen, mut after) = (Vec::new(), None);
    for round in 0.. {
        let page = tables.query(&table, &filter, after.as_ref(), 3).await;
        let page = page.unwrap();
        seen.extend(page.entities.into_iter().map(|entity| entity.key));
        after = page.next;
        if after.is_none() {
            break;
        }
        for row in [format!("00-new-{round}"), format!("19-new-{round}")] {
            let list = properties([("keep", Value::Bool(true))]);
            tables.upsert(&table, &key("p1", &row), list).await.unwrap();
        }
        if round < 20 {
            let doomed = format!("{round:02}-doomed");
            let at = key(&format!("p{}", round / 7), &doomed);
            tables.delete(&table, &at).await.unwrap();
        }
    }
    assert!(seen.is_sorted(), "{seen:?}");
    let once: BTreeSet<EntityKey> = seen.iter().cloned().collect();
    assert_eq!(once.len(), seen.len(), "{seen:?}");
    assert!(stable.is_subset(&once), "{seen:?}");
}

/// A page goes on after its key even when that row is gone, or never was.
pub async fn table_query_after_a_deleted_key_goes_on(subject: &Subject) {
    let table = subject.table().await;
    let tables = &subject.storage.tables;
    for row in ["a", "b", "c", "d"] {
        insert(subject, &table, &key("p", row), []).await;
    }
    let page = tables.query(&table, &Filter::Everything, None, 2).await;
    let next = page.unwrap().next.unwrap();
    tables.delete(&table, &key("p", "b")).await.unwrap();
    for after in [next, key("p", "bb")] {
        let query = tables.query(&table, &Filter::Everything, Some(&after), 10);
        let entities = query.await.unwrap().entities;
        let rows: Vec<&str> = entities.iter().map(|e| e.key.row.as_str()).collect();
        assert_eq!(rows, ["c", "d"]);
    }
    let last = key("p", "d");
    let page = tables.query(&table, &Filter::Everything, Some(&last), 10);
    let page = page.await.unwrap();
    assert!(page.entities.is_empty());
    assert_eq!(page.next, None);
}

/// Rows sort by partition, then row, byte by byte.
pub async fn table_rows_come_in_byte_order(subject: &Subject) {
    let table = subject.table().await;
    let ordered = [
        key("P", "z"),
        key("p", "-"),
        key("p", "1"),
        key("p", "10"),
        key("p", "2"),
        key("p", "A"),
        key("p", "a"),
        key("p", "é"),
        key("p-1", "0"),
        key("pa", "0"),
    ];
    for at in ordered.iter().rev() {
        insert(subject, &table, at, []).await;
    }
    assert_eq!(
        query(subject, &table, &Filter::Everything, 3).await,
        ordered
    );
}

/// Values come back with the type they were written with.
pub async fn table_typed_properties_round_trip(subject: &Subject) {
    let table = subject.table().await;
    let at = key("wf-0a", "01890a5d-ac96.träin_日本 'x'");
    let list = [
        ("text", text("träin 日本 🚀 <&> \"'")),
        ("empty", text("")),
        ("looks_like_a_time", text("2026-01-02T03:04:05Z")),
        ("looks_like_a_number", text("17")),
        ("yes", Value::Bool(true)),
        ("no", Value::Bool(false)),
        ("least", Value::Int32(i32::MIN)),
        ("greatest", Value::Int32(i32::MAX)),
        ("zero", Value::Int32(0)),
        (
            "at",
            Value::DateTime(Timestamp::from_micros(1_767_323_045_678_901)),
        ),
        ("epoch", Value::DateTime(Timestamp::from_micros(0))),
        ("label_größe", text("x")),
    ];
    let etag = insert(subject, &table, &at, list.clone()).await;
    let entity = get(subject, &table, &at).await;
    assert_eq!(entity.key, at);
    assert_eq!(entity.etag, etag);
    assert_eq!(entity.properties, properties(list));
    let tables = &subject.storage.tables;
    let page = tables.query(&table, &Filter::Everything, None, 10).await;
    assert_eq!(page.unwrap().entities, [entity]);
}

/// An upsert leaves nothing of what was there.
pub async fn table_upsert_replaces_the_whole_row(subject: &Subject) {
    let table = subject.table().await;
    let tables = &subject.storage.tables;
    let at = key("p", "r");
    let first = properties([("a", text("x")), ("b", text("y"))]);
    tables.upsert(&table, &at, first.clone()).await.unwrap();
    assert_eq!(get(subject, &table, &at).await.properties, first);
    let second = properties([("b", Value::Int32(2))]);
    let etag = tables.upsert(&table, &at, second.clone()).await.unwrap();
    let entity = get(subject, &table, &at).await;
    assert_eq!((entity.properties, entity.etag), (second, etag));
}
