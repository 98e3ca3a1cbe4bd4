//! The APIs: thin shells over the use cases of `control`.
//!
//! One server and one port for all of them: REST with its documentation (`rest`), gRPC and gRPC-web
//! (`grpc`), over HTTP/1.1 and HTTP/2. `server` listens and stops; `client` asks such a server.

pub mod client;
pub mod grpc;
pub mod rest;
mod server;
mod trace;

pub use server::Server;

use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::control::{Control, WatchHub};
use crate::telemetry::Metrics;

/// What every handler has at hand. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Api {
    control: Control,
    hub: WatchHub,
    clock: Clock,
    metrics: Metrics,
    /// Ends watches, so that a stopping server is not held up by them.
    stop: CancellationToken,
}

impl Api {
    /// The API over these use cases, until `stop`.
    #[must_use]
    pub fn new(control: Control, clock: Clock, metrics: Metrics, stop: CancellationToken) -> Self {
        Self {
            hub: WatchHub::new(control.clone()),
            control,
            clock,
            metrics,
            stop,
        }
    }
}
