//! `jobq run`: one workflow to its end, everything in this process.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::exit::{Failure, print, print_json};
use super::hosting::{self, WorkerSettings, parse_parallel};
use super::progress::Progress;
use super::{GlobalArgs, OutputFormat, definition_file, open, shutdown, table};
use crate::clock::Clock;
use crate::control::{Control, Snapshot, SubmitRequest, TaskView, WorkflowView};
use crate::coordinator::{Coordinator, OnHeld};
use crate::store::WorkflowStore;
use crate::workflow::definition::Definition;
use crate::workflow::{QueueName, WorkflowId, WorkflowState};

/// The exit code of a process that was interrupted, as shells have it.
const INTERRUPTED: u8 = 130;

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// The definition in YAML or JSON; `-` reads standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The workflow's id; a fresh one unless given. Running again with the same id goes on where
    /// an interrupted run stopped.
    #[arg(long)]
    id: Option<WorkflowId>,
    /// Rewrites tasks with more dependencies than this into sequential batches.
    #[arg(long, value_name = "N")]
    max_fan_in: Option<usize>,
    /// How many tasks run at once; as many as there are processors unless given.
    #[arg(short = 'n', long, value_parser = parse_parallel, value_name = "N")]
    parallel: Option<usize>,
    /// How to print the result. With `json` it goes to standard output.
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
    #[command(flatten)]
    worker: WorkerSettings,
}

/// What `-o json` prints.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    workflow: WorkflowView,
    #[serde(rename = "task_list")]
    tasks: Vec<TaskView>,
}

pub(super) async fn run(global: &GlobalArgs, args: RunArgs) -> Result<ExitCode, Failure> {
    let definition = definition_file::read(&args.file)?;
    let clock = Clock::system();
    let store = open::store(global, &clock).await?;
    let stop = CancellationToken::new();
    shutdown::on_signal(stop.clone())?;

    let host = Host::start(global, &args, &definition, &store, &clock, &stop)?;
    let control = Control::new(store, clock, Some(host.coordinator.clone()));
    let ended = submit_and_watch(&control, &args, definition, &stop).await;
    stop.cancel();
    host.stop().await;

    match ended? {
        Ended::Terminal(snapshot) => report(&args, *snapshot),
        Ended::Interrupted(id) => {
            let file = args.file.display();
            eprintln!(
                "interrupted; to go on: jobq run --id {id} {file}; to end it: jobq cancel {id}"
            );
            Ok(ExitCode::from(INTERRUPTED))
        }
    }
}

/// The coordinator and the worker of this process.
struct Host {
    coordinator: Arc<Coordinator>,
    tasks: TaskTracker,
}

impl Host {
    /// Starts both. Where another coordinator leads already this one stands by, and the workflow
    /// is run by that one.
    fn start(
        global: &GlobalArgs,
        args: &RunArgs,
        definition: &Definition,
        store: &WorkflowStore,
        clock: &Clock,
        stop: &CancellationToken,
    ) -> Result<Self, Failure> {
        let config = hosting::coordinator_config(global, OnHeld::Standby);
        let coordinator = Arc::new(Coordinator::new(config, store.clone(), clock.clone()));
        let parallel = args.parallel.unwrap_or_else(hosting::parallel_default);
        let queues = queues_of(definition);
        let worker = hosting::worker(global, store, clock, queues, parallel, &args.worker)?;
        let tasks = TaskTracker::new();
        tasks.spawn(worker.run(stop.clone()));
        tasks.spawn({
            let (coordinator, stop) = (coordinator.clone(), stop.clone());
            async move {
                if let Err(error) = coordinator.run(stop.clone()).await {
                    tracing::error!(%error, "the coordinator gave up");
                    stop.cancel();
                }
            }
        });
        tasks.close();
        Ok(Self { coordinator, tasks })
    }

    async fn stop(self) {
        self.tasks.wait().await;
    }
}

fn queues_of(definition: &Definition) -> Vec<QueueName> {
    let queues = definition.tasks.iter().map(|task| {
        task.queue
            .as_ref()
            .unwrap_or(&definition.default_queue)
            .clone()
    });
    queues.collect::<BTreeSet<_>>().into_iter().collect()
}

enum Ended {
    Terminal(Box<Snapshot>),
    Interrupted(WorkflowId),
}

async fn submit_and_watch(
    control: &Control,
    args: &RunArgs,
    definition: Definition,
    stop: &CancellationToken,
) -> Result<Ended, Failure> {
    let request = SubmitRequest {
        traceparent: super::caller(),
        id: args.id.clone(),
        max_fan_in: args.max_fan_in,
        ..SubmitRequest::new(definition)
    };
    let submitted = control.submit(request).await?;
    if args.output == OutputFormat::Table {
        print(format!("{}\n", submitted.workflow_id))?;
    }
    let progress = Progress::new();
    let mut watch = control.watch(&submitted.workflow_id);
    let ended = loop {
        let snapshot = tokio::select! {
            biased;
            () = stop.cancelled() => break Ended::Interrupted(submitted.workflow_id),
            snapshot = watch.next() => snapshot?,
        };
        progress.show(&snapshot);
        if snapshot.workflow.workflow_state.is_terminal() {
            break Ended::Terminal(Box::new(snapshot));
        }
    };
    progress.finish();
    Ok(ended)
}

fn report(args: &RunArgs, snapshot: Snapshot) -> Result<ExitCode, Failure> {
    let tasks = snapshot.tasks();
    let workflow = snapshot.workflow;
    let state = workflow.workflow_state;
    match args.output {
        OutputFormat::Json => print_json(&Report { workflow, tasks })?,
        OutputFormat::Table => {
            let seconds = workflow.updated_at.since(workflow.created_at).as_secs_f64();
            eprint!("\n{}\n", table::tasks(&tasks));
            eprintln!("workflow {:?} {state} after {seconds:.2} s", workflow.name);
        }
    }
    let completed = state == WorkflowState::Completed;
    Ok(if completed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
