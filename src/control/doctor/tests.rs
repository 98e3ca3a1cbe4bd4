//! Each finding, and that a healthy place has none.

use super::*;
use crate::clock::{Clock, Timestamp};
use crate::control::SubmitRequest;
use crate::coordinator::{Coordinator, CoordinatorConfig};
use crate::storage::memory::MemoryStorage;
use crate::storage::{Expect, OutgoingMessage, Storage};
use crate::store::WorkflowStore;
use crate::wire::{Names, Prefix};
use crate::workflow::testkit::{task, workflow};
use crate::workflow::{WorkflowId, WorkflowState};

async fn control() -> Control {
    let clock = Clock::simulated(Timestamp::from_micros(1_767_225_600_000_000), 1);
    let storage = Storage::from_backend(MemoryStorage::new(clock.clone()));
    let store = WorkflowStore::new(storage, Names::new(Prefix::parse("Test").unwrap()));
    store.ensure().await.unwrap();
    Control::new(store, clock, None)
}

async fn submit(control: &Control, id: &str) -> WorkflowId {
    let mut request = SubmitRequest::new(workflow(vec![task("a")]));
    request.id = Some(WorkflowId::parse(id).unwrap());
    control.submit(request).await.unwrap().workflow_id
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// The checks that are not well.
async fn wrong(control: &Control) -> Vec<String> {
    let report = control.doctor(&DoctorRequest::default()).await.unwrap();
    let wrong = report
        .checks
        .iter()
        .filter(|check| check.status != CheckStatus::Ok);
    wrong.map(|check| check.code.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_place_with_a_leader_and_nothing_in_it_is_well() {
    let control = control().await;
    let coordinator = Coordinator::new(
        CoordinatorConfig::default(),
        control.store.clone(),
        control.clock.clone(),
    );
    let stop = tokio_util::sync::CancellationToken::new();
    let running = tokio::spawn({
        let stop = stop.clone();
        async move { coordinator.run(stop).await }
    });
    pass(1).await;
    let report = control.doctor(&DoctorRequest::default()).await.unwrap();
    assert_eq!(report.status, CheckStatus::Ok, "{report:#?}");
    let codes: Vec<_> = report
        .checks
        .iter()
        .map(|check| check.code.as_ref())
        .collect();
    let expected: Vec<_> = CODES.iter().map(|(code, ..)| *code).collect();
    assert_eq!(codes, expected);
    stop.cancel();
    running.await.unwrap().unwrap();
    // The lease was released.
    assert_eq!(wrong(&control).await, ["leader"]);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_too_long_is_found() {
    let control = control().await;
    submit(&control, "w1").await;
    let queues = &control.store.storage().queues;
    let completions = control.store.names().completion_queue();
    queues
        .send(completions, vec![OutgoingMessage::new("x")])
        .await;
    queues
        .send("default", vec![OutgoingMessage::new("x")])
        .await;
    assert_eq!(wrong(&control).await, ["leader"]);
    pass(4_000).await;
    let expected = ["leader", "completions", "pending", "ready", "task_queues"];
    assert_eq!(wrong(&control).await, expected);
    let report = control.doctor(&DoctorRequest::default()).await.unwrap();
    let pending = report
        .checks
        .iter()
        .find(|check| check.code == "pending")
        .unwrap();
    assert_eq!(pending.workflow_ids, ["w1"]);
    assert!(pending.fix.as_ref().unwrap().contains("jobq explain"));
}

#[tokio::test(start_paused = true)]
async fn a_state_without_a_row_is_mended() {
    let control = control().await;
    let id = submit(&control, "w1").await;
    let tables = &control.store.storage().tables;
    let key = crate::storage::EntityKey {
        partition: Names::partition_key(&id),
        row: id.to_string(),
    };
    tables
        .delete(control.store.names().index_table(), &key)
        .await
        .unwrap();
    assert_eq!(
        wrong(&control).await,
        ["leader"],
        "it may be a submit under way"
    );
    pass(60).await;
    assert_eq!(wrong(&control).await, ["leader", "orphans"]);
    let fix = DoctorRequest {
        fix: true,
        ..DoctorRequest::default()
    };
    assert_eq!(control.doctor(&fix).await.unwrap().fixed, 1);
    assert_eq!(wrong(&control).await, ["leader", "ready"]);
}

#[tokio::test(start_paused = true)]
async fn a_row_that_says_otherwise_and_one_without_a_state_are_mended() {
    let control = control().await;
    let id = submit(&control, "w1").await;
    let gone = submit(&control, "w2").await;
    let mut loaded = control.store.load(&id).await.unwrap();
    assert!(loaded.runtime.cancel(control.clock.now()));
    control
        .store
        .flush(&loaded.runtime, &loaded.etag)
        .await
        .unwrap();
    let container = control.store.names().state_container();
    let blobs = &control.store.storage().blobs;
    blobs
        .delete(container, &Names::state_blob(&gone))
        .await
        .unwrap();
    pass(60).await;
    assert_eq!(wrong(&control).await, ["leader", "drift", "rows"]);
    let fix = DoctorRequest {
        fix: true,
        ..DoctorRequest::default()
    };
    assert_eq!(control.doctor(&fix).await.unwrap().fixed, 2);
    assert_eq!(wrong(&control).await, ["leader"]);
    let row = control.store.row(&id).await.unwrap().unwrap();
    assert_eq!(row.workflow_state, WorkflowState::Cancelled);
    assert!(control.store.row(&gone).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_state_that_cannot_be_read_is_named() {
    let control = control().await;
    let container = control.store.names().state_container();
    let blobs = &control.store.storage().blobs;
    let put = blobs.put(container, "w9.json", "{\"v\": 7}".into(), Expect::Absent);
    put.await.unwrap();
    let report = control.doctor(&DoctorRequest::default()).await.unwrap();
    let states = report
        .checks
        .iter()
        .find(|check| check.code == "states")
        .unwrap();
    assert_eq!(
        (states.status, &states.workflow_ids[..]),
        (CheckStatus::Fail, &["w9".to_owned()][..])
    );
}

#[tokio::test(start_paused = true)]
async fn a_place_that_was_never_set_up_is_told_as_such() {
    let clock = Clock::simulated(Timestamp::from_micros(1_767_225_600_000_000), 1);
    let storage = Storage::from_backend(MemoryStorage::new(clock.clone()));
    let names = Names::new(Prefix::parse("Test").unwrap());
    let containers = [
        names.state_container(),
        names.index_table(),
        names.completion_queue(),
    ];
    let [container, table, queue] = containers.map(str::to_owned);
    let control = Control::new(WorkflowStore::new(storage.clone(), names), clock, None);
    assert_eq!(wrong(&control).await, ["storage"]);
    storage.blobs.create_container(&container).await.unwrap();
    storage.tables.create_table(&table).await.unwrap();
    storage.queues.create_queue(&queue).await.unwrap();
    assert_eq!(wrong(&control).await, ["configuration", "leader"]);
}

#[tokio::test(start_paused = true)]
async fn ages_and_samples_are_bounded() {
    let control = control().await;
    let usual = DoctorRequest::default;
    let at_the_bounds = DoctorRequest {
        pending_too_long: AGE_MAX,
        sample: DOCTOR_SAMPLE_MAX,
        ..usual()
    };
    assert!(control.doctor(&at_the_bounds).await.is_ok());
    let beyond = AGE_MAX + Duration::from_secs(1);
    let refused = [
        DoctorRequest {
            pending_too_long: beyond,
            ..usual()
        },
        DoctorRequest {
            running_too_long: beyond,
            ..usual()
        },
        DoctorRequest {
            completion_too_old: beyond,
            ..usual()
        },
        DoctorRequest {
            task_too_old: beyond,
            ..usual()
        },
        DoctorRequest {
            sample: 0,
            ..usual()
        },
        DoctorRequest {
            sample: DOCTOR_SAMPLE_MAX + 1,
            ..usual()
        },
    ];
    for request in refused {
        let error = control.doctor(&request).await.unwrap_err();
        assert_eq!(error.code(), "invalid_argument", "{request:?}");
    }
}

#[test]
fn the_documented_codes_are_those_there_are() {
    let doc = include_str!("../../../docs/doctor.md");
    let (_, table) = doc.split_once("| --- |").unwrap();
    let written: Vec<_> = table
        .lines()
        .skip(1)
        .take_while(|line| line.starts_with("| `"))
        .collect();
    let expected: Vec<_> = CODES
        .iter()
        .map(|(code, meaning, fix)| format!("| `{code}` | {meaning} | {fix} |"))
        .collect();
    assert_eq!(
        written,
        expected,
        "the table should be:\n{}",
        expected.join("\n")
    );
}
