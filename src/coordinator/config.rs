//! The coordinator's settings.

use std::time::Duration;

/// What to do when another coordinator holds the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnHeld {
    /// Give up with an error that names the holder.
    #[default]
    Refuse,
    /// Wait until the lease is free.
    Standby,
    /// End the other's lease, once, and take it.
    Break,
}

/// The coordinator's settings; the defaults are upstream's where it has them.
#[derive(Debug, Clone)]
pub struct CoordinatorConfig {
    /// What to do when another coordinator leads.
    pub on_held: OnHeld,
    /// Whether all processes of this storage share one machine, so that a holder whose process is
    /// gone can be recognised and need not be waited for.
    pub single_machine: bool,
    /// Completions asked for in one receive; as many as the queue allows unless given.
    pub batch_size: Option<usize>,
    /// How long received completions stay hidden; what a crash interrupts reappears after it.
    pub visibility_timeout: Duration,
    /// The pause after an empty or failed receive, where the queue does not wait by itself.
    pub idle_sleep: Duration,
    /// How often cancel requests and new workflows are looked for.
    pub cancel_poll_interval: Duration,
    /// How often a cycle is repeated after its flush met another writer's state.
    pub flush_retry_limit: u32,
    /// How often workflows that have not moved are looked at.
    pub ready_sweep_interval: Duration,
    /// How long a workflow must not have moved to be looked at.
    pub ready_repair_threshold: Duration,
    /// How often a standby asks for the lease.
    pub standby_poll_interval: Duration,
}

impl Default for CoordinatorConfig {
    fn default() -> Self {
        Self {
            on_held: OnHeld::Refuse,
            single_machine: false,
            batch_size: None,
            visibility_timeout: Duration::from_secs(60),
            idle_sleep: Duration::from_millis(500),
            cancel_poll_interval: Duration::from_secs(1),
            flush_retry_limit: 2,
            ready_sweep_interval: Duration::from_secs(60),
            ready_repair_threshold: Duration::from_secs(300),
            standby_poll_interval: Duration::from_secs(5),
        }
    }
}
