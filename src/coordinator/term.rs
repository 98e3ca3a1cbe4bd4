//! One term of leadership: from taking the lease to losing or releasing it.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::acker::Acker;
use super::actor::ActorContext;
use super::intake::Intake;
use super::lease::{Fence, LeaseKeeper};
use super::registry::Registry;
use super::status::CoordinatorStatus;
use super::sweeps::Sweeps;
use super::{CoordinatorConfig, Stats};
use crate::clock::Clock;
use crate::store::WorkflowStore;
use crate::telemetry::Metrics;

/// How often the status blob is written.
const STATUS_INTERVAL: Duration = Duration::from_secs(10);

/// How long cycles may take to finish after a shutdown was asked for; the container of a server is
/// usually killed 30 s after that.
const DRAIN_MAX: Duration = Duration::from_secs(20);

/// How a term ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TermEnd {
    /// On request; the lease is released.
    Shutdown,
    /// The lease is lost.
    Lost,
}

/// The parts that work together while the lease holds.
pub(super) struct Term {
    config: CoordinatorConfig,
    store: WorkflowStore,
    clock: Clock,
    stats: Arc<Stats>,
    keeper: LeaseKeeper,
    fence: Fence,
    registry: Arc<Registry>,
    acker: Acker,
    tasks: TaskTracker,
    /// Ends the term's parts one after the other: first what brings work in, then the actors.
    stop_intake: CancellationToken,
    stop_actors: CancellationToken,
    /// Ends everything at once, in the middle of what it does.
    lost: CancellationToken,
}

impl Term {
    pub(super) fn new(
        config: CoordinatorConfig,
        store: WorkflowStore,
        clock: Clock,
        stats: Arc<Stats>,
        metrics: Option<Metrics>,
        keeper: LeaseKeeper,
    ) -> Self {
        let fence = keeper.fence();
        let (acker, acknowledgements) = Acker::new(&store, fence.clone());
        let tasks = TaskTracker::new();
        let (stop_actors, lost) = (CancellationToken::new(), CancellationToken::new());
        let context = ActorContext {
            config: config.clone(),
            store: store.clone(),
            clock: clock.clone(),
            stats: stats.clone(),
            metrics,
            fence: fence.clone(),
            acknowledgements,
            stop: stop_actors.clone(),
        };
        let registry = Registry::new(context, tasks.clone(), lost.clone());
        Self {
            config,
            store,
            clock,
            stats,
            keeper,
            fence,
            registry,
            acker,
            tasks,
            stop_intake: CancellationToken::new(),
            stop_actors,
            lost,
        }
    }

    pub(super) fn registry(&self) -> Arc<Registry> {
        self.registry.clone()
    }

    /// Leads until the lease is lost or `shutdown`.
    pub(super) async fn run(self, shutdown: &CancellationToken) -> TermEnd {
        let bringers = TaskTracker::new();
        let intake = Intake::new(
            self.config.clone(),
            self.store.clone(),
            self.stats.clone(),
            self.fence.clone(),
            self.registry.clone(),
        );
        let sweeps = Sweeps::new(
            self.config.clone(),
            self.store.clone(),
            self.clock.clone(),
            self.registry.clone(),
            self.stats.clone(),
        );
        let (stop, lost) = (&self.stop_intake, &self.lost);
        bringers.spawn(until(stop, lost, intake.run()));
        bringers.spawn(until(stop, lost, sweeps.clone().poll()));
        bringers.spawn(until(stop, lost, sweeps.repair()));
        bringers.spawn(until(stop, lost, self.report()));
        bringers.close();
        let stop_acker = CancellationToken::new();
        let acker = TaskTracker::new();
        acker.spawn(self.acker.run(stop_acker.clone()));
        acker.close();
        let end = tokio::select! {
            () = self.keeper.keep() => TermEnd::Lost,
            () = shutdown.cancelled() => TermEnd::Shutdown,
        };
        if end == TermEnd::Lost {
            lost.cancel();
        }
        self.stop_intake.cancel();
        bringers.wait().await;
        self.stop_actors.cancel();
        self.tasks.close();
        if tokio::time::timeout(DRAIN_MAX, self.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!("some cycles did not finish in time and are dropped");
            lost.cancel();
            self.tasks.wait().await;
        }
        stop_acker.cancel();
        if tokio::time::timeout(DRAIN_MAX, acker.wait()).await.is_err() {
            tracing::warn!("some acknowledgements did not finish in time; they are repeated");
        }
        if end == TermEnd::Shutdown {
            self.keeper.release().await;
        }
        end
    }

    /// Writes the status blob every now and then.
    fn report(&self) -> impl Future<Output = ()> + Send + use<> {
        let (store, clock, stats) = (self.store.clone(), self.clock.clone(), self.stats.clone());
        let (fence, holder) = (self.fence.clone(), self.keeper.holder().clone());
        async move {
            loop {
                if fence.holds() {
                    let status =
                        CoordinatorStatus::new(holder.clone(), clock.now(), stats.snapshot());
                    if let Err(error) = status.write(&store).await {
                        tracing::warn!(%error, error_kind = error.kind(), "cannot write the coordinator's status");
                    }
                }
                tokio::time::sleep(STATUS_INTERVAL).await;
            }
        }
    }
}

/// `work` until it is told to stop or the lease is lost, dropping it where it stands.
fn until<F>(
    stop: &CancellationToken,
    lost: &CancellationToken,
    work: F,
) -> impl Future<Output = ()> + Send + use<F>
where
    F: Future<Output = ()> + Send,
{
    let (stop, lost) = (stop.clone(), lost.clone());
    async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = lost.cancelled() => {}
            () = work => {}
        }
    }
}
