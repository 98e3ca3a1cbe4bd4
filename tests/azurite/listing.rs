//! Listings over many rows.

use std::collections::BTreeSet;

use futures::stream::{self, StreamExt as _};
use jobq::clock::Clock;
use jobq::storage::{EntityKey, Error};
use jobq::store::{RowFilter, WorkflowStore};
use jobq::wire::{Names, Prefix, index_row};
use jobq::workflow::WorkflowId;
use jobq::workflow::definition::Definition;
use jobq::workflow::runtime::Runtime;

use crate::emulator;

const ROWS: usize = 10_000;

fn workflow(id: &str) -> Runtime {
    let definition = serde_json::json!({"name": "w", "tasks": [{"name": "a"}]});
    let definition = Definition::from_value(&definition).unwrap();
    let id = WorkflowId::parse(id).unwrap();
    Runtime::new(id, &definition, Clock::system().now())
}

async fn insert(store: &WorkflowStore, id: &str) {
    let key = EntityKey {
        partition: Names::partition_key(id),
        row: id.to_owned(),
    };
    let row = index_row::complete(&workflow(id));
    let tables = &store.storage().tables;
    let table = store.names().index_table();
    // The outcome of a request on a connection that the emulator closes is unknown.
    while let Err(error) = tables.insert(table, &key, row.clone()).await {
        match error {
            Error::Unavailable { .. } => {}
            Error::AlreadyExists { .. } => break,
            other => panic!("{other}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_rows_are_listed_once_each_while_others_are_inserted() {
    let prefix = Prefix::parse(&emulator::prefix()).unwrap();
    let store = WorkflowStore::new(emulator::storage(), Names::new(prefix));
    store.ensure().await.unwrap();
    let ids: Vec<String> = (0..ROWS).map(|n| format!("w-{n:05}")).collect();
    let inserts = ids.iter().map(|id| insert(&store, id));
    stream::iter(inserts)
        .buffer_unordered(64)
        .collect::<Vec<()>>()
        .await;

    let everything = RowFilter::default();
    let (mut listed, mut after, mut pages) = (Vec::new(), None, 0);
    loop {
        let page = store.rows(&everything, after.as_ref(), 700).await.unwrap();
        listed.extend(page.rows.into_iter().map(|row| row.workflow_id));
        pages += 1;
        // Rows before, at and after the place that was reached.
        for part in ["a", "w-05000x", "z"] {
            insert(&store, &format!("{part}-{pages}")).await;
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert!(pages >= ROWS / 700, "{pages} pages");
    let distinct: BTreeSet<&str> = listed.iter().map(AsRef::as_ref).collect();
    assert_eq!(distinct.len(), listed.len(), "a row was listed twice");
    for id in &ids {
        assert!(distinct.contains(id.as_str()), "{id} is missing");
    }
}
