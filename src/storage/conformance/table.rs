//! Cases of the table port.
#![expect(missing_docs, reason = "the names of cases say what they hold")]

use std::sync::Arc;

use futures::future::join;

use super::Rig;
use crate::clock::Timestamp;
use crate::storage::{ETag, EntityKey, Error, Filter, Operator, Properties, TableStore, Value};

async fn table(rig: &Rig) -> (Arc<dyn TableStore>, String) {
    let name = rig.unique();
    rig.storage.tables.create_table(&name).await.unwrap();
    (rig.storage.tables.clone(), name)
}

fn key(partition: &str, row: &str) -> EntityKey {
    EntityKey {
        partition: partition.to_owned(),
        row: row.to_owned(),
    }
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

fn row<const N: usize>(properties: [(&str, Value); N]) -> Properties {
    properties
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

fn moment(micros: i64) -> Value {
    Value::DateTime(Timestamp::from_micros(1_767_225_600_000_000 + micros))
}

pub async fn table_insert_conflicts_with_an_existing_row(rig: &Rig) {
    let (tables, t) = table(rig).await;
    tables
        .insert(&t, &key("p", "r"), row([("a", text("1"))]))
        .await
        .unwrap();
    let again = tables
        .insert(&t, &key("p", "r"), row([("a", text("2"))]))
        .await;
    assert!(
        matches!(again, Err(Error::AlreadyExists { .. })),
        "{again:?}"
    );
    assert_eq!(
        tables.get(&t, &key("p", "r")).await.unwrap().properties,
        row([("a", text("1"))])
    );
}

pub async fn table_merge_keeps_what_it_does_not_name(rig: &Rig) {
    let (tables, t) = table(rig).await;
    let k = key("p", "r");
    tables
        .insert(&t, &k, row([("a", text("1")), ("b", text("1"))]))
        .await
        .unwrap();
    tables
        .merge(
            &t,
            &k,
            row([("b", text("2")), ("c", Value::Bool(true))]),
            None,
        )
        .await
        .unwrap();
    let expected = row([("a", text("1")), ("b", text("2")), ("c", Value::Bool(true))]);
    assert_eq!(tables.get(&t, &k).await.unwrap().properties, expected);
}

pub async fn table_merge_guards_its_version(rig: &Rig) {
    let (tables, t) = table(rig).await;
    let k = key("p", "r");
    let first = tables
        .insert(&t, &k, row([("n", Value::Int32(1))]))
        .await
        .unwrap();
    let second = tables
        .merge(&t, &k, row([("n", Value::Int32(2))]), Some(&first))
        .await
        .unwrap();
    assert_ne!(first, second);
    let stale = tables
        .merge(&t, &k, row([("n", Value::Int32(3))]), Some(&first))
        .await;
    assert!(
        matches!(stale, Err(Error::PreconditionFailed { .. })),
        "{stale:?}"
    );
    let read = tables.get(&t, &k).await.unwrap();
    assert_eq!(
        (read.properties, &read.etag),
        (row([("n", Value::Int32(2))]), &second)
    );
    tables
        .merge(&t, &k, row([("n", Value::Int32(4))]), Some(&read.etag))
        .await
        .unwrap();
}

pub async fn table_merges_of_different_columns_never_lose_each_other(rig: &Rig) {
    let (tables, t) = table(rig).await;
    let k = key("p", "r");
    tables
        .insert(
            &t,
            &k,
            row([("a", Value::Int32(0)), ("b", Value::Int32(0))]),
        )
        .await
        .unwrap();
    let write = async |name: &str| {
        for n in 1..=20 {
            tables
                .merge(&t, &k, row([(name, Value::Int32(n))]), None)
                .await
                .unwrap();
        }
    };
    join(write("a"), write("b")).await;
    let expected = row([("a", Value::Int32(20)), ("b", Value::Int32(20))]);
    assert_eq!(tables.get(&t, &k).await.unwrap().properties, expected);
}

pub async fn table_upsert_replaces_the_whole_row(rig: &Rig) {
    let (tables, t) = table(rig).await;
    let k = key("p", "r");
    tables
        .upsert(&t, &k, row([("a", text("1")), ("b", text("1"))]))
        .await
        .unwrap();
    tables
        .upsert(&t, &k, row([("a", text("2"))]))
        .await
        .unwrap();
    assert_eq!(
        tables.get(&t, &k).await.unwrap().properties,
        row([("a", text("2"))])
    );
}

pub async fn table_types_are_kept(rig: &Rig) {
    let (tables, t) = table(rig).await;
    let properties = row([
        ("text", text("it's \"ü\" <&>\n")),
        ("empty", text("")),
        ("yes", Value::Bool(true)),
        ("no", Value::Bool(false)),
        ("small", Value::Int32(i32::MIN)),
        ("large", Value::Int32(i32::MAX)),
        ("time", moment(678_901)),
    ]);
    tables
        .insert(&t, &key("p", "r"), properties.clone())
        .await
        .unwrap();
    assert_eq!(
        tables.get(&t, &key("p", "r")).await.unwrap().properties,
        properties
    );
}

pub async fn table_missing_things_are_not_found(rig: &Rig) {
    let (tables, t) = table(rig).await;
    let (k, nowhere) = (key("p", "r"), rig.unique());
    let not_found = |result: Result<(), Error>| {
        assert!(matches!(result, Err(Error::NotFound { .. })), "{result:?}");
    };
    not_found(tables.get(&t, &k).await.map(drop));
    not_found(tables.merge(&t, &k, row([]), None).await.map(drop));
    not_found(tables.delete(&t, &k).await);
    not_found(tables.get(&nowhere, &k).await.map(drop));
    not_found(tables.insert(&nowhere, &k, row([])).await.map(drop));
    not_found(tables.upsert(&nowhere, &k, row([])).await.map(drop));
    not_found(
        tables
            .query(&nowhere, &Filter::Everything, None, 10)
            .await
            .map(drop),
    );
    tables.create_table(&t).await.unwrap();
    tables.insert(&t, &k, row([])).await.unwrap();
    tables.delete(&t, &k).await.unwrap();
    not_found(tables.get(&t, &k).await.map(drop));
}

async fn found(tables: &Arc<dyn TableStore>, table: &str, filter: &Filter) -> Vec<String> {
    let page = tables.query(table, filter, None, 100).await.unwrap();
    page.entities
        .into_iter()
        .map(|entity| entity.key.row)
        .collect()
}

pub async fn table_filters_compare_each_type(rig: &Rig) {
    let (tables, t) = table(rig).await;
    for n in 1..=3i32 {
        let properties = row([
            ("s", text(&format!("v{n}"))),
            ("n", Value::Int32(n)),
            ("b", Value::Bool(n == 2)),
            ("t", moment(i64::from(n))),
        ]);
        tables
            .insert(&t, &key("p", &n.to_string()), properties)
            .await
            .unwrap();
    }
    let operators = [
        (Operator::Eq, &["2"][..]),
        (Operator::Ne, &["1", "3"]),
        (Operator::Lt, &["1"]),
        (Operator::Le, &["1", "2"]),
        (Operator::Gt, &["3"]),
        (Operator::Ge, &["2", "3"]),
    ];
    let values = [
        ("s", text("v2")),
        ("n", Value::Int32(2)),
        ("t", moment(2)),
        ("RowKey", text("2")),
    ];
    for (operator, expected) in operators {
        for (name, value) in &values {
            let filter = Filter::compare(*name, operator, value.clone());
            assert_eq!(
                found(&tables, &t, &filter).await,
                expected,
                "{name} {operator:?}"
            );
        }
    }
    let flag = |flag| Filter::eq("b", Value::Bool(flag));
    assert_eq!(found(&tables, &t, &flag(true)).await, ["2"]);
    assert_eq!(found(&tables, &t, &flag(false)).await, ["1", "3"]);
}

pub async fn table_filters_skip_missing_and_other_types(rig: &Rig) {
    let (tables, t) = table(rig).await;
    tables
        .insert(&t, &key("p", "missing"), row([]))
        .await
        .unwrap();
    tables
        .insert(&t, &key("p", "number"), row([("x", Value::Int32(1))]))
        .await
        .unwrap();
    tables
        .insert(&t, &key("p", "text"), row([("x", text("1"))]))
        .await
        .unwrap();
    tables
        .insert(&t, &key("p", "true"), row([("x", Value::Bool(true))]))
        .await
        .unwrap();
    for (value, expected) in [
        (text("1"), "text"),
        (Value::Int32(1), "number"),
        (Value::Bool(true), "true"),
    ] {
        assert_eq!(
            found(&tables, &t, &Filter::eq("x", value)).await,
            [expected]
        );
    }
    let other = Filter::compare("x", Operator::Ne, text("2"));
    assert_eq!(found(&tables, &t, &other).await, ["text"]);
}

pub async fn table_filters_combine(rig: &Rig) {
    let (tables, t) = table(rig).await;
    for n in 1..=4 {
        let properties = row([("n", Value::Int32(n)), ("even", Value::Bool(n % 2 == 0))]);
        tables
            .insert(&t, &key("p", &n.to_string()), properties)
            .await
            .unwrap();
    }
    let even = || Filter::eq("even", Value::Bool(true));
    let is = |n| Filter::eq("n", Value::Int32(n));
    let large = || Filter::compare("n", Operator::Gt, Value::Int32(2));
    let cases = [
        (Filter::And(vec![even(), large()]), &["4"][..]),
        (Filter::Or(vec![is(1), is(3)]), &["1", "3"]),
        (
            Filter::And(vec![large(), Filter::Or(vec![is(1), is(3)])]),
            &["3"],
        ),
        (
            Filter::Or(vec![Filter::And(vec![even(), is(2)]), is(3)]),
            &["2", "3"],
        ),
        (Filter::And(vec![]), &["1", "2", "3", "4"]),
        (Filter::Or(vec![]), &[]),
        (Filter::And(vec![Filter::Everything, even()]), &["2", "4"]),
    ];
    for (filter, expected) in cases {
        assert_eq!(found(&tables, &t, &filter).await, expected, "{filter:?}");
    }
}

pub async fn table_rows_come_in_the_order_of_their_keys(rig: &Rig) {
    let (tables, t) = table(rig).await;
    let keys = [
        ("p-1", "Z"),
        ("p-1", "a"),
        ("p-1", "a-b"),
        ("p-1", "aa"),
        ("p-2", "0"),
    ];
    for (partition, row_key) in keys.iter().rev() {
        tables
            .insert(&t, &key(partition, row_key), row([]))
            .await
            .unwrap();
    }
    let page = tables
        .query(&t, &Filter::Everything, None, 100)
        .await
        .unwrap();
    let got: Vec<_> = page
        .entities
        .iter()
        .map(|entity| entity.key.clone())
        .collect();
    assert_eq!(
        got,
        keys.map(|(partition, row_key)| key(partition, row_key))
    );
    let part = Filter::eq("PartitionKey", text("p-2"));
    assert_eq!(found(&tables, &t, &part).await, ["0"]);
}

pub async fn table_pages_have_no_gap_and_no_double_while_rows_change(rig: &Rig) {
    let (tables, t) = table(rig).await;
    let number = |n: usize| format!("{n:03}");
    for n in (0..40).step_by(2) {
        let partition = format!("p{}", n / 20);
        tables
            .insert(&t, &key(&partition, &number(n)), row([]))
            .await
            .unwrap();
    }
    let mut got = Vec::new();
    let mut after = None;
    loop {
        let page = tables
            .query(&t, &Filter::Everything, after.as_ref(), 6)
            .await
            .unwrap();
        assert!(page.entities.len() <= 6);
        let _versions: Vec<ETag> = page
            .entities
            .iter()
            .map(|entity| entity.etag.clone())
            .collect();
        got.extend(page.entities.into_iter().map(|entity| entity.key));
        after = page.next;
        let Some(last) = &after else { break };
        // Behind the place reached a row comes and another goes.
        tables
            .insert(&t, &key("p0", &format!("{}-new", got.len())), row([]))
            .await
            .unwrap();
        assert!(got.contains(last));
        if got.len() == 6 {
            tables.delete(&t, &got[0]).await.unwrap();
        }
    }
    let expected = (0..40)
        .step_by(2)
        .map(|n| key(&format!("p{}", n / 20), &number(n)));
    // New rows sort before the place reached while it is in p0's numbers above them.
    let seen: Vec<_> = got
        .iter()
        .filter(|key| !key.row.ends_with("-new"))
        .cloned()
        .collect();
    assert_eq!(seen, expected.collect::<Vec<_>>());
    let mut sorted = got.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(sorted, got, "rows came twice or out of order");
}
