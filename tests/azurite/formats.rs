//! What stands in the account, read without our own adapter: names and rows as the golden data has
//! them.

use azure_data_tables::clients::TableServiceClientBuilder;
use azure_storage::{CloudLocation, StorageCredentials};
use jobq::clock::Timestamp;
use jobq::store::WorkflowStore;
use jobq::wire::{Names, Prefix};
use jobq::workflow::WorkflowId;
use jobq::workflow::definition::Definition;
use jobq::workflow::runtime::Runtime;
use serde_json::{Map, Value, json};

use crate::emulator;

pub(super) fn fixture(name: &str) -> Value {
    let text = include_str!("../fixtures/wire.json");
    let fixtures: Value = serde_json::from_str(text).unwrap();
    fixtures[name].clone()
}

/// The workflow of the golden data, submitted under a prefix at its moment.
pub(super) async fn submitted(prefix: &str) -> (WorkflowStore, Runtime) {
    let definition = json!({
        "name": "diamond",
        "default_queue": "cpu",
        "tasks": [
            {"name": "A", "kwargs": {"cmd": "echo <A> & \"é\""}},
            {"name": "B", "depends_on": ["A"], "queue": "gpu", "num_retries": 2, "timeout_s": 30},
            {"name": "C", "depends_on": ["A"], "condition": "inputs.A.ok"},
            {"name": "D", "depends_on": ["B", "C"], "dep_policy": 1},
        ],
    });
    let id = fixture("state_blob_submitted")["workflow_id"].clone();
    let id = WorkflowId::parse(id.as_str().unwrap()).unwrap();
    let now: Timestamp = "2026-01-02T03:04:05.678901+00:00".parse().unwrap();
    let definition = Definition::from_value(&definition).unwrap();
    let runtime = Runtime::new(id, &definition, now);
    let names = Names::new(Prefix::parse(prefix).unwrap());
    let store = WorkflowStore::new(emulator::storage(), names);
    store.ensure().await.unwrap();
    store.submit(&runtime).await.unwrap();
    (store, runtime)
}

/// A row as the table service itself gives it.
async fn raw_row(table: &str, partition: &str, row: &str) -> Map<String, Value> {
    let [_, _, port] = emulator::ports();
    let location = CloudLocation::Emulator {
        address: "127.0.0.1".to_owned(),
        port,
    };
    let service =
        TableServiceClientBuilder::with_location(location, StorageCredentials::emulator()).build();
    let entity = service.table_client(table).partition_key_client(partition);
    let entity = entity.entity_client(row);
    entity.get().await.unwrap().entity
}

#[tokio::test]
async fn a_row_in_the_table_equals_the_golden_row_field_by_field() {
    let prefix = emulator::prefix();
    submitted(&prefix).await;
    let golden = fixture("index_row_submitted");
    let text = |name: &str| golden[name].as_str().unwrap().to_owned();
    let table = format!("{prefix}WorkflowsIndex");
    let row = raw_row(&table, &text("PartitionKey"), &text("RowKey")).await;
    for (name, expected) in golden.as_object().unwrap() {
        let found = &row[name];
        let annotation = row.get(&format!("{name}@odata.type"));
        match name.as_str() {
            "created_at" | "updated_at" => {
                assert_eq!(annotation, Some(&json!("Edm.DateTime")), "{name}");
                let moment = |value: &Value| value.as_str().unwrap().parse::<Timestamp>();
                assert_eq!(moment(found), moment(expected), "{name}");
            }
            // Numbers and flags without an annotation are Edm.Int32 and Edm.Boolean.
            _ => {
                assert_eq!(found, expected, "{name}");
                let plain = matches!(
                    annotation.and_then(Value::as_str),
                    None | Some("Edm.String" | "Edm.Int32" | "Edm.Boolean")
                );
                assert!(plain, "{name}: {annotation:?}");
            }
        }
    }
}
