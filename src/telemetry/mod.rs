//! What operators see: logs here, counts in [`metrics`].
//!
//! Logs go to standard error, as text for people or as JSON lines for machines.

pub mod metrics;

pub use metrics::Metrics;

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Whether a text is a W3C trace parent: version, trace id, parent id and flags in lower-case hex.
#[must_use]
pub fn is_traceparent(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let hex = |part: &&str, len| {
        let digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        part.len() == len && part.bytes().all(digit)
    };
    let zero = |part: &str| part.bytes().all(|b| b == b'0');
    matches!(&parts[..], [version, trace, parent, flags]
        if hex(version, 2) && *version != "ff" && hex(trace, 32) && !zero(trace)
            && hex(parent, 16) && !zero(parent) && hex(flags, 2))
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line, for machines.
    Json,
}

/// Libraries that log the addresses they call, which may be signed: they stay quiet whatever the
/// filter says.
const LOG_ADDRESSES: [&str; 7] = [
    "azure_core",
    "azure_storage",
    "azure_identity",
    "reqwest",
    "hyper",
    "hyper_util",
    "h2",
];

/// Starts logging for this process. `filter` is a level (`warn`) or a list of directives
/// (`info,jobq::coordinator=debug`). A second call changes nothing.
///
/// # Errors
/// When the filter cannot be parsed.
pub fn start(filter: &str, format: LogFormat) -> Result<(), String> {
    let filter = EnvFilter::try_new(filter)
        .map_err(|error| format!("the log filter {filter:?} is not valid: {error}"))?;
    let quiet = LOG_ADDRESSES
        .iter()
        .filter_map(|library| format!("{library}=warn").parse().ok());
    let filter = quiet.fold(filter, EnvFilter::add_directive);
    let registry = tracing_subscriber::registry().with(filter);
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    // A second start (in a test that runs commands in one process) keeps the first.
    match format {
        LogFormat::Text => registry.with(layer.with_target(false)).try_init().ok(),
        LogFormat::Json => registry
            .with(layer.json().flatten_event(true))
            .try_init()
            .ok(),
    };
    Ok(())
}
