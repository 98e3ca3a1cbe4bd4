//! `jobq status`.

use std::process::ExitCode;

use clap::Args;

use super::exit::{Failure, print, print_json};
use super::{GlobalArgs, OutputFormat, open, table};
use crate::workflow::WorkflowId;

#[derive(Debug, Args)]
pub(super) struct StatusArgs {
    /// The workflow's id.
    id: WorkflowId,
    /// How to print it.
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

pub(super) async fn run(global: &GlobalArgs, args: StatusArgs) -> Result<ExitCode, Failure> {
    let workflow = open::backend(global).await?.get(&args.id).await?;
    match args.output {
        OutputFormat::Json => print_json(&workflow)?,
        OutputFormat::Table => print(table::workflow(&workflow))?,
    }
    Ok(ExitCode::SUCCESS)
}
