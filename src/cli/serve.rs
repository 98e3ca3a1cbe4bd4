//! `jobq serve`.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tokio_util::sync::CancellationToken;

use super::duration;
use super::exit::Failure;
use super::hosting::{self, WorkerSettings, parse_parallel};
use super::{GlobalArgs, open, shutdown};
use crate::api::{Api, Server};
use crate::clock::Clock;
use crate::control::Control;
use crate::coordinator::{Coordinator, CoordinatorConfig, OnHeld};
use crate::workflow::QueueName;

/// Where the API listens, if it does.
#[derive(Debug, Clone, Copy)]
struct Listen(Option<SocketAddr>);

fn parse_listen(text: &str) -> Result<Listen, String> {
    if text == "none" {
        return Ok(Listen(None));
    }
    let resolved = text
        .to_socket_addrs()
        .ok()
        .and_then(|mut found| found.next());
    let refused = || format!("{text:?} is no address; write HOST:PORT, or none");
    resolved
        .map(|address| Listen(Some(address)))
        .ok_or_else(refused)
}

#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    #[command(flatten)]
    server: ServerSettings,
    /// Waits while another coordinator leads, instead of giving up.
    #[arg(long, conflicts_with = "break_lease")]
    standby: bool,
    /// Ends the lease of another coordinator and takes it. Only for one that is certainly dead.
    #[arg(long)]
    break_lease: bool,
    /// Also runs tasks of this queue in this process; may be repeated.
    #[arg(long = "worker", value_name = "QUEUE")]
    worker_queues: Vec<QueueName>,
    /// How many tasks run at once, with --worker; as many as there are processors unless given.
    #[arg(short = 'n', long, value_parser = parse_parallel, value_name = "N")]
    parallel: Option<usize>,
    #[command(flatten)]
    coordinator: CoordinatorSettings,
    #[command(flatten)]
    worker: WorkerSettings,
}

/// Settings of the API.
#[derive(Debug, Args)]
pub(super) struct ServerSettings {
    /// Where the API listens; `none` for no API. Port 0 takes a free one, which the log tells.
    #[arg(
        long,
        env = "JOBQ_LISTEN",
        default_value = "127.0.0.1:8080",
        value_parser = parse_listen,
        value_name = "ADDRESS"
    )]
    listen: Listen,
}

/// Settings of a coordinator.
#[derive(Debug, Args)]
pub(super) struct CoordinatorSettings {
    /// Completions asked for in one receive; as many as the queue allows unless given.
    #[arg(long, env = "JOBQ_COMPLETION_BATCH_SIZE", value_name = "N")]
    batch_size: Option<usize>,
    /// How long received completions stay hidden from other coordinators.
    #[arg(
        long,
        env = "JOBQ_COMPLETION_VISIBILITY_TIMEOUT_S",
        default_value = "60",
        value_parser = duration::parse
    )]
    visibility_timeout_s: Duration,
    /// The pause after an empty or failed receive.
    #[arg(
        long,
        env = "JOBQ_COORDINATOR_IDLE_SLEEP_S",
        default_value = "0.5",
        value_parser = duration::parse
    )]
    idle_sleep_s: Duration,
    /// How often cancel requests and new workflows are looked for.
    #[arg(
        long,
        env = "JOBQ_COORDINATOR_CANCEL_POLL_INTERVAL_S",
        default_value = "1",
        value_parser = duration::parse
    )]
    cancel_poll_interval_s: Duration,
    /// How often a cycle is repeated after another writer's change.
    #[arg(long, env = "JOBQ_COORDINATOR_FLUSH_RETRY_LIMIT", default_value_t = 2)]
    flush_retry_limit: u32,
    /// How often workflows that have not moved are looked at.
    #[arg(
        long,
        env = "JOBQ_COORDINATOR_READY_SWEEP_INTERVAL_S",
        default_value = "60",
        value_parser = duration::parse
    )]
    ready_sweep_interval_s: Duration,
    /// How long a workflow must not have moved to be looked at.
    #[arg(
        long,
        env = "JOBQ_COORDINATOR_READY_REPAIR_THRESHOLD_S",
        default_value = "300",
        value_parser = duration::parse
    )]
    ready_repair_threshold_s: Duration,
}

impl ServeArgs {
    fn coordinator_config(&self, global: &GlobalArgs) -> CoordinatorConfig {
        let on_held = match (self.standby, self.break_lease) {
            (true, _) => OnHeld::Standby,
            (_, true) => OnHeld::Break,
            _ => OnHeld::Refuse,
        };
        let settings = &self.coordinator;
        CoordinatorConfig {
            batch_size: settings.batch_size,
            visibility_timeout: settings.visibility_timeout_s,
            idle_sleep: settings.idle_sleep_s,
            cancel_poll_interval: settings.cancel_poll_interval_s,
            flush_retry_limit: settings.flush_retry_limit,
            ready_sweep_interval: settings.ready_sweep_interval_s,
            ready_repair_threshold: settings.ready_repair_threshold_s,
            ..hosting::coordinator_config(global, on_held)
        }
    }
}

pub(super) async fn run(global: &GlobalArgs, args: ServeArgs) -> Result<ExitCode, Failure> {
    let clock = Clock::system();
    let stop = CancellationToken::new();
    shutdown::on_signal(stop.clone())?;
    let Some(store) = open::store_when_reachable(global, &clock, &stop).await? else {
        return Ok(ExitCode::SUCCESS);
    };
    let config = args.coordinator_config(global);
    let metrics = hosting::metrics(&clock);
    let store = hosting::observed(&store, &metrics);
    let coordinator = Coordinator::new(config, store.clone(), clock.clone());
    let coordinator = Arc::new(coordinator.with_metrics(metrics.clone()));
    metrics.pull({
        let coordinator = coordinator.clone();
        move || coordinator.samples()
    });
    let worker = match args.worker_queues {
        queues if queues.is_empty() => None,
        queues => {
            let parallel = args.parallel.unwrap_or_else(hosting::parallel_default);
            Some(hosting::worker(
                global,
                &store,
                &clock,
                queues,
                parallel,
                &args.worker,
            )?)
        }
    };
    let server = match args.server.listen.0 {
        None => None,
        Some(address) => {
            let control = Control::new(store.clone(), clock.clone(), Some(coordinator.clone()));
            let api = Api::new(control, clock.clone(), metrics, stop.clone());
            let server = Server::bind(address, api)
                .await
                .with_context(|| format!("cannot listen on {address}"))?;
            let address = server.address()?;
            tracing::info!(%address, "listening");
            Some(server)
        }
    };
    let answer = async {
        if let Some(server) = server
            && let Err(error) = server.run().await
        {
            tracing::error!(%error, "the API stopped");
            stop.cancel();
        }
    };
    let work = async {
        if let Some(worker) = worker {
            worker.run(stop.clone()).await;
        }
    };
    let lead = async {
        let result = coordinator.run(stop.clone()).await;
        // A coordinator that gave up takes its worker along.
        stop.cancel();
        result
    };
    let (led, (), ()) = tokio::join!(lead, work, answer);
    led?;
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}
