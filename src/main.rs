//! The `jobq` binary: parses the command line and hands over.

use std::process::ExitCode;

fn main() -> ExitCode {
    jobq::cli::main()
}
