//! The use cases on the memory backend, without a coordinator.

use super::*;
use crate::clock::Timestamp;
use crate::storage::Storage;
use crate::storage::memory::MemoryStorage;
use crate::wire::{Names, Prefix};
use crate::workflow::definition::Definition;
use crate::workflow::runtime::LoadedOutputs;
use crate::workflow::testkit::{after, at, complete, dispatch_all, success, task, workflow};
use crate::workflow::{TaskState, WorkflowState};

async fn control() -> Control {
    let clock = Clock::simulated(Timestamp::from_micros(1_767_225_600_000_000), 1);
    let storage = Storage::from_backend(MemoryStorage::new(clock.clone()));
    let store = WorkflowStore::new(storage, Names::new(Prefix::parse("Test").unwrap()));
    store.ensure().await.unwrap();
    Control::new(store, clock, None)
}

async fn submit(control: &Control, id: Option<&str>, definition: Definition) -> WorkflowId {
    let id = id.map(|id| WorkflowId::parse(id).unwrap());
    control
        .submit(SubmitRequest {
            definition,
            id,
            max_fan_in: None,
        })
        .await
        .unwrap()
        .id
}

/// Changes a workflow's stored state as a coordinator would.
async fn change(
    control: &Control,
    id: &WorkflowId,
    change: impl FnOnce(&mut crate::workflow::runtime::Runtime),
) {
    let mut loaded = control.store.load(id).await.unwrap();
    change(&mut loaded.runtime);
    control
        .store
        .flush(&loaded.runtime, &loaded.etag)
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_submit_without_an_id_gets_one_that_sorts_by_time() {
    let control = control().await;
    let first = submit(&control, None, workflow(vec![task("a")])).await;
    tokio::time::advance(std::time::Duration::from_millis(5)).await;
    let second = submit(&control, None, workflow(vec![task("a")])).await;
    assert!(first < second, "{first} {second}");
}

#[tokio::test(start_paused = true)]
async fn a_wide_join_is_rewritten_on_request() {
    let control = control().await;
    let definition = workflow(vec![
        task("a"),
        task("b"),
        task("c"),
        task("d"),
        after("j", &["a", "b", "c", "d"]),
    ]);
    let request = SubmitRequest {
        definition,
        id: None,
        max_fan_in: Some(2),
    };
    let id = control.submit(request).await.unwrap().id;
    let tasks = control.tasks(&id).await.unwrap();
    assert!(
        tasks.iter().all(|task| task.depends_on.len() <= 3),
        "{tasks:?}"
    );
    assert!(tasks.iter().any(|task| task.name.starts_with("__merge_j_")));
}

#[tokio::test(start_paused = true)]
async fn listings_show_the_newest_first_and_filter() {
    let control = control().await;
    for (id, name) in [("w1", "train-a"), ("w2", "eval"), ("w3", "train-b")] {
        tokio::time::advance(std::time::Duration::from_secs(1)).await;
        let definition = Definition {
            name: name.to_owned(),
            ..workflow(vec![task("a")])
        };
        submit(&control, Some(id), definition).await;
    }
    let list = async |request: ListRequest| {
        let rows = control.list(&request).await.unwrap();
        rows.into_iter()
            .map(|row| row.workflow_id)
            .collect::<Vec<_>>()
    };
    assert_eq!(list(ListRequest::default()).await, ["w3", "w2", "w1"]);
    assert_eq!(
        list(ListRequest {
            limit: 2,
            ..ListRequest::default()
        })
        .await,
        ["w3", "w2"]
    );
    let name_prefix = Some("train-".to_owned());
    assert_eq!(
        list(ListRequest {
            name_prefix,
            ..ListRequest::default()
        })
        .await,
        ["w3", "w1"]
    );
    let states = vec![WorkflowState::Completed];
    assert!(
        list(ListRequest {
            states,
            ..ListRequest::default()
        })
        .await
        .is_empty()
    );
}

#[tokio::test(start_paused = true)]
async fn a_missing_output_says_why() {
    let control = control().await;
    let id = submit(
        &control,
        Some("w1"),
        workflow(vec![task("a"), after("b", &["a"])]),
    )
    .await;
    change(&control, &id, |runtime| {
        dispatch_all(runtime);
        complete(runtime, "a", &success(1));
    })
    .await;
    let reason = async |task: &str| {
        control
            .task_output(&id, task)
            .await
            .unwrap_err()
            .to_string()
    };
    assert!(
        reason("a").await.contains("wrote none"),
        "{}",
        reason("a").await
    );
    assert!(
        reason("b").await.contains("it is ready"),
        "{}",
        reason("b").await
    );
    assert!(
        reason("zz").await.contains("no task \"zz\""),
        "{}",
        reason("zz").await
    );
}

#[tokio::test(start_paused = true)]
async fn a_cancel_of_what_has_ended_is_refused_with_its_state() {
    let control = control().await;
    let id = submit(&control, Some("w1"), workflow(vec![task("a")])).await;
    control.cancel(&id).await.unwrap();
    control.cancel(&id).await.unwrap();
    change(&control, &id, |runtime| assert!(runtime.cancel(at(1)))).await;
    let refused = control.cancel(&id).await.unwrap_err();
    assert!(
        matches!(refused, Error::AlreadyTerminal(_, WorkflowState::Cancelled)),
        "{refused}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_shows_each_change_once() {
    let control = control().await;
    let id = submit(
        &control,
        Some("w1"),
        workflow(vec![task("a"), after("b", &["a"])]),
    )
    .await;
    let mut watch = control.watch(&id);
    let states = |snapshot: &Snapshot| {
        let changes = snapshot.changes.iter();
        changes
            .map(|change| (change.task.to_string(), change.state))
            .collect::<Vec<_>>()
    };
    // Pending is where every task begins, so it is no change.
    let first = watch.next().await.unwrap();
    assert_eq!(states(&first), [("a".to_owned(), TaskState::Ready)]);
    change(&control, &id, |runtime| {
        dispatch_all(runtime);
        complete(runtime, "a", &success(1));
        runtime.settle(&LoadedOutputs::new(), at(3));
    })
    .await;
    let second = watch.next().await.unwrap();
    let expected = [
        ("a".to_owned(), TaskState::Completed),
        ("b".to_owned(), TaskState::Ready),
    ];
    assert_eq!(states(&second), expected);
    let nothing = tokio::time::timeout(std::time::Duration::from_secs(5), watch.next()).await;
    assert!(nothing.is_err(), "nothing changed");
}
