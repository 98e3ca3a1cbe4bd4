//! Which calls are repeated.
//!
//! A call whose answer was lost may have taken effect. Repeating it is right where a second time
//! changes nothing (reads, outright overwrites, deletes of blobs); elsewhere only what certainly
//! had no effect is repeated, and callers, who know what they were doing, decide about the rest.

use std::time::Duration;

use backon::{ExponentialBuilder, Retryable as _};

use super::super::Result;
use super::errors::{Translate, answer, had_no_effect};
use crate::limits;

fn pauses() -> ExponentialBuilder {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(100))
        .with_max_delay(Duration::from_secs(2))
        .with_factor(4.0)
        .with_max_times(limits::AZURE_ATTEMPTS_MAX - 1)
        .with_jitter()
}

/// Whether the service may answer better next time.
fn transient(error: &azure_core::Error) -> bool {
    match answer(error) {
        Some((status, code)) => {
            matches!(status, 408 | 429 | 500 | 502 | 503 | 504) || code.ends_with("BeingDeleted")
        }
        None => matches!(error.kind(), azure_core::error::ErrorKind::Io),
    }
}

/// Calls until there is an answer, at most [`limits::AZURE_ATTEMPTS_MAX`] times within `budget`: for
/// calls that may be made twice.
pub(super) async fn repeatable<T, F>(
    translate: &Translate<'_>,
    budget: Duration,
    call: impl FnMut() -> F,
) -> Result<T>
where
    F: Future<Output = azure_core::Result<T>>,
{
    attempts(translate, budget, call, transient).await
}

/// Calls once, and again only if the call certainly had no effect.
pub(super) async fn once<T, F>(
    translate: &Translate<'_>,
    budget: Duration,
    call: impl FnMut() -> F,
) -> Result<T>
where
    F: Future<Output = azure_core::Result<T>>,
{
    attempts(translate, budget, call, had_no_effect).await
}

async fn attempts<T, F>(
    translate: &Translate<'_>,
    budget: Duration,
    call: impl FnMut() -> F,
    again: impl FnMut(&azure_core::Error) -> bool,
) -> Result<T>
where
    F: Future<Output = azure_core::Result<T>>,
{
    let attempts = call.retry(pauses()).when(again);
    match tokio::time::timeout(budget, attempts).await {
        Ok(result) => translate.result(result),
        Err(_) => Err(translate.unavailable("no answer in time", None)),
    }
}

/// Time for a call that moves little data.
pub(super) const SHORT: Duration = limits::AZURE_CALL_TIMEOUT;

/// Time for a call that moves so many bytes, on a line of at least one MiB/s.
pub(super) fn for_bytes(bytes: usize) -> Duration {
    SHORT + Duration::from_secs((bytes >> 20) as u64)
}
