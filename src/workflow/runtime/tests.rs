//! The rules of the runtime, one test each. The fixtures' traces and the properties beside this
//! file cover their combinations.

use serde_json::value::RawValue;

use super::*;
use crate::workflow::testkit::*;
use crate::workflow::{DepPolicy, Seconds, TaskState, definition::TaskDefinition};

fn state_of(runtime: &Runtime, task: &str) -> TaskState {
    runtime.task(runtime.find(task).unwrap()).state()
}

#[test]
fn roots_start_ready_and_the_workflow_pending() {
    let runtime = started(&workflow(vec![task("a"), after("b", &["a"])]));
    assert_eq!(state_of(&runtime, "a"), TaskState::Ready);
    assert_eq!(state_of(&runtime, "b"), TaskState::Pending);
    assert_eq!(runtime.state(), WorkflowState::Pending);
}

#[test]
fn a_completion_makes_children_ready_in_the_same_step() {
    let mut runtime = started(&workflow(vec![task("a"), after("b", &["a"])]));
    assert_eq!(dispatch_all(&mut runtime), [("a".to_owned(), 1)]);
    assert_eq!(runtime.state(), WorkflowState::Running);
    assert_eq!(complete(&mut runtime, "a", &success(1)), Applied::Finished);
    assert_eq!(dispatch_all(&mut runtime), [("b".to_owned(), 1)]);
    complete(&mut runtime, "b", &success(1));
    assert_eq!(runtime.state(), WorkflowState::Completed);
}

#[test]
fn num_retries_allows_that_many_more_attempts() {
    let mut runtime = started(&workflow(vec![TaskDefinition {
        num_retries: 2,
        ..task("a")
    }]));
    for attempt_no in 1..=2 {
        assert_eq!(dispatch_all(&mut runtime), [("a".to_owned(), attempt_no)]);
        assert_eq!(
            complete(&mut runtime, "a", &failure(attempt_no)),
            Applied::Rearmed
        );
    }
    assert_eq!(dispatch_all(&mut runtime), [("a".to_owned(), 3)]);
    assert_eq!(complete(&mut runtime, "a", &failure(3)), Applied::Finished);
    assert_eq!(runtime.state(), WorkflowState::Failed);
    assert_eq!(runtime.error(), Some("task \"a\" failed: no"));
}

#[test]
fn duplicate_and_stale_completions_change_nothing() {
    let mut runtime = started(&workflow(vec![TaskDefinition {
        num_retries: 1,
        ..task("a")
    }]));
    dispatch_all(&mut runtime);
    complete(&mut runtime, "a", &failure(1));
    let stale = Applied::Ignored(IgnoredBecause::StaleAttempt);
    assert_eq!(complete(&mut runtime, "a", &failure(1)), stale);
    dispatch_all(&mut runtime);
    assert_eq!(complete(&mut runtime, "a", &success(1)), stale);
    assert_eq!(complete(&mut runtime, "a", &success(2)), Applied::Finished);
    let duplicate = Applied::Ignored(IgnoredBecause::AlreadyTerminal);
    assert_eq!(complete(&mut runtime, "a", &failure(2)), duplicate);
    assert_eq!(runtime.state(), WorkflowState::Completed);
}

#[test]
fn a_later_attempt_is_caught_up_with_after_a_lost_flush() {
    let mut runtime = started(&workflow(vec![TaskDefinition {
        num_retries: 2,
        ..task("a")
    }]));
    // Attempt 1 was pushed, and the state that said so was lost: here the task is still ready.
    assert_eq!(complete(&mut runtime, "a", &failure(1)), Applied::Rearmed);
    assert_eq!(complete(&mut runtime, "a", &success(2)), Applied::Finished);
    assert_eq!(runtime.state(), WorkflowState::Completed);
    runtime.check().unwrap();
}

#[test]
fn an_attempt_that_cannot_exist_is_ignored() {
    let mut runtime = started(&workflow(vec![task("a"), after("b", &["a"])]));
    dispatch_all(&mut runtime);
    let impossible = Applied::Ignored(IgnoredBecause::ImpossibleAttempt);
    assert_eq!(complete(&mut runtime, "a", &success(2)), impossible);
    assert_eq!(complete(&mut runtime, "b", &success(1)), impossible);
    assert_eq!(state_of(&runtime, "a"), TaskState::Running);
}

#[test]
fn a_completion_without_attempt_means_the_current_one() {
    let mut runtime = started(&workflow(vec![task("a")]));
    let report = Completion {
        attempt_no: None,
        retry_no: None,
        ..success(1)
    };
    let early = Applied::Ignored(IgnoredBecause::StaleAttempt);
    assert_eq!(complete(&mut runtime, "a", &report), early);
    dispatch_all(&mut runtime);
    assert_eq!(complete(&mut runtime, "a", &report), Applied::Finished);
}

#[test]
fn failures_break_the_children_all_the_way_down() {
    let mut runtime = started(&workflow(vec![
        task("a"),
        after("b", &["a"]),
        after("c", &["b"]),
    ]));
    dispatch_all(&mut runtime);
    complete(&mut runtime, "a", &failure(1));
    assert_eq!(state_of(&runtime, "b"), TaskState::UpstreamFailed);
    assert_eq!(state_of(&runtime, "c"), TaskState::UpstreamFailed);
    assert_eq!(runtime.state(), WorkflowState::Failed);
}

#[test]
fn all_settled_absorbs_a_failure() {
    let join = TaskDefinition {
        dep_policy: DepPolicy::AllSettled,
        ..after("j", &["a", "b"])
    };
    let mut runtime = started(&workflow(vec![task("a"), task("b"), join]));
    dispatch_all(&mut runtime);
    complete(&mut runtime, "a", &failure(1));
    assert_eq!(state_of(&runtime, "j"), TaskState::Pending);
    complete(&mut runtime, "b", &success(1));
    assert_eq!(dispatch_all(&mut runtime), [("j".to_owned(), 1)]);
    complete(&mut runtime, "j", &success(1));
    assert_eq!(runtime.state(), WorkflowState::Completed);
}

#[test]
fn a_freed_slot_goes_to_the_longest_waiting_task() {
    let mut definition = workflow(vec![task("a"), task("b"), task("c"), after("d", &["a"])]);
    definition.max_parallelism = Some(2);
    let mut runtime = started(&definition);
    assert_eq!(dispatch_all(&mut runtime).len(), 2);
    complete(&mut runtime, "a", &success(1));
    assert_eq!(dispatch_all(&mut runtime), [("c".to_owned(), 1)]);
    complete(&mut runtime, "b", &success(1));
    assert_eq!(dispatch_all(&mut runtime), [("d".to_owned(), 1)]);
}

#[test]
fn cancel_ends_what_waits_and_lets_running_tasks_report() {
    let flaky = TaskDefinition {
        num_retries: 3,
        ..task("a")
    };
    let mut definition = workflow(vec![flaky, task("b"), after("c", &["b"])]);
    definition.max_parallelism = Some(1);
    let mut runtime = started(&definition);
    dispatch_all(&mut runtime);
    assert!(runtime.cancel(at(2)));
    assert!(!runtime.cancel(at(2)), "a second cancel changes nothing");
    assert_eq!(state_of(&runtime, "b"), TaskState::Cancelled);
    assert_eq!(state_of(&runtime, "c"), TaskState::Cancelled);
    assert_eq!(runtime.state(), WorkflowState::Cancelling);
    assert_eq!(runtime.dispatchable().count(), 0);
    assert_eq!(
        complete(&mut runtime, "a", &failure(1)),
        Applied::Finished,
        "no re-arming"
    );
    assert_eq!(runtime.state(), WorkflowState::Cancelled);
    runtime.check().unwrap();
}

#[test]
fn an_output_in_a_blob_is_asked_for_before_its_condition_is_judged() {
    let gated = TaskDefinition {
        condition: Some("inputs.a.ok".to_owned()),
        ..after("b", &["a"])
    };
    let mut runtime = started(&workflow(vec![task("a"), gated]));
    dispatch_all(&mut runtime);
    let report = Completion {
        output_ref: Some("blob:w1/a.json"),
        ..success(1)
    };
    let a = runtime.find("a").unwrap();
    runtime.apply(a, &report, at(2));
    assert_eq!(
        runtime.settle(&LoadedOutputs::default(), at(2)),
        ["w1/a.json"]
    );
    assert_eq!(state_of(&runtime, "b"), TaskState::Pending);
    assert!(runtime.is_undecided());
    let loaded =
        LoadedOutputs::from([("w1/a.json".to_owned(), Ok(serde_json::json!({"ok": true})))]);
    assert!(runtime.settle(&loaded, at(3)).is_empty());
    assert_eq!(state_of(&runtime, "b"), TaskState::Ready);
}

#[test]
fn an_output_that_is_gone_skips_with_the_reason() {
    let gated = TaskDefinition {
        condition: Some("inputs.a.ok".to_owned()),
        ..after("b", &["a"])
    };
    let mut runtime = started(&workflow(vec![task("a"), gated]));
    dispatch_all(&mut runtime);
    let report = Completion {
        output_ref: Some("blob:w1/a.json"),
        ..success(1)
    };
    let a = runtime.find("a").unwrap();
    runtime.apply(a, &report, at(2));
    let loaded =
        LoadedOutputs::from([("w1/a.json".to_owned(), Err("it does not exist".to_owned()))]);
    runtime.settle(&loaded, at(3));
    let b = runtime.task(runtime.find("b").unwrap());
    assert_eq!(b.state(), TaskState::Skipped);
    assert!(
        b.error().unwrap().contains("it does not exist"),
        "{:?}",
        b.error()
    );
}

#[test]
fn batch_merges_complete_by_themselves() {
    let kwargs = RawValue::from_string("{\"__batch_merge\": true}".to_owned()).unwrap();
    let merge = TaskDefinition {
        kwargs,
        ..after("m", &["a"])
    };
    let mut runtime = started(&workflow(vec![task("a"), merge, after("b", &["m"])]));
    dispatch_all(&mut runtime);
    complete(&mut runtime, "a", &success(1));
    assert_eq!(state_of(&runtime, "m"), TaskState::Completed);
    assert_eq!(dispatch_all(&mut runtime), [("b".to_owned(), 1)]);
    runtime.check().unwrap();
}

#[test]
fn retry_runs_again_what_did_not_succeed_and_nothing_else() {
    let mut runtime = started(&workflow(vec![
        task("good"),
        task("bad"),
        after("child", &["good", "bad"]),
    ]));
    dispatch_all(&mut runtime);
    complete(&mut runtime, "good", &success(1));
    complete(&mut runtime, "bad", &failure(1));
    assert_eq!(runtime.state(), WorkflowState::Failed);
    let again: Vec<_> = runtime.retryable().collect();
    runtime.retry(&again, &LoadedOutputs::default(), at(3));
    assert_eq!(runtime.state(), WorkflowState::Running);
    assert_eq!(runtime.error(), None);
    assert_eq!(dispatch_all(&mut runtime), [("bad".to_owned(), 1)]);
    complete(&mut runtime, "bad", &success(1));
    assert_eq!(dispatch_all(&mut runtime), [("child".to_owned(), 1)]);
    runtime.check().unwrap();
}

#[test]
fn a_late_report_of_an_earlier_life_changes_nothing() {
    let mut runtime = started(&workflow(vec![task("a")]));
    dispatch_all(&mut runtime);
    complete(&mut runtime, "a", &failure(1));
    let again: Vec<_> = runtime.retryable().collect();
    runtime.retry(&again, &LoadedOutputs::default(), at(3));
    dispatch_all(&mut runtime);
    let of_life = |retry_no| Completion {
        retry_no: Some(retry_no),
        ..failure(1)
    };
    let ignored = |because| Applied::Ignored(because);
    assert_eq!(
        complete(&mut runtime, "a", &of_life(0)),
        ignored(IgnoredBecause::StaleAttempt)
    );
    assert_eq!(
        complete(&mut runtime, "a", &of_life(2)),
        ignored(IgnoredBecause::ImpossibleAttempt)
    );
    assert_eq!(state_of(&runtime, "a"), TaskState::Running);
    assert_eq!(complete(&mut runtime, "a", &of_life(1)), Applied::Finished);
    runtime.check().unwrap();
}

#[test]
fn a_retry_of_one_task_takes_along_what_hangs_on_it_and_nothing_else() {
    let mut runtime = started(&workflow(vec![
        task("bad"),
        task("other"),
        after("child", &["bad"]),
        after("grandchild", &["child"]),
        after("others_child", &["other"]),
    ]));
    dispatch_all(&mut runtime);
    complete(&mut runtime, "bad", &failure(1));
    complete(&mut runtime, "other", &failure(1));
    let names = |runtime: &Runtime, task: &str| {
        let index = runtime.find(task).unwrap();
        let with = runtime.retryable_with(index);
        let names = with
            .iter()
            .map(|&index| runtime.task(index).name().to_string());
        names.collect::<Vec<_>>()
    };
    for one in ["bad", "child", "grandchild"] {
        assert_eq!(
            names(&runtime, one),
            ["bad", "child", "grandchild"],
            "{one}"
        );
    }
    assert_eq!(names(&runtime, "others_child"), ["other", "others_child"]);
    let again = runtime.retryable_with(runtime.find("child").unwrap());
    runtime.retry(&again, &LoadedOutputs::default(), at(3));
    assert_eq!(state_of(&runtime, "bad"), TaskState::Ready);
    assert_eq!(state_of(&runtime, "other"), TaskState::Failed);
    assert_eq!(names(&runtime, "bad"), [""; 0], "it is not broken any more");
    runtime.check().unwrap();
}

#[test]
fn an_overdue_attempt_fails_and_may_be_retried() {
    let slow = TaskDefinition {
        timeout_s: Some(Seconds(10.0)),
        num_retries: 1,
        ..task("a")
    };
    let mut runtime = started(&workflow(vec![slow]));
    dispatch_all(&mut runtime);
    assert_eq!(
        runtime.overdue(at(11)).count(),
        0,
        "exactly the timeout is not past it"
    );
    let a = runtime.overdue(at(12)).next().unwrap();
    assert_eq!(runtime.time_out(a, at(12)), Some(Applied::Rearmed));
    assert_eq!(runtime.time_out(a, at(13)), None);
    assert_eq!(
        runtime.task(a).error(),
        Some("attempt 1 passed its timeout of 10 s")
    );
}

#[test]
fn a_rejected_task_fails_without_an_attempt() {
    let mut runtime = started(&workflow(vec![task("a")]));
    let a = runtime.find("a").unwrap();
    runtime.reject(a, "its message is too large", at(1));
    assert_eq!(runtime.task(a).attempt_no(), 0);
    assert_eq!(runtime.state(), WorkflowState::Failed);
}
