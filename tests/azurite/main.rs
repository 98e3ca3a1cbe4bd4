//! The cloud store against the emulator, and against the upstream project's published package.
//!
//! `scripts/with-azurite scripts/with-upstream cargo test --features azurite-tests --test azurite`
#![expect(
    clippy::unwrap_used,
    reason = "helpers outside test functions fail the test that calls them"
)]

mod emulator;
mod failures;
mod formats;
mod listing;
mod processes;
#[path = "../cli/support.rs"]
mod support;
mod upstream;

mod conformance {
    jobq::storage_conformance!(crate::emulator::subject);
}
