//! Runs of random workflows, step by step.

use std::collections::{BTreeMap, BTreeSet};

use jobq::clock::Timestamp;
use jobq::workflow::WorkflowId;
use jobq::workflow::definition::Definition;
use jobq::workflow::runtime::{Applied, Completion, LoadedOutputs, Runtime};
use serde_json::Value;

use crate::support::replay;

/// States and attempts by task.
type States = BTreeMap<String, (String, u64)>;

fn states(runtime: &Runtime) -> States {
    let tasks = runtime.tasks().iter();
    tasks
        .map(|task| {
            let state = (task.state().to_string(), task.attempt_no().into());
            (task.name().to_string(), state)
        })
        .collect()
}

fn given(states: &Value) -> States {
    let states = states.as_object().unwrap().iter();
    states
        .map(|(task, state)| {
            let word = state[0].as_str().unwrap().to_owned();
            (task.clone(), (word, state[1].as_u64().unwrap()))
        })
        .collect()
}

fn now(step: usize) -> Timestamp {
    Timestamp::from_micros(1_767_225_600_000_000 + i64::try_from(step).unwrap() * 1_000_000)
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, ours: &T, theirs: &T) -> Result<(), String> {
    if ours == theirs {
        Ok(())
    } else {
        Err(format!("{what}: {ours:?}, not {theirs:?}"))
    }
}

fn names(list: &Value) -> BTreeSet<String> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn every_trace_is_replayed_step_by_step() {
    replay("traces.jsonl", |trace| {
        let text = trace["definition"].to_string();
        let definition =
            Definition::from_text(text.as_bytes()).map_err(|problems| problems.to_string())?;
        let id = WorkflowId::parse("trace").unwrap();
        let mut runtime = Runtime::new(id, &definition, now(0));
        let initial = &trace["initial"];
        expect(
            "initial states",
            &states(&runtime),
            &given(&initial["states"]),
        )?;
        expect(
            "initial state",
            &runtime.state().as_str(),
            &initial["workflow_state"].as_str().unwrap(),
        )?;
        for (position, step) in trace["steps"].as_array().unwrap().iter().enumerate() {
            play(&mut runtime, step, position + 1)
                .map_err(|error| format!("step {position} {}: {error}", step["op"]))?;
        }
        Ok(())
    });
}

fn play(runtime: &mut Runtime, step: &Value, position: usize) -> Result<(), String> {
    let before = states(runtime);
    let now = now(position);
    match step["op"].as_str().unwrap() {
        "dispatch" => {
            for task in names(&step["tasks"]) {
                let index = runtime.find(&task).unwrap();
                runtime
                    .dispatch(index, now)
                    .ok_or_else(|| format!("{task} is not ready"))?;
            }
        }
        "complete" => complete(runtime, step, now)?,
        "cancel" => drop(runtime.cancel(now)),
        "retry_failed" => retry(runtime, step, now)?,
        other => return Err(format!("unknown step {other}")),
    }
    let mut expected = before;
    expected.extend(given(&step["changed"]));
    expect("states", &states(runtime), &expected)?;
    expect(
        "workflow state",
        &runtime.state().as_str(),
        &step["workflow_state"].as_str().unwrap(),
    )?;
    runtime.check().map_err(|error| error.to_string())
}

fn complete(runtime: &mut Runtime, step: &Value, now: Timestamp) -> Result<(), String> {
    let index = runtime.find(step["task"].as_str().unwrap()).unwrap();
    let ready_before: BTreeSet<_> = runtime.dispatchable().collect();
    let completion = Completion {
        retry_no: None,
        attempt_no: step["attempt_no"]
            .as_u64()
            .map(|number| u32::try_from(number).unwrap()),
        success: step["success"].as_bool().unwrap(),
        output_ref: step["output_ref"].as_str(),
        error: step["error"].as_str(),
    };
    let applied = runtime.apply(index, &completion, now);
    runtime.settle(&LoadedOutputs::new(), now);
    let duplicate = matches!(applied, Applied::Ignored(_));
    expect(
        "duplicate",
        &duplicate,
        &step["duplicate"].as_bool().unwrap(),
    )?;
    expect(
        "rearmed",
        &(applied == Applied::Rearmed),
        &step["rearmed"].as_bool().unwrap(),
    )?;
    let ready = runtime
        .dispatchable()
        .filter(|index| !ready_before.contains(index));
    let ready = ready
        .map(|index| runtime.task(index).name().to_string())
        .collect();
    expect("ready", &ready, &names(&step["ready"]))
}

fn retry(runtime: &mut Runtime, step: &Value, now: Timestamp) -> Result<(), String> {
    let reset: Vec<_> = runtime.retryable().collect();
    runtime.retry(&reset, &LoadedOutputs::new(), now);
    let state_of = |word: &str| {
        let states = reset
            .iter()
            .map(|&index| runtime.task(index).state().as_str());
        u64::try_from(states.filter(|state| *state == word).count()).unwrap()
    };
    let counters = &step["counters"];
    expect(
        "reset",
        &(reset.len() as u64),
        &counters["reset"].as_u64().unwrap(),
    )?;
    expect(
        "now ready",
        &state_of("ready"),
        &counters["now_ready"].as_u64().unwrap(),
    )?;
    expect(
        "still pending",
        &state_of("pending"),
        &counters["still_pending"].as_u64().unwrap(),
    )
}
