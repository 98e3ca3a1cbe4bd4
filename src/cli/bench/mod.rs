//! `jobq bench`: how fast the storage and this machine are. One file per bench.
//!
//! A bench works under a prefix of its own and leaves everything else of the storage alone.

mod list;
mod report;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::GlobalArgs;
use super::exit::Failure;

#[derive(Debug, Args)]
pub(super) struct BenchArgs {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// Reads pages of a long list of workflows.
    List(list::ListBenchArgs),
}

pub(super) async fn run(global: &GlobalArgs, args: BenchArgs) -> Result<ExitCode, Failure> {
    match args.bench {
        Bench::List(args) => list::run(global, args).await,
    }
}
