//! The layer that gives each request a span: a child of the caller's, if it sent a trace parent.

use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::Response;
use tracing::{Instrument as _, field};

use crate::telemetry::trace;

/// Paths that machines ask for every few seconds, and nobody traces.
const UNTRACED: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// Codes of gRPC that are the server's fault: unknown, deadline exceeded, unimplemented, internal,
/// unavailable, data loss.
const GRPC_FAULTS: [i32; 6] = [2, 4, 12, 13, 14, 15];

/// Answers a request within its span, which ends when the answer begins.
pub(super) async fn layer(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let route = request.extensions().get::<MatchedPath>();
    // What is at no path of ours was tried by somebody who guesses.
    let Some(route) = route.filter(|_| !UNTRACED.contains(&path)) else {
        return next.run(request).await;
    };
    let route = route.as_str();
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
        rpc.grpc.status_code = field::Empty,
        request_id = field::Empty,
    );
    let caller = request.headers().get("traceparent");
    trace::follow(&span, caller.and_then(|caller| caller.to_str().ok()));
    let response = next.run(request).instrument(span.clone()).await;
    let status = response.status();
    span.record("http.response.status_code", status.as_u16());
    if let Some(id) = text(&response, "x-request-id") {
        span.record("request_id", id);
    }
    if status.is_server_error() {
        trace::failed(&span, status.canonical_reason().unwrap_or_default());
    }
    // Where an answer of gRPC is an error and nothing else, its status is among the headers.
    let grpc = text(&response, "grpc-status").and_then(|code| code.parse().ok());
    if let Some(code) = grpc {
        span.record("rpc.grpc.status_code", code);
        if GRPC_FAULTS.contains(&code) {
            let code = tonic::Code::from_i32(code);
            trace::failed(&span, code.description());
        }
    }
    response
}

fn text<'a>(response: &'a Response, header: &str) -> Option<&'a str> {
    response.headers().get(header)?.to_str().ok()
}
