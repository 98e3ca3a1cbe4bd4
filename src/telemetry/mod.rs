//! What operators see: counts in [`metrics`], lines of the log, spans of [`trace`].
//!
//! Logs go to standard error, as text for people or as JSON lines for machines. Spans go to a collector
//! if one is configured, and nowhere otherwise. [`start`] sets both up, once for the process.

mod logs;
pub mod metrics;
pub mod trace;

pub use logs::LogFormat;
pub use metrics::Metrics;
pub use trace::{TraceExport, is_traceparent};

use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::Layer as _;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::limits::TRACE_FLUSH_MAX;

/// What is to be ended with the process.
#[derive(Debug)]
#[must_use = "spans that wait to be sent are lost unless it is ended"]
pub struct Telemetry {
    spans: Option<SdkTracerProvider>,
}

/// Starts logging for this process, and tracing if `export` says where to. `filter` is a level (`warn`) or
/// a list of directives (`info,jobq::coordinator=debug`). A second call changes nothing.
///
/// # Errors
/// When the filter cannot be parsed, or the collector's address is none.
///
/// # Panics
/// With an `export`, outside a tokio runtime; its threads must go on until [`Telemetry::end`] returned.
pub fn start(
    filter: &str,
    format: LogFormat,
    export: Option<&TraceExport>,
) -> Result<Telemetry, String> {
    let filter = logs::filter(filter)?;
    let spans = export.map(TraceExport::provider).transpose()?;
    let layers = vec![logs::layer(format).with_filter(filter).boxed()];
    let layers = layers.into_iter().chain(spans.as_ref().map(trace::layer));
    // A second start (in a test that runs commands in one process) keeps the first.
    let registry = tracing_subscriber::registry().with(layers.collect::<Vec<_>>());
    if registry.try_init().is_ok() {
        logs::panics();
    }
    Ok(Telemetry { spans })
}

impl Telemetry {
    /// Sends the spans that wait, for a few seconds at most. Blocks.
    pub fn end(self) {
        if let Some(spans) = self.spans
            && let Err(error) = spans.shutdown_with_timeout(TRACE_FLUSH_MAX)
        {
            tracing::warn!(%error, "some spans could not be sent");
        }
    }
}
