//! The metrics, all of them: names, labels and meanings. `docs/metrics.md` lists the same, and a test
//! compares the two.
//!
//! Names begin with `jobq_` and end with their unit; counters end with `_total`. No label ever holds a
//! workflow or task: their number has no bound.

/// How a metric behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
    /// It counts by size.
    Histogram,
}

/// A metric.
#[derive(Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name, as it is scraped.
    pub name: &'static str,
    /// How it behaves.
    pub kind: Kind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// What it means.
    pub help: &'static str,
}

macro_rules! metrics {
    ($($constant:ident = $name:literal, $kind:ident, [$($label:literal),*], $help:literal;)*) => {
        $(
            #[doc = $help]
            pub const $constant: Metric = Metric {
                name: $name,
                kind: Kind::$kind,
                labels: &[$($label),*],
                help: $help,
            };
        )*

        /// All metrics, in the order of the documentation.
        pub const ALL: &[&Metric] = &[$(&$constant),*];
    };
}

metrics! {
    COMPLETIONS = "jobq_completions_total", Counter, ["result"],
        "Completions by what became of them: finished, rearmed, duplicate, orphan, poison, deferred";
    PUSHES = "jobq_pushes_total", Counter, ["result"],
        "Task messages by whether they could be pushed: ok, failed, rejected";
    FLUSHES = "jobq_flushes_total", Counter, [],
        "States written";
    CONFLICTS = "jobq_conflicts_total", Counter, [],
        "Flushes that met the state of another writer";
    EXHAUSTED = "jobq_exhausted_cycles_total", Counter, [],
        "Cycles given up after too many conflicts or failures; their completions come again";
    REPAIRS = "jobq_repairs_total", Counter, [],
        "Workflows looked at because they had not moved for long, or a term began";
    TIMEOUTS = "jobq_timeouts_total", Counter, [],
        "Attempts failed because of their timeout";
    CANCELS = "jobq_cancels_total", Counter, [],
        "Workflows whose cancel took effect";
    RECEIVE_ERRORS = "jobq_receive_errors_total", Counter, [],
        "Receives of completions that failed";
    QUARANTINED = "jobq_quarantined_total", Counter, [],
        "Times a workflow was set aside because its state cannot be used";
    STATE_LOADS = "jobq_state_loads_total", Counter, ["source"],
        "States that a cycle began with, from memory or from the storage: cache, storage";
    TERMS = "jobq_terms_total", Counter, [],
        "Terms of leadership that this process began";
    LEADER = "jobq_leader", Gauge, [],
        "Whether this process leads: 1 or 0";
    LEASE_REMAINING = "jobq_lease_remaining_seconds", Gauge, [],
        "How long this process may still write before it must renew its lease; 0 if it does not lead";
    ACTIVE_WORKFLOWS = "jobq_active_workflows", Gauge, [],
        "Workflows in memory";
    QUEUE_MESSAGES = "jobq_queue_messages", Gauge, ["queue"],
        "Messages of a queue, hidden ones included; sampled for the completion queue and the queues of live workflows";
    QUEUE_OLDEST = "jobq_queue_oldest_message_age_seconds", Gauge, ["queue"],
        "Age of the oldest visible message of a queue; 0 if there is none";
    CYCLE_DURATION = "jobq_cycle_duration_seconds", Histogram, [],
        "Cycles of a workflow: load, apply, push, flush";
    CYCLE_COMPLETIONS = "jobq_cycle_completions", Histogram, [],
        "Completions that one cycle worked off";
    FLUSH_DURATION = "jobq_flush_duration_seconds", Histogram, [],
        "Writes of a state";
    STORAGE_OPERATIONS = "jobq_storage_operations_total", Counter, ["operation", "outcome"],
        "Storage calls by operation and outcome: ok or the kind of error";
    STORAGE_DURATION = "jobq_storage_operation_duration_seconds", Histogram, ["operation"],
        "Storage calls by operation";
    HTTP_REQUESTS = "jobq_http_requests_total", Counter, ["route", "method", "status"],
        "Requests by route (its template), method and status";
    HTTP_DURATION = "jobq_http_request_duration_seconds", Histogram, ["route"],
        "Requests by route, until their answer began";
    BUILD_INFO = "jobq_build_info", Gauge, ["version"],
        "Always 1; the version is its label";
    START_TIME = "jobq_process_start_time_seconds", Gauge, [],
        "When this process started, in seconds since 1970";
}
