//! Turning signals into a shutdown.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::exit::Failure;

/// Cancels `shutdown` at the first SIGINT or SIGTERM. A second one ends the process at once, by
/// the signal's own default, for whoever cannot wait.
pub(super) fn on_signal(shutdown: CancellationToken) -> Result<(), Failure> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let wait = async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        shutdown.cancel();
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        eprintln!("a second signal: ending at once");
        std::process::abort();
    };
    drop(tokio::task::spawn(wait));
    Ok(())
}
