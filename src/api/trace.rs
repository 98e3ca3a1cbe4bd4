//! The layer that gives each request a span: a child of the caller's, if it sent a trace parent.

use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::Response;
use tracing::{Instrument as _, field};

use crate::telemetry::trace;

/// Paths that machines ask for every few seconds, and nobody traces.
const UNTRACED: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// Answers a request within its span, which ends when the answer begins.
pub(super) async fn layer(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if UNTRACED.contains(&path) {
        return next.run(request).await;
    }
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or("", MatchedPath::as_str);
    // gRPC's routes end in a wildcard, and its paths are those of its methods.
    let (route, system) = if route.ends_with("/{*rest}") {
        (path, "grpc")
    } else {
        (route, "http")
    };
    let method = request.method();
    let span = tracing::info_span!(
        target: trace::TARGET,
        "request",
        otel.name = %format_args!("{method} {route}"),
        otel.kind = "server",
        http.request.method = %method,
        http.route = route,
        http.response.status_code = field::Empty,
        rpc.system = system,
        request_id = field::Empty,
    );
    let caller = request.headers().get("traceparent");
    trace::follow(&span, caller.and_then(|caller| caller.to_str().ok()));
    let response = next.run(request).instrument(span.clone()).await;
    let status = response.status();
    span.record("http.response.status_code", status.as_u16());
    if let Some(id) = response.headers().get("x-request-id") {
        span.record("request_id", id.to_str().unwrap_or_default());
    }
    if status.is_server_error() {
        trace::failed(&span, status.canonical_reason().unwrap_or_default());
    }
    response
}
