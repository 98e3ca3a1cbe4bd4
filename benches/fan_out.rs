//! Runs one workflow of no-op tasks to its end in this process: a root, many leaves and a join.
//! Prints what it took, and the storage operations per task.
//!
//! `cargo bench --bench fan_out -- [TASKS] [sqlite]`: 10,000 tasks unless given, on the memory
//! store, or on the embedded one in a directory that is gone afterwards.

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jobq::clock::Clock;
use jobq::control::{Control, SubmitRequest, WorkflowView};
use jobq::coordinator::{Coordinator, CoordinatorConfig};
use jobq::storage::Storage;
use jobq::storage::counting::Counting;
use jobq::storage::memory::MemoryStorage;
use jobq::storage::sqlite::SqliteStorage;
use jobq::store::WorkflowStore;
use jobq::wire::{Names, Prefix};
use jobq::worker::{NoopRunner, StoredStates, Worker, WorkerConfig};
use jobq::workflow::QueueName;
use jobq::workflow::definition::Definition;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Tasks that the worker runs at once; each is a no-op in this process.
const PARALLEL: usize = 1_000;

/// Pause between two looks at whether the workflow has ended.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

fn main() -> Result<(), Box<dyn Error>> {
    // Cargo adds `--bench` to the arguments of a benchmark.
    let tasks = std::env::args()
        .skip(1)
        .find_map(|argument| argument.parse().ok());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let directory = tempfile::tempdir()?;
    let clock = Clock::system();
    let storage = if std::env::args().any(|argument| argument == "sqlite") {
        Storage::from_backend(SqliteStorage::open(directory.path(), clock.clone())?)
    } else {
        Storage::from_backend(MemoryStorage::new(clock.clone()))
    };
    runtime.block_on(fan_out(tasks.unwrap_or(10_000), storage, clock))
}

async fn fan_out(tasks: usize, storage: Storage, clock: Clock) -> Result<(), Box<dyn Error>> {
    let counting = Counting::new(storage);
    let storage = counting.storage();
    let store = WorkflowStore::new(storage, Names::new(Prefix::parse("Bench")?));
    let (stop, parts) = (CancellationToken::new(), TaskTracker::new());
    let coordinator = start(&store, &clock, &stop, &parts).await?;

    let control = Control::new(store.clone(), clock, Some(coordinator));
    let request = SubmitRequest::new(definition(tasks)?);
    let started = Instant::now();
    let id = control.submit(request).await?.workflow_id;
    let submitted = started.elapsed();
    // The row costs next to nothing to look at, unlike the state of a large workflow.
    while !store
        .row(&id)
        .await?
        .is_some_and(|row| row.workflow_state.is_terminal())
    {
        tokio::time::sleep(LOOK_PAUSE).await;
    }
    let ended = started.elapsed();
    let workflow = control.get(&id).await?.value;
    stop.cancel();
    parts.wait().await;
    print(&workflow, submitted, ended, &counting);
    Ok(())
}

/// Starts a coordinator and a worker.
async fn start(
    store: &WorkflowStore,
    clock: &Clock,
    stop: &CancellationToken,
    parts: &TaskTracker,
) -> Result<Arc<Coordinator>, Box<dyn Error>> {
    store.ensure().await?;
    let config = CoordinatorConfig::default();
    let coordinator = Arc::new(Coordinator::new(config, store.clone(), clock.clone()));
    let (leading, shutdown) = (coordinator.clone(), stop.clone());
    parts.spawn(async move { leading.run(shutdown).await.expect("nobody else leads") });
    let mut config = WorkerConfig::new(vec![QueueName::parse("default")?], "bench");
    config.parallel = PARALLEL;
    let worker = Worker::new(
        config,
        store.storage().clone(),
        store.names().clone(),
        Arc::new(StoredStates::new(store.clone())),
        Arc::new(NoopRunner::default()),
        clock.clone(),
    )?;
    parts.spawn(worker.run(stop.clone()));
    parts.close();
    Ok(coordinator)
}

fn print(workflow: &WorkflowView, submitted: Duration, ended: Duration, counting: &Counting) {
    let tasks = f64::from(workflow.tasks.total);
    println!("state              {}", workflow.workflow_state);
    println!("tasks              {}", workflow.tasks.total);
    println!("submit             {:.3} s", submitted.as_secs_f64());
    println!("submit to end      {:.3} s", ended.as_secs_f64());
    println!(
        "rate               {:.0} tasks/s",
        tasks / ended.as_secs_f64()
    );
    println!("storage operations per task:");
    let counts = counting.counts();
    let operations: BTreeSet<_> = counts.iter().map(|(operation, _, _)| operation).collect();
    for operation in operations {
        // A batch is one operation for each of its messages, as it is on Azure.
        let number = counts.calls(operation).max(counts.messages(operation));
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        println!("  {operation:<20} {:.4}", f64::from(number) / tasks);
    }
}

/// A root, `tasks - 2` leaves, a join.
fn definition(tasks: usize) -> Result<Definition, Box<dyn Error>> {
    let leaves: Vec<String> = (2..tasks).map(|leaf| format!("leaf-{leaf}")).collect();
    let mut list = vec![serde_json::json!({"name": "root"})];
    list.extend(
        leaves
            .iter()
            .map(|leaf| serde_json::json!({"name": leaf, "depends_on": ["root"]})),
    );
    list.push(serde_json::json!({"name": "join", "depends_on": leaves}));
    let definition = serde_json::json!({"name": "fan-out", "tasks": list});
    Ok(Definition::from_json(&definition.to_string())?)
}
