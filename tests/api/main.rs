//! The server as its callers see it: real processes, HTTP and gRPC over the wire.
#![expect(
    clippy::unwrap_used,
    reason = "helpers outside test functions fail the test that calls them"
)]

mod grpc;
mod openapi;
mod parity;
mod rest;
mod server;
#[path = "../cli/support.rs"]
mod support;
mod watch;
