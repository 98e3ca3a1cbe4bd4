//! Listening and stopping.

use std::io;
use std::net::SocketAddr;

use axum::Router;
use tokio::net::TcpListener;

use super::{Api, grpc, rest, trace};

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

    /// Answers until told to stop; requests under way are finished.
    ///
    /// # Errors
    /// The system's own.
    pub async fn run(self) -> io::Result<()> {
        let stop = self.api.stop.clone();
        let app = router(self.api).await;
        axum::serve(self.listener, app)
            .with_graceful_shutdown(stop.cancelled_owned())
            .await
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
