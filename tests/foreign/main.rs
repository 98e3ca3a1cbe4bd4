//! The server asked by programs that are not ours: a property tester for OpenAPI and a gRPC client in
//! Python.
//!
//! `scripts/with-python cargo test --features foreign-tests --test foreign`
#![expect(
    clippy::unwrap_used,
    reason = "helpers outside test functions fail the test that calls them"
)]

mod python;
#[path = "../api/server.rs"]
#[expect(dead_code, reason = "each target uses its part")]
mod server;
#[path = "../cli/support.rs"]
mod support;
