//! The `jobq` binary.
fn main() {}
