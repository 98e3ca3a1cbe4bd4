//! The binary, as a person uses it: real processes, real shells, a real data directory.
#![expect(
    clippy::unwrap_used,
    reason = "helpers outside test functions fail the test that calls them"
)]

mod bench;
mod config;
mod examples;
mod processes;
mod run;
mod support;
mod usage;
