//! Properties of the runtime over random workflows and random histories.
//!
//! Each case draws a workflow and fixes, by a hash, how every attempt of every task ends. Then two
//! histories are played: one in order, and one in which completions arrive in any order, twice,
//! late, without the state that pushed them (a flush lost in a crash). Both must end alike.

use std::hash::{DefaultHasher, Hash, Hasher};

use proptest::prelude::*;

use super::*;
use crate::workflow::definition::{Definition, TaskDefinition};
use crate::workflow::testkit::*;
use crate::workflow::{DepPolicy, TaskState};

fn arbitrary_definition() -> impl Strategy<Value = Definition> {
    let task = (any::<[bool; 8]>(), 0..5u8, 0..3u32, any::<bool>());
    (
        proptest::collection::vec(task, 1..12),
        proptest::option::of(1..4u32),
    )
        .prop_map(|(shapes, max_parallelism)| {
            let tasks = shapes
                .iter()
                .enumerate()
                .map(|(i, shape)| arbitrary_task(i, shape));
            let mut definition = workflow(tasks.collect());
            definition.max_parallelism = max_parallelism;
            definition
        })
}

/// Task `i` depends on those of the eight before it that the mask selects.
fn arbitrary_task(
    i: usize,
    (mask, policy, num_retries, gated): &([bool; 8], u8, u32, bool),
) -> TaskDefinition {
    let parents: Vec<String> = (0..8.min(i))
        .filter(|&back| mask[back])
        .map(|back| format!("t{}", i - 1 - back))
        .collect();
    let names: Vec<&str> = parents.iter().map(String::as_str).collect();
    let count = u32::try_from(names.len()).unwrap();
    let dep_policy = match policy {
        0 | 1 => DepPolicy::All,
        2 => DepPolicy::Any,
        3 => DepPolicy::AllSettled,
        _ if count > 0 => DepPolicy::AtLeast(1 + num_retries % count),
        _ => DepPolicy::All,
    };
    // A condition over parents that may be unfinished depends on the order by nature; over
    // settled ones it does not.
    let settled = matches!(dep_policy, DepPolicy::All | DepPolicy::AllSettled);
    let condition = (*gated && settled && count > 0).then(|| format!("inputs.{}.ok", names[0]));
    TaskDefinition {
        dep_policy,
        num_retries: *num_retries,
        condition,
        ..after(&format!("t{i}"), &names)
    }
}

/// How one attempt ends: always the same for the same seed, task and attempt.
fn ending(seed: u64, task: &str, attempt_no: u32) -> (bool, &'static str) {
    let mut hasher = DefaultHasher::new();
    (seed, task, attempt_no).hash(&mut hasher);
    let hash = hasher.finish();
    (
        !hash.is_multiple_of(3),
        if hash.is_multiple_of(2) {
            "{\"ok\": true}"
        } else {
            "{\"ok\": false}"
        },
    )
}

fn deliver(runtime: &mut Runtime, seed: u64, task: &str, attempt_no: u32) -> Applied {
    let (success, output) = ending(seed, task, attempt_no);
    let completion = Completion {
        attempt_no: Some(attempt_no),
        retry_no: None,
        success,
        output_ref: success.then_some(output),
        error: Some("no"),
    };
    complete(runtime, task, &completion)
}

type Ending = Vec<(String, TaskState, u32, Option<String>)>;

fn final_states(runtime: &Runtime) -> Ending {
    let tasks = runtime.tasks().iter();
    tasks
        .map(|task| {
            let output = task.output_ref().map(str::to_owned);
            (
                task.name().to_string(),
                task.state(),
                task.attempt_no(),
                output,
            )
        })
        .collect()
}

fn play_in_order(definition: &Definition, seed: u64) -> Runtime {
    let mut runtime = started(definition);
    loop {
        let pushed = dispatch_all(&mut runtime);
        if pushed.is_empty() {
            return runtime;
        }
        for (task, attempt_no) in pushed {
            deliver(&mut runtime, seed, &task, attempt_no);
        }
    }
}

fn assert_terminal_states_kept(before: &Runtime, after: &Runtime) {
    for (old, new) in before.tasks().iter().zip(after.tasks()) {
        if old.state().is_terminal() {
            assert_eq!(
                (old.state(), old.attempt_no()),
                (new.state(), new.attempt_no())
            );
        }
    }
}

fn assert_no_slot_unused(runtime: &Runtime) {
    let running = runtime.counts().of(TaskState::Running);
    let ready = runtime.counts().of(TaskState::Ready);
    match runtime.header().max_parallelism {
        Some(bound) => {
            assert!(running <= bound, "{running} run, {bound} may");
            assert!(
                ready == 0 || running == bound,
                "{ready} ready beside {running} of {bound}"
            );
        }
        None => assert_eq!(ready, 0),
    }
}

/// Plays a history that `choices` disturb; afterwards everything is delivered until nothing moves.
fn play_disturbed(definition: &Definition, seed: u64, choices: &[(u8, usize)]) -> Runtime {
    let mut runtime = started(definition);
    let mut flushed = runtime.clone();
    let mut sent: Vec<(String, u32)> = Vec::new();
    for &(choice, pick) in choices {
        let before = runtime.clone();
        match choice {
            0 | 1 => sent.extend(dispatch_all(&mut runtime)),
            2 => flushed = runtime.clone(),
            // A crash: what was not flushed is forgotten, what was sent still arrives.
            3 => runtime = flushed.clone(),
            _ if sent.is_empty() => {}
            _ => {
                let (task, attempt_no) = sent[pick % sent.len()].clone();
                deliver(&mut runtime, seed, &task, attempt_no);
            }
        }
        if choice != 3 {
            assert_terminal_states_kept(&before, &runtime);
            if choice <= 1 {
                assert_no_slot_unused(&runtime);
            }
        }
        runtime.check().unwrap();
    }
    while !runtime.state().is_terminal() {
        sent.extend(dispatch_all(&mut runtime));
        for (task, attempt_no) in sent.clone() {
            deliver(&mut runtime, seed, &task, attempt_no);
        }
    }
    runtime
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_history_ends_as_the_one_in_order(
        definition in arbitrary_definition(),
        seed in any::<u64>(),
        choices in proptest::collection::vec((0..10u8, any::<usize>()), 0..80),
    ) {
        let in_order = play_in_order(&definition, seed);
        prop_assert!(in_order.state().is_terminal());
        in_order.check().unwrap();
        let disturbed = play_disturbed(&definition, seed, &choices);
        disturbed.check().unwrap();
        prop_assert_eq!(final_states(&in_order), final_states(&disturbed));
        prop_assert_eq!(in_order.state(), disturbed.state());
    }

    #[test]
    fn cancel_at_any_moment_ends_the_workflow_and_keeps_what_was_terminal(
        definition in arbitrary_definition(),
        seed in any::<u64>(),
        choices in proptest::collection::vec((0..10u8, any::<usize>()), 0..40),
    ) {
        let mut runtime = started(&definition);
        let mut sent = Vec::new();
        for (choice, pick) in choices {
            if choice < 3 || sent.is_empty() {
                sent.extend(dispatch_all(&mut runtime));
            } else {
                let (task, attempt_no): (String, u32) = sent[pick % sent.len()].clone();
                deliver(&mut runtime, seed, &task, attempt_no);
            }
        }
        let before = runtime.clone();
        let changed = runtime.cancel(at(5));
        prop_assert_eq!(changed, !before.state().is_terminal());
        assert_terminal_states_kept(&before, &runtime);
        for (task, attempt_no) in sent {
            deliver(&mut runtime, seed, &task, attempt_no);
            runtime.check().unwrap();
        }
        let ended = if changed { WorkflowState::Cancelled } else { before.state() };
        prop_assert_eq!(runtime.state(), ended);
    }

    #[test]
    fn retry_gives_every_broken_task_a_new_life_and_leaves_the_rest(
        definition in arbitrary_definition(),
        seed in any::<u64>(),
    ) {
        let mut runtime = play_in_order(&definition, seed);
        let before = runtime.clone();
        let again: Vec<_> = runtime.retryable().collect();
        runtime.retry(&again, &LoadedOutputs::default(), at(9));
        runtime.check().unwrap();
        for (old, new) in before.tasks().iter().zip(runtime.tasks()) {
            if old.state().satisfies() {
                prop_assert_eq!(old.state(), new.state());
                prop_assert_eq!(old.output_ref(), new.output_ref());
            } else {
                prop_assert_eq!(new.attempt_no(), 0);
            }
        }
        // With every further attempt succeeding, nothing is left broken unless by its policy.
        while !runtime.state().is_terminal() {
            for (task, attempt_no) in dispatch_all(&mut runtime) {
                complete(&mut runtime, &task, &success(attempt_no));
            }
        }
        prop_assert_eq!(runtime.counts().of(TaskState::Failed), 0);
    }
}
