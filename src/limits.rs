//! Every bound of the system, with the reason for its number.
//!
//! Nothing a caller sends may grow without a limit, and every limit lives here so that one page
//! answers "how large may it be". Each has a test one step past it, in the room that applies it.

use std::time::Duration;

// ---- Definitions -----------------------------------------------------------------------------

/// Bytes of a definition's text (YAML or JSON). 100,000 tasks with generous commands are about
/// 40 MB; beyond that the state blob, rewritten at every flush, would be the real problem.
pub const DEFINITION_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Tasks of one workflow, after the fan-in rewrite. The design aims at 100,000; the head room is
/// for rewritten fan-ins.
pub const TASKS_MAX: usize = 200_000;

/// Dependencies of one workflow, all tasks together (edges of the graph). They dominate memory in
/// dense graphs: a million edges are about 16 MB in memory and 20 MB in the state blob.
pub const DEPENDENCIES_MAX: usize = 2_000_000;

/// Nodes (scalars, lists, maps) a definition may expand to once YAML aliases are resolved. A
/// "billion laughs" document stops here; honest definitions use about ten nodes a task.
pub const DEFINITION_NODES_MAX: usize = 8_000_000;

/// Depth of nested lists and maps in a definition. Definitions need four; `kwargs` rarely more
/// than ten. Recursion over a tree this deep fits every thread's stack.
pub const DEFINITION_DEPTH_MAX: usize = 64;

/// Problems reported for one definition. Someone who mends a hundred runs the check again.
pub const PROBLEMS_MAX: usize = 100;

/// Bytes of a workflow's display name.
pub const WORKFLOW_NAME_BYTES_MAX: usize = 256;

/// Characters of a workflow id: it becomes a blob name, a table key and part of every message id.
pub const WORKFLOW_ID_CHARS_MAX: usize = 128;

/// Bytes of a task name. With the workflow id it must fit a blob name (1,024 characters).
pub const TASK_NAME_BYTES_MAX: usize = 256;

/// Largest `num_retries`. A task that needs more than this is not flaky but broken.
pub const RETRIES_MAX: u32 = 1_000;

/// Largest `timeout_s`: one year.
pub const TIMEOUT_S_MAX: u64 = 366 * 24 * 3600;

/// Bytes of one condition. Conditions are read by people; generated ones fit here too.
pub const CONDITION_BYTES_MAX: usize = 8 * 1024;

/// Nesting of one condition (parentheses, `not`, lists). Bounds the evaluator's recursion.
pub const CONDITION_DEPTH_MAX: usize = 64;

/// Labels of one workflow: they are columns of the index row.
pub const LABELS_MAX: usize = 32;

/// Bytes of a label's key, and of its value.
pub const LABEL_BYTES_MAX: usize = 128;

/// Bytes of a configuration file; an honest one has a few hundred.
pub const CONFIG_BYTES_MAX: u64 = 1024 * 1024;

/// Workflows of one batch submit: each is a few storage calls, and the caller waits for all.
pub const SUBMIT_BATCH_MAX: usize = 100;

/// Bytes of an idempotency key, as its draft standard's examples need and then some.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 256;

/// Bytes of a page token: a key of the index and its envelope.
pub const PAGE_TOKEN_BYTES_MAX: usize = 4 * 1024;

/// Workflows one doctor's look may be asked to sample.
pub const DOCTOR_SAMPLE_MAX: usize = 100_000;

/// Workflows watched at the same time in one process: each is polled.
pub const WATCHED_WORKFLOWS_MAX: usize = 1_000;

/// Changes of a watched workflow that are kept for watchers that are behind or come back.
pub const WATCH_CHANGES_MAX: usize = 20_000;

/// Bytes of a request that holds no definition.
pub const REQUEST_BYTES_MAX: usize = 64 * 1024;

/// Bytes of one event that a client of a watch takes: a snapshot of the largest workflow.
pub const WATCH_EVENT_BYTES_MAX: usize = STATE_BYTES_MAX;

/// Ages that a purge or a doctor may be asked about: a century. What lies further back is a slip, and no
/// date.
pub const AGE_MAX: Duration = Duration::from_secs(100 * 31_557_600);

/// Workflows that one purge removes; repeat it for more.
pub const PURGE_MAX: usize = 1_000;

// ---- Messages and outputs --------------------------------------------------------------------

/// Bytes of one task or completion message after XML escaping. Azure Storage allows 64 KiB; the
/// rest is left to the protocol's envelope and to older clients that add fields.
pub const MESSAGE_BYTES_MAX: usize = 48 * 1024;

/// Bytes of an output kept in the state itself; larger ones go to the outputs container.
pub const OUTPUT_INLINE_BYTES_MAX: usize = 32 * 1024;

/// Bytes of one task output. It is parsed as JSON by the worker and, for conditions, by the
/// coordinator; data larger than this belongs into a file output.
pub const OUTPUT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes of an error text kept in the state. The full text is in the attempt's log.
pub const ERROR_BYTES_MAX: usize = 4 * 1024;

/// Bytes of the reason given for an unreadable message: it goes to one log line.
pub const POISON_REASON_BYTES_MAX: usize = 512;

/// Bytes of a trace parent. The standard's own form has 55; later versions may append to it.
pub const TRACEPARENT_BYTES_MAX: usize = 256;

/// Levels of lists and objects above a file marker in an output. Each level is one more pass over
/// the text below it; programs put markers at the top or one level down.
pub const OUTPUT_STASH_DEPTH_MAX: usize = 32;

/// Bytes of a state blob once unpacked. Guards the loader against a hostile gzip.
pub const STATE_BYTES_MAX: usize = 512 * 1024 * 1024;

/// State blobs from this size on are written with gzip (see the wire format).
pub const STATE_GZIP_BYTES_MIN: usize = 256 * 1024;

// ---- Storage ---------------------------------------------------------------------------------

/// Messages one receive may ask for where the backend has no smaller limit of its own (Azure: 32).
pub const RECEIVE_MAX: usize = 1_024;

/// Longest visibility timeout: seven days, as Azure Storage.
pub const VISIBILITY_TIMEOUT_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// Rows or blobs of one page, as Azure Storage.
pub const PAGE_MAX: usize = 1_000;

/// Messages one peek returns, as Azure Storage.
pub const PEEK_MAX: usize = 32;

/// Bytes of one queue message, as Azure Storage, on every backend: a workflow that runs on one
/// machine runs in the cloud too.
pub const QUEUE_MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// Shortest and longest lease, as Azure Storage.
pub const LEASE_DURATION_RANGE: (Duration, Duration) =
    (Duration::from_secs(15), Duration::from_secs(60));

/// Bytes of one blob: nothing jobq writes is larger than an unpacked state.
pub const BLOB_BYTES_MAX: usize = STATE_BYTES_MAX;

/// Characters of a blob name, as Azure Storage.
pub const BLOB_NAME_CHARS_MAX: usize = 1_024;

/// Bytes of a table's partition or row key, as Azure Storage.
pub const ENTITY_KEY_BYTES_MAX: usize = 1_024;

/// Properties of one row, as Azure Storage (which allows 255, three of them its own).
pub const PROPERTIES_MAX: usize = 252;

/// UTF-16 units of one text property, as Azure Storage (64 KiB in that encoding).
pub const PROPERTY_UNITS_MAX: usize = 32 * 1024;

/// Calls waiting for a SQLite writer. Callers beyond it wait before they enqueue, so that a stalled
/// disk holds back its users instead of filling memory.
pub const SQLITE_WAITING_MAX: usize = 16_384;

/// Calls that share one SQLite transaction. Far above the point where the cost of the commit is
/// spread thin, and few enough that the first of them is answered within milliseconds.
pub const SQLITE_GROUP_MAX: usize = 1_024;

/// SQLite connections for reading, per process: reads are short, and few machines have more disks
/// than this.
pub const SQLITE_READERS_MAX: usize = 4;

/// Connections kept open to each service of Azure Storage: enough for every call that one process
/// makes at once.
pub const AZURE_CONNECTIONS_MAX: usize = 128;

/// How long setting up a connection to Azure Storage may take.
pub const AZURE_CONNECT_TIMEOUT: Duration = Duration::from_millis(2_500);

/// How long Azure Storage may stay silent within one request. A receive whose answer is lost hides
/// its messages, so no request may hang for longer than it takes to notice.
pub const AZURE_REQUEST_TIMEOUT: Duration = Duration::from_secs(8);

/// How long a call to Azure Storage may take, its repetitions included, besides the time its bytes
/// need.
pub const AZURE_CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// How often a call to Azure Storage is made before it counts as failed.
pub const AZURE_ATTEMPTS_MAX: usize = 3;

/// Messages of one receive, as Azure Storage.
pub const AZURE_RECEIVE_MAX: usize = 32;

/// Messages sent, or deleted, at the same time by one call: Azure Storage takes them one by one.
pub const AZURE_MESSAGES_AT_ONCE_MAX: usize = 32;

// ---- Coordinator -----------------------------------------------------------------------------

/// The lease on the lock blob. Azure allows 15 to 60 s; the longest survives the longest stall.
pub const LEASE_DURATION: Duration = Duration::from_secs(60);

/// How often the lease is renewed: three renewals may fail before it lapses.
pub const LEASE_RENEW_INTERVAL: Duration = Duration::from_secs(15);

/// Part of the lease kept back from its holder: it stops writing this long before the lease can
/// lapse, so that a write that is under way ends while the lease still holds.
pub const LEASE_MARGIN: Duration = Duration::from_secs(10);

/// Completions waiting in one workflow's mailbox: one for each task it can have, so that only a
/// flood of duplicates fills it. What does not fit is left to its visibility timeout and delivered
/// again, so one slow workflow holds up no other.
pub const MAILBOX_MAX: usize = TASKS_MAX;

/// Queues whose depth and age are sampled for the metrics: each is a label, and two storage calls.
pub const SAMPLED_QUEUES_MAX: usize = 50;

/// Workflows kept in memory at once; the least recently used idle ones are dropped beyond it.
pub const ACTIVE_WORKFLOWS_MAX: usize = 10_000;

// ---- Worker ----------------------------------------------------------------------------------

/// Commands one worker runs at once: each holds a process and two pipes.
pub const WORKER_PARALLEL_MAX: usize = 1_024;

/// Bytes of a worker's name: a host, a process and a word. It travels in every completion.
pub const WORKER_ID_BYTES_MAX: usize = 128;

/// Bytes of what one attempt prints that are kept, the latest ones: enough for any traceback and
/// hours of a progress bar, little enough that a thousand logs at once fit a disk.
pub const ATTEMPT_LOG_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Bytes of one file output. A blob is sent from memory, one file of an attempt at a time.
pub const FILE_OUTPUT_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Workflows whose cancel flag one worker asks for at the same time.
pub const CANCEL_POLLS_AT_ONCE_MAX: usize = 8;

// ---- Telemetry -------------------------------------------------------------------------------

/// How long a process that ends may take to send the spans that wait: a collector that hangs must not
/// hold up a restart.
pub const TRACE_FLUSH_MAX: Duration = Duration::from_secs(5);

const _: () = {
    assert!(MESSAGE_BYTES_MAX < 64 * 1024);
    assert!(OUTPUT_INLINE_BYTES_MAX < MESSAGE_BYTES_MAX);
    assert!(STATE_GZIP_BYTES_MIN < STATE_BYTES_MAX);
    // Three renewals fit between the last good one and the moment the holder stops.
    assert!(
        LEASE_RENEW_INTERVAL.as_secs() * 3 <= LEASE_DURATION.as_secs() - LEASE_MARGIN.as_secs()
    );
    assert!(WORKFLOW_ID_CHARS_MAX + TASK_NAME_BYTES_MAX + 64 < 1_024);
};
