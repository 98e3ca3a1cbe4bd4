//! The use cases on the memory backend, without a coordinator.

use super::*;
use crate::clock::Timestamp;
use crate::limits::AGE_MAX;
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
            id,
            ..SubmitRequest::new(definition)
        })
        .await
        .unwrap()
        .workflow_id
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
        max_fan_in: Some(2),
        ..SubmitRequest::new(definition)
    };
    let id = control.submit(request).await.unwrap().workflow_id;
    let tasks = control.tasks(&id, &TaskListRequest::default()).await;
    let tasks = tasks.unwrap().value.tasks;
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
        rows.workflows
            .into_iter()
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

async fn list(control: &Control, request: &ListRequest) -> Vec<String> {
    let (mut ids, mut request) = (Vec::new(), request.clone());
    loop {
        let page = control.list(&request).await.unwrap();
        ids.extend(page.workflows.into_iter().map(|row| row.workflow_id));
        request.page_token = page.next_page_token;
        if request.page_token.is_none() {
            return ids;
        }
    }
}

fn labels(pairs: &[(&str, &str)]) -> std::collections::BTreeMap<String, String> {
    let owned = pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    owned.collect()
}

#[tokio::test(start_paused = true)]
async fn pages_hold_every_workflow_once_in_either_order_while_others_come() {
    let control = control().await;
    for n in 0..25 {
        tokio::time::advance(std::time::Duration::from_secs(1)).await;
        submit(
            &control,
            Some(&format!("w{n:02}")),
            workflow(vec![task("a")]),
        )
        .await;
    }
    for (order, mut expected) in [
        (
            ListOrder::Newest,
            (0..25)
                .rev()
                .map(|n| format!("w{n:02}"))
                .collect::<Vec<_>>(),
        ),
        (ListOrder::Id, (0..25).map(|n| format!("w{n:02}")).collect()),
    ] {
        let mut request = ListRequest {
            order,
            limit: 7,
            ..ListRequest::default()
        };
        let first = control.list(&request).await.unwrap();
        // Before and after the place that was reached, in both orders.
        for id in ["a", "zz"] {
            submit(
                &control,
                Some(&format!("{id}-{order:?}")),
                workflow(vec![task("a")]),
            )
            .await;
        }
        request.page_token = first.next_page_token;
        let mut seen: Vec<_> = first
            .workflows
            .into_iter()
            .map(|row| row.workflow_id)
            .collect();
        seen.extend(list(&control, &request).await);
        seen.retain(|id| id.starts_with('w'));
        expected.dedup();
        assert_eq!(seen, expected, "{order:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn listings_filter_by_label_and_time_of_submit() {
    let control = control().await;
    let mut times = Vec::new();
    for (id, team) in [("w1", "nlp"), ("w2", "vision"), ("w3", "nlp")] {
        tokio::time::advance(std::time::Duration::from_secs(1)).await;
        times.push(control.clock.now());
        let mut request = SubmitRequest::new(workflow(vec![task("a")]));
        request.id = Some(WorkflowId::parse(id).unwrap());
        request.labels = labels(&[("team", team), ("cost center", "7")]);
        control.submit(request).await.unwrap();
    }
    let everything = ListRequest::default();
    let by_team = ListRequest {
        labels: labels(&[("team", "nlp"), ("cost center", "7")]),
        ..everything.clone()
    };
    assert_eq!(list(&control, &by_team).await, ["w3", "w1"]);
    for order in [ListOrder::Newest, ListOrder::Id] {
        let between = ListRequest {
            created_from: Some(times[1]),
            created_to: Some(times[2]),
            order,
            ..everything.clone()
        };
        assert_eq!(list(&control, &between).await, ["w2"], "{order:?}");
    }
    let page = control.list(&everything).await.unwrap();
    assert_eq!(page.workflows[0].labels["team"], "nlp");
}

#[tokio::test(start_paused = true)]
async fn a_page_token_serves_only_the_listing_it_came_from() {
    let control = control().await;
    for id in ["w1", "w2"] {
        submit(&control, Some(id), workflow(vec![task("a")])).await;
    }
    let mut request = ListRequest {
        limit: 1,
        ..ListRequest::default()
    };
    request.page_token = control.list(&request).await.unwrap().next_page_token;
    request.name_prefix = Some("other".to_owned());
    let refused = control.list(&request).await.unwrap_err();
    assert_eq!(refused.code(), "invalid_page_token");
    request.limit = 0;
    assert_eq!(
        control.list(&request).await.unwrap_err().code(),
        "invalid_argument"
    );
}

#[tokio::test(start_paused = true)]
async fn an_idempotency_key_stands_for_one_workflow() {
    let control = control().await;
    let submit = async |key: &str, definition: Definition| {
        let mut request = SubmitRequest::new(definition);
        request.idempotency_key = Some(key.to_owned());
        control.submit(request).await
    };
    let one = submit("k", workflow(vec![task("a")])).await.unwrap();
    let again = submit("k", workflow(vec![task("a")])).await.unwrap();
    assert_eq!((one.created, again.created), (true, false));
    assert_eq!(one.workflow_id, again.workflow_id);
    let other = submit("k", workflow(vec![task("b")])).await.unwrap_err();
    assert_eq!(other.code(), "different_definition");
    assert_eq!(
        submit("", workflow(vec![task("a")]))
            .await
            .unwrap_err()
            .code(),
        "invalid_argument"
    );
}

#[tokio::test(start_paused = true)]
async fn labels_have_bounds() {
    let control = control().await;
    let with = |labels| {
        let mut request = SubmitRequest::new(workflow(vec![task("a")]));
        request.labels = labels;
        control.validate(request)
    };
    let many = |n: usize| (0..n).map(|n| (n.to_string(), String::new())).collect();
    let long = |n: usize| labels(&[("key", &"x".repeat(n))]);
    assert!(with(many(crate::limits::LABELS_MAX)).is_ok());
    assert!(with(many(crate::limits::LABELS_MAX + 1)).is_err());
    assert!(with(long(crate::limits::LABEL_BYTES_MAX)).is_ok());
    assert!(with(long(crate::limits::LABEL_BYTES_MAX + 1)).is_err());
    assert!(with(labels(&[("", "x")])).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_batch_answers_each_in_order_and_refuses_too_many() {
    let control = control().await;
    submit(&control, Some("taken"), workflow(vec![task("a")])).await;
    let request = |id: &str| SubmitRequest {
        id: Some(WorkflowId::parse(id).unwrap()),
        ..SubmitRequest::new(workflow(vec![task("b")]))
    };
    let requests = ["one", "taken", "two"].map(request).to_vec();
    let answers = control.submit_batch(requests).await.unwrap();
    let codes: Vec<_> = answers
        .iter()
        .map(|answer| answer.as_ref().map_or_else(Error::code, |_| "ok"))
        .collect();
    assert_eq!(codes, ["ok", "different_definition", "ok"]);
    let many = vec![request("x"); crate::limits::SUBMIT_BATCH_MAX + 1];
    assert_eq!(
        control.submit_batch(many).await.unwrap_err().code(),
        "invalid_argument"
    );
}

/// A workflow of which `bad` failed and `child` waits for it in vain.
async fn failed(control: &Control) -> WorkflowId {
    let definition = workflow(vec![task("good"), task("bad"), after("child", &["bad"])]);
    let id = submit(control, Some("w1"), definition).await;
    change(control, &id, |runtime| {
        dispatch_all(runtime);
        complete(runtime, "good", &success(1));
        complete(runtime, "bad", &crate::workflow::testkit::failure(1));
    })
    .await;
    id
}

#[tokio::test(start_paused = true)]
async fn a_retry_tells_what_it_would_do_and_then_does_it() {
    let control = control().await;
    let id = failed(&control).await;
    let ask = RetryRequest {
        dry_run: true,
        task: None,
    };
    let would = control.retry(&id, &ask).await.unwrap();
    let named: Vec<_> = would
        .tasks
        .iter()
        .map(crate::workflow::TaskName::as_str)
        .collect();
    assert_eq!(named, ["bad", "child"]);
    let state = async || control.get(&id).await.unwrap().value.workflow_state;
    assert_eq!(state().await, WorkflowState::Failed);
    let did = control.retry(&id, &RetryRequest::default()).await.unwrap();
    assert_eq!(did.tasks, would.tasks);
    assert_eq!(state().await, WorkflowState::Running);
    let bad = control.task(&id, "bad").await.unwrap().value;
    assert_eq!((bad.attempt_no, bad.retry_no), (0, 1));
    let again = control
        .retry(&id, &RetryRequest::default())
        .await
        .unwrap_err();
    assert_eq!(again.code(), "nothing_to_retry");
}

#[tokio::test(start_paused = true)]
async fn a_retry_takes_a_cancel_back_and_a_later_cancel_counts() {
    let control = control().await;
    let id = submit(&control, Some("w1"), workflow(vec![task("a")])).await;
    control.cancel(&id).await.unwrap();
    change(&control, &id, |runtime| assert!(runtime.cancel(at(1)))).await;
    control.retry(&id, &RetryRequest::default()).await.unwrap();
    let row = control.store.row(&id).await.unwrap().unwrap();
    assert!(!row.cancel_requested);
    // Whoever leads looks at it because of this.
    assert_eq!(row.workflow_state, WorkflowState::Pending);
    control.cancel(&id).await.unwrap();
    assert!(
        control
            .store
            .row(&id)
            .await
            .unwrap()
            .unwrap()
            .cancel_requested
    );
}

#[tokio::test(start_paused = true)]
async fn a_deleted_workflow_leaves_nothing_behind() {
    let control = control().await;
    let id = failed(&control).await;
    let outputs = control.store.names().outputs_container().to_owned();
    let blobs = &control.store.storage().blobs;
    for name in ["w1/good.json", "w10/other.json"] {
        let put = blobs.put(&outputs, name, "1".into(), crate::storage::Expect::Anything);
        put.await.unwrap();
    }
    control.delete(&id, false).await.unwrap();
    assert_eq!(
        control.get(&id).await.unwrap_err().code(),
        "workflow_not_found"
    );
    assert!(list(&control, &ListRequest::default()).await.is_empty());
    assert!(control.store.row(&id).await.unwrap().is_none());
    let left = blobs.list(&outputs, "", None, 10).await.unwrap().blobs;
    assert_eq!(
        left.len(),
        1,
        "another workflow's output was deleted: {left:?}"
    );
    assert_eq!(
        control.delete(&id, false).await.unwrap_err().code(),
        "workflow_not_found"
    );
}

#[tokio::test(start_paused = true)]
async fn a_workflow_that_has_not_ended_is_deleted_by_force_only() {
    let control = control().await;
    let id = submit(&control, Some("w1"), workflow(vec![task("a")])).await;
    assert_eq!(
        control.delete(&id, false).await.unwrap_err().code(),
        "not_terminal"
    );
    control.delete(&id, true).await.unwrap();
    assert_eq!(
        control.get(&id).await.unwrap_err().code(),
        "workflow_not_found"
    );
}

#[tokio::test(start_paused = true)]
async fn a_purge_takes_the_old_that_have_ended_and_no_more_than_told() {
    let control = control().await;
    for id in ["w1", "w2", "w3", "live"] {
        let id = submit(&control, Some(id), workflow(vec![task("a")])).await;
        if id.as_str() != "live" {
            change(&control, &id, |runtime| assert!(runtime.cancel(at(1)))).await;
            let ended = control.store.load(&id).await.unwrap().runtime;
            control.store.index_progress(&ended).await.unwrap();
        }
    }
    tokio::time::advance(std::time::Duration::from_secs(7_200)).await;
    let request = PurgeRequest {
        states: vec![WorkflowState::Cancelled],
        older_than: std::time::Duration::from_secs(3_600),
        limit: 2,
        dry_run: true,
    };
    let would = control.purge(&request).await.unwrap();
    assert_eq!((would.workflow_ids.len(), would.more), (2, true));
    let all = PurgeRequest {
        dry_run: false,
        limit: 10,
        ..request.clone()
    };
    assert_eq!(control.purge(&all).await.unwrap().workflow_ids.len(), 3);
    assert_eq!(list(&control, &ListRequest::default()).await, ["live"]);
    let ancient = PurgeRequest {
        older_than: AGE_MAX,
        ..request.clone()
    };
    assert!(
        control
            .purge(&ancient)
            .await
            .unwrap()
            .workflow_ids
            .is_empty()
    );
    let older = PurgeRequest {
        older_than: AGE_MAX + std::time::Duration::from_secs(1),
        ..request.clone()
    };
    assert_eq!(
        control.purge(&older).await.unwrap_err().code(),
        "invalid_argument"
    );
    let live = PurgeRequest {
        states: vec![WorkflowState::Running],
        ..request
    };
    assert_eq!(
        control.purge(&live).await.unwrap_err().code(),
        "invalid_argument"
    );
}

#[tokio::test(start_paused = true)]
async fn a_summary_counts_every_state() {
    let control = control().await;
    submit(&control, Some("w1"), workflow(vec![task("a"), task("b")])).await;
    let summary = control.summary().await.unwrap();
    assert_eq!(summary.workflows[&WorkflowState::Pending], 1);
    assert_eq!(summary.workflows.len(), WorkflowState::ALL.len());
    assert_eq!((summary.pending_tasks, summary.complete), (2, true));
}

#[tokio::test(start_paused = true)]
async fn a_definition_read_back_is_the_one_submitted() {
    let control = control().await;
    let definition = workflow(vec![task("a"), after("b", &["a"])]);
    let (digest, id) = (
        definition.sha256(),
        submit(&control, Some("w1"), definition).await,
    );
    let text = control.definition(&id).await.unwrap().value;
    assert_eq!(Definition::from_json(&text).unwrap().sha256(), digest);
}

#[tokio::test(start_paused = true)]
async fn an_explanation_names_what_a_task_waits_for() {
    let control = control().await;
    let mut definition = workflow(vec![task("a"), task("b"), after("c", &["a", "b"])]);
    definition.max_parallelism = Some(1);
    let id = submit(&control, Some("w1"), definition).await;
    change(&control, &id, |runtime| {
        dispatch_all(runtime);
    })
    .await;
    let codes = async |task: &str| {
        let explanation = control.explain(&id, task).await.unwrap();
        let codes = explanation
            .findings
            .into_iter()
            .map(|finding| finding.code.into_owned());
        codes.collect::<Vec<_>>()
    };
    assert_eq!(codes("a").await, ["pushed", "queue_length", "nobody_leads"]);
    assert_eq!(codes("b").await, ["waits_for_slot", "nobody_leads"]);
    assert_eq!(codes("c").await, ["waits_for_dependencies", "nobody_leads"]);
    let c = control.explain(&id, "c").await.unwrap();
    let named: Vec<_> = c.findings[0]
        .tasks
        .iter()
        .map(crate::workflow::TaskName::as_str)
        .collect();
    assert_eq!(named, ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn tasks_are_filtered_and_paged() {
    let control = control().await;
    let tasks: Vec<_> = (0..5).map(|n| task(&format!("t{n}"))).collect();
    let id = submit(&control, Some("w1"), workflow(tasks)).await;
    let mut request = TaskListRequest {
        limit: Some(2),
        name_prefix: Some("t".to_owned()),
        ..TaskListRequest::default()
    };
    let mut names = Vec::new();
    loop {
        let page = control.tasks(&id, &request).await.unwrap().value;
        assert!(page.tasks.len() <= 2);
        names.extend(page.tasks.into_iter().map(|task| task.name.to_string()));
        request.page_token = page.next_page_token;
        if request.page_token.is_none() {
            break;
        }
    }
    assert_eq!(names, ["t0", "t1", "t2", "t3", "t4"]);
    request.queue = Some("elsewhere".to_owned());
    assert!(
        control
            .tasks(&id, &request)
            .await
            .unwrap()
            .value
            .tasks
            .is_empty()
    );
}

/// The tasks and states of the next changes.
async fn changes(watcher: &mut Watcher) -> (Vec<(String, TaskState)>, String) {
    match watcher.next().await.unwrap() {
        WatchEvent::Changes {
            changes,
            resume_token,
            ..
        } => {
            let changes = changes
                .into_iter()
                .map(|change| (change.task.to_string(), change.state));
            (changes.collect(), resume_token)
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_comes_back_sees_every_change_once() {
    let control = control().await;
    let tasks: Vec<_> = ["a", "b", "c"].map(task).to_vec();
    let id = submit(&control, Some("w1"), workflow(tasks)).await;
    let hub = WatchHub::new(control.clone());
    let mut watcher = hub.watch(&id, None).await.unwrap();
    let snapshot = watcher.next().await.unwrap();
    assert_eq!(snapshot.name(), "snapshot");
    change(&control, &id, |runtime| drop(dispatch_all(runtime))).await;
    let (first, token) = changes(&mut watcher).await;
    assert_eq!(first.len(), 3);
    drop(watcher);
    // While it is away, two more changes.
    let mut other = hub.watch(&id, None).await.unwrap();
    other.next().await.unwrap();
    for name in ["a", "b"] {
        change(&control, &id, |runtime| {
            complete(runtime, name, &success(1));
        })
        .await;
        changes(&mut other).await;
    }
    let mut watcher = hub.watch(&id, Some(&token)).await.unwrap();
    let completed = |name: &str| vec![(name.to_owned(), TaskState::Completed)];
    assert_eq!(changes(&mut watcher).await.0, completed("a"));
    assert_eq!(changes(&mut watcher).await.0, completed("b"));
    change(&control, &id, |runtime| {
        complete(runtime, "c", &success(1));
    })
    .await;
    let (last, token_of_the_last) = changes(&mut watcher).await;
    assert_eq!(last, completed("c"));
    assert_eq!(watcher.next().await.unwrap().name(), "end");
    assert!(watcher.next().await.is_none());
    // Also who comes back after the end is told the rest, and nothing twice.
    let mut late = hub.watch(&id, Some(&token)).await.unwrap();
    for name in ["a", "b", "c"] {
        assert_eq!(changes(&mut late).await.0, completed(name));
    }
    assert_eq!(late.next().await.unwrap().name(), "end");
    let mut later = hub.watch(&id, Some(&token_of_the_last)).await.unwrap();
    assert_eq!(later.next().await.unwrap().name(), "end");
}

#[tokio::test(start_paused = true)]
async fn a_workflow_with_another_life_is_watched_afresh() {
    let control = control().await;
    let id = submit(&control, Some("w1"), workflow(vec![task("a")])).await;
    change(&control, &id, |runtime| assert!(runtime.cancel(at(1)))).await;
    let hub = WatchHub::new(control.clone());
    let mut first = hub.watch(&id, None).await.unwrap();
    let token = first
        .next()
        .await
        .unwrap()
        .resume_token()
        .unwrap()
        .to_owned();
    assert_eq!(first.next().await.unwrap().name(), "end");
    control.retry(&id, &RetryRequest::default()).await.unwrap();
    let mut second = hub.watch(&id, Some(&token)).await.unwrap();
    assert_eq!(second.next().await.unwrap().name(), "gap");
    match second.next().await.unwrap() {
        WatchEvent::Snapshot { workflow, .. } => assert!(!workflow.workflow_state.is_terminal()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_told_is_a_gap_and_a_snapshot() {
    let control = control().await;
    let id = submit(&control, Some("w1"), workflow(vec![task("a")])).await;
    let hub = WatchHub::new(control.clone());
    let mut watcher = hub.watch(&id, Some("0123-7")).await.unwrap();
    let names = [watcher.next().await.unwrap(), watcher.next().await.unwrap()];
    assert_eq!(names.map(|event| event.name()), ["gap", "snapshot"]);
    control.delete(&id, true).await.unwrap();
    assert_eq!(watcher.next().await.unwrap().name(), "end");
    assert_eq!(
        hub.watch(&id, None).await.unwrap_err().code(),
        "workflow_not_found"
    );
}

#[tokio::test(start_paused = true)]
async fn a_watcher_too_slow_is_told_so_and_holds_nobody_up() {
    let control = control().await;
    let tasks: Vec<_> = (0..2_000).map(|n| task(&format!("t{n}"))).collect();
    let id = submit(&control, Some("w1"), workflow(tasks)).await;
    let hub = WatchHub::new(control.clone());
    let mut slow = hub.watch(&id, None).await.unwrap();
    let mut quick = hub.watch(&id, None).await.unwrap();
    slow.next().await.unwrap();
    quick.next().await.unwrap();
    // Each round changes every task, more in all than are kept.
    for round in 1..=crate::limits::WATCH_CHANGES_MAX / 2_000 + 1 {
        change(&control, &id, |runtime| {
            dispatch_all(runtime);
            if round % 2 == 0 {
                for n in 0..2_000 {
                    complete(
                        runtime,
                        &format!("t{n}"),
                        &crate::workflow::testkit::failure(1),
                    );
                }
                let again: Vec<_> = runtime.retryable().collect();
                runtime.retry(&again, &LoadedOutputs::new(), at(9));
            }
        })
        .await;
        assert_eq!(changes(&mut quick).await.0.len(), 2_000);
    }
    let names = [slow.next().await.unwrap(), slow.next().await.unwrap()];
    assert_eq!(names.map(|event| event.name()), ["gap", "snapshot"]);
}
