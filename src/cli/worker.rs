//! `jobq worker`.

use std::process::ExitCode;

use clap::Args;
use tokio_util::sync::CancellationToken;

use super::exit::Failure;
use super::hosting::{self, WorkerSettings, parse_parallel};
use super::{GlobalArgs, open, shutdown};
use crate::clock::Clock;
use crate::workflow::QueueName;

#[derive(Debug, Args)]
pub(super) struct WorkerArgs {
    /// The queues to serve, each as often as the others.
    #[arg(required = true, value_name = "QUEUE")]
    queues: Vec<QueueName>,
    /// How many tasks run at once.
    #[arg(short = 'n', long, default_value = "1", value_parser = parse_parallel, value_name = "N")]
    parallel: usize,
    #[command(flatten)]
    settings: WorkerSettings,
}

pub(super) async fn run(global: &GlobalArgs, args: WorkerArgs) -> Result<ExitCode, Failure> {
    let clock = Clock::system();
    let stop = CancellationToken::new();
    shutdown::on_signal(stop.clone())?;
    let Some(store) = open::store_when_reachable(global, &clock, &stop).await? else {
        return Ok(ExitCode::SUCCESS);
    };
    let queues: Vec<_> = args.queues.iter().map(QueueName::as_str).collect();
    tracing::info!(
        queues = queues.join(","),
        parallel = args.parallel,
        "worker started"
    );
    let worker = hosting::worker(
        global,
        &store,
        &clock,
        args.queues,
        args.parallel,
        &args.settings,
    )?;
    worker.run(stop).await;
    tracing::info!("worker stopped");
    Ok(ExitCode::SUCCESS)
}
