//! `jobq summary`.

use std::process::ExitCode;

use clap::Args;

use super::exit::{Failure, print, print_json};
use super::{GlobalArgs, OutputFormat, open, table};

#[derive(Debug, Args)]
pub(super) struct SummaryArgs {
    /// How to print the counts.
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

pub(super) async fn run(global: &GlobalArgs, args: SummaryArgs) -> Result<ExitCode, Failure> {
    let summary = open::backend(global).await?.summary().await?;
    match args.output {
        OutputFormat::Json => print_json(&summary)?,
        OutputFormat::Table => print(table::summary(&summary))?,
    }
    Ok(ExitCode::SUCCESS)
}
