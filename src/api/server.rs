//! Listening and stopping.

use std::future::IntoFuture as _;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;

use super::{Api, grpc, rest, trace};

/// How long requests may take to finish after a stop was asked for; the container of a server is
/// usually killed 30 s after that.
const DRAIN_MAX: Duration = Duration::from_secs(15);

/// A server that is bound to its address.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    api: Api,
}

impl Server {
    /// Binds to an address; port 0 takes a free one.
    ///
    /// # Errors
    /// The system's own, such as that the address is taken.
    pub async fn bind(address: SocketAddr, api: Api) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        Ok(Self { listener, api })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system's own.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until told to stop. Requests under way are finished, as long as that takes no longer than
    /// a caller that has gone silent should hold a server up.
    ///
    /// # Errors
    /// The system's own.
    pub async fn run(self) -> io::Result<()> {
        let stop = self.api.stop.clone();
        let app = router(self.api).await;
        let serving = axum::serve(self.listener, app)
            .with_graceful_shutdown(stop.clone().cancelled_owned())
            .into_future();
        let patience = async {
            stop.cancelled().await;
            tokio::time::sleep(DRAIN_MAX).await;
        };
        tokio::select! {
            served = serving => served,
            () = patience => {
                tracing::warn!("some connections did not end in time and are cut");
                Ok(())
            }
        }
    }
}

async fn router(api: Api) -> Router {
    let grpc = grpc::router(api.clone()).await;
    let layer = axum::middleware::from_fn_with_state(api.clone(), rest::request_id::layer);
    // gRPC knows its own paths, and its own form of errors.
    rest::router()
        .layer(layer)
        .with_state(api)
        .merge(grpc)
        .layer(axum::middleware::from_fn(trace::layer))
}
