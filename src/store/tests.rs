//! Submits and index rows on the memory backend: what a crash between two writes leaves, and what
//! races with what.

use std::time::Duration;

use super::*;
use crate::clock::{Clock, Timestamp};
use crate::storage::memory::MemoryStorage;
use crate::storage::{EntityKey, Expect};
use crate::wire::{Prefix, index_row, state_blob};
use crate::workflow::definition::Definition;
use crate::workflow::runtime::Runtime;
use crate::workflow::testkit::{after, task, workflow};
use crate::workflow::{WorkflowId, WorkflowState};

const START: Timestamp = Timestamp::from_micros(1_767_225_600_000_000);

async fn store() -> WorkflowStore {
    let clock = Clock::simulated(START, 1);
    let storage = Storage::from_backend(MemoryStorage::new(clock));
    let store = WorkflowStore::new(storage, Names::new(Prefix::parse("Test").unwrap()));
    store.ensure().await.unwrap();
    store
}

fn one_task() -> Definition {
    workflow(vec![task("a")])
}

fn two_tasks() -> Definition {
    workflow(vec![task("a"), after("b", &["a"])])
}

fn id() -> WorkflowId {
    WorkflowId::parse("w1").unwrap()
}

/// A workflow `w1` as submitted `seconds` after the start.
fn runtime(definition: &Definition, seconds: u64) -> Runtime {
    let mut runtime = Runtime::new(id(), definition, START.plus(Duration::from_secs(seconds)));
    runtime.set_definition_sha256(definition.sha256());
    runtime
}

/// Leaves the state blob of a submit that stopped before its row.
async fn crash_before_the_row(store: &WorkflowStore, runtime: &Runtime) {
    let (container, name) = (store.names().state_container(), Names::state_blob(&id()));
    let blobs = &store.storage().blobs;
    blobs
        .put(
            container,
            &name,
            state_blob::encode(runtime),
            Expect::Absent,
        )
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_submit_may_be_repeated() {
    let store = store().await;
    assert_eq!(
        store.submit(&runtime(&one_task(), 0)).await.unwrap(),
        Submitted::Created
    );
    assert_eq!(
        store.submit(&runtime(&one_task(), 5)).await.unwrap(),
        Submitted::Existed
    );
    let kept = store.load(&id()).await.unwrap().runtime;
    assert_eq!(kept.header().created_at, START, "the first one stays");
}

#[tokio::test(start_paused = true)]
async fn another_definition_under_the_same_id_is_refused() {
    let store = store().await;
    store.submit(&runtime(&one_task(), 0)).await.unwrap();
    let other = store.submit(&runtime(&two_tasks(), 3_600)).await;
    assert!(
        matches!(other, Err(Error::DifferentDefinition(_))),
        "{other:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_submit_that_crashed_before_its_row_is_mended_by_its_repetition() {
    let store = store().await;
    crash_before_the_row(&store, &runtime(&one_task(), 0)).await;
    assert!(store.row(&id()).await.unwrap().is_none());
    assert_eq!(
        store.submit(&runtime(&one_task(), 1)).await.unwrap(),
        Submitted::Existed
    );
    assert_eq!(store.row(&id()).await.unwrap().unwrap().total_tasks, 1);
}

#[tokio::test(start_paused = true)]
async fn what_an_old_crash_left_gives_way_to_another_definition() {
    let store = store().await;
    crash_before_the_row(&store, &runtime(&one_task(), 0)).await;
    // Just after, the first submit may still be about to write its row.
    let young = store.submit(&runtime(&two_tasks(), 5)).await;
    assert!(
        matches!(young, Err(Error::DifferentDefinition(_))),
        "{young:?}"
    );
    assert_eq!(
        store.submit(&runtime(&two_tasks(), 60)).await.unwrap(),
        Submitted::Created
    );
    assert_eq!(store.load(&id()).await.unwrap().runtime.tasks().len(), 2);
    assert_eq!(store.row(&id()).await.unwrap().unwrap().total_tasks, 2);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_survives_a_row_that_is_written_again() {
    let store = store().await;
    let submitted = runtime(&one_task(), 0);
    store.submit(&submitted).await.unwrap();
    store.request_cancel(&id()).await.unwrap();
    store.write_row(&submitted).await.unwrap();
    store.index_progress(&submitted).await.unwrap();
    assert!(store.row(&id()).await.unwrap().unwrap().cancel_requested);
}

#[tokio::test(start_paused = true)]
async fn progress_never_brings_back_a_deleted_row() {
    let store = store().await;
    let submitted = runtime(&one_task(), 0);
    store.submit(&submitted).await.unwrap();
    let key = EntityKey {
        partition: Names::partition_key(&id()),
        row: id().to_string(),
    };
    store
        .storage()
        .tables
        .delete(store.names().index_table(), &key)
        .await
        .unwrap();
    store.index_progress(&submitted).await.unwrap();
    assert!(store.row(&id()).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_flush_meets_another_writer_as_a_conflict() {
    let store = store().await;
    store.submit(&runtime(&one_task(), 0)).await.unwrap();
    let loaded = store.load(&id()).await.unwrap();
    store.flush(&loaded.runtime, &loaded.etag).await.unwrap();
    let stale = store.flush(&loaded.runtime, &loaded.etag).await;
    assert!(matches!(stale, Err(Error::Conflict(_))), "{stale:?}");
}

#[tokio::test(start_paused = true)]
async fn the_state_of_another_workflow_is_not_taken_for_this_one() {
    let store = store().await;
    let other = WorkflowId::parse("w2").unwrap();
    let strange = Runtime::new(other, &one_task(), START);
    crash_before_the_row(&store, &strange).await;
    let loaded = store.load(&id()).await;
    assert!(matches!(loaded, Err(Error::BadState { .. })), "{loaded:?}");
}

#[tokio::test(start_paused = true)]
async fn sweeps_find_new_and_cancelled_workflows_only() {
    let store = store().await;
    let states = [
        ("new", WorkflowState::Pending, false),
        ("asked", WorkflowState::Running, true),
        ("running", WorkflowState::Running, false),
        ("heard", WorkflowState::Cancelling, true),
        ("done", WorkflowState::Completed, true),
    ];
    for (name, state, cancel) in states {
        let key = EntityKey {
            partition: Names::partition_key(name),
            row: name.to_owned(),
        };
        let mut row = index_row::complete(&runtime(&one_task(), 0));
        let state = crate::storage::Value::String(state.as_str().to_owned());
        row.insert(index_row::WORKFLOW_STATE.to_owned(), state);
        row.insert(
            index_row::CANCEL_REQUESTED.to_owned(),
            crate::storage::Value::Bool(cancel),
        );
        store
            .storage()
            .tables
            .insert(store.names().index_table(), &key, row)
            .await
            .unwrap();
    }
    let ids = |page: RowPage| {
        let mut ids: Vec<_> = page.rows.into_iter().map(|row| row.workflow_id).collect();
        ids.sort();
        ids
    };
    assert_eq!(
        ids(store.rows_to_act_on(None).await.unwrap()),
        ["asked", "new"]
    );
    let open = ids(store.rows_not_terminal(None).await.unwrap());
    assert_eq!(open, ["asked", "heard", "new", "running"]);
}
