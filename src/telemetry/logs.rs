//! Log lines: which, and how they look.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::IsTerminal as _;
use std::panic;

use tracing_subscriber::registry::Registry;
use tracing_subscriber::{EnvFilter, Layer};

use super::trace;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line, for machines.
    Json,
}

/// Libraries that log the addresses they call, which may be signed, or much that is of no use here:
/// they stay quiet whatever the filter says.
const QUIET: [&str; 8] = [
    "azure_core",
    "azure_storage",
    "azure_identity",
    "reqwest",
    "hyper",
    "hyper_util",
    "h2",
    "opentelemetry",
];

/// The lines that a filter lets through.
pub(super) fn filter(filter: &str) -> Result<EnvFilter, String> {
    let filter = EnvFilter::try_new(filter)
        .map_err(|error| format!("the log filter {filter:?} is not valid: {error}"))?;
    // Spans of traces would stand before every line within them, with fields the line has itself.
    let spans = format!("{}=off", trace::TARGET);
    let quiet = QUIET
        .iter()
        .map(|library| format!("{library}=warn"))
        .chain([spans])
        .filter_map(|directive| directive.parse().ok());
    Ok(quiet.fold(filter, EnvFilter::add_directive))
}

/// Writes lines to standard error.
pub(super) fn layer(format: LogFormat) -> Box<dyn Layer<Registry> + Send + Sync> {
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    match format {
        LogFormat::Text => layer.with_target(false).boxed(),
        LogFormat::Json => layer.json().flatten_event(true).boxed(),
    }
}

/// From now on a panic is a line of the log, in the log's form, and nothing else. It is a bug; what it
/// ends depends on where it happens. `RUST_BACKTRACE=1` adds where it came from.
pub(super) fn panics() {
    panic::set_hook(Box::new(|info| {
        let message = info.payload_as_str().unwrap_or("a panic without a message");
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let thread = std::thread::current();
        let thread = thread.name().unwrap_or_default();
        let trace = Backtrace::capture();
        if trace.status() == BacktraceStatus::Captured {
            tracing::error!(error = message, place, thread, backtrace = %trace, "a bug: panicked");
        } else {
            tracing::error!(error = message, place, thread, "a bug: panicked");
        }
    }));
}
