//! Replays the golden data that other implementations of the formats agree on.
#![expect(
    clippy::unwrap_used,
    reason = "helpers outside test functions fail the test that calls them"
)]

mod conditions;
mod definitions;
mod state;
mod support;
mod traces;
mod wire;
