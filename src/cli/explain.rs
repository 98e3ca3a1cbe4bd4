//! `jobq explain`.

use std::process::ExitCode;

use clap::Args;

use super::exit::{Failure, print, print_json};
use super::{GlobalArgs, OutputFormat, open, table};
use crate::workflow::WorkflowId;

#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// The workflow's id.
    id: WorkflowId,
    /// The task's name.
    task: String,
    /// How to print it.
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

pub(super) async fn run(global: &GlobalArgs, args: ExplainArgs) -> Result<ExitCode, Failure> {
    let explanation = open::backend(global)
        .await?
        .explain(&args.id, &args.task)
        .await?;
    match args.output {
        OutputFormat::Json => print_json(&explanation)?,
        OutputFormat::Table => print(table::findings(&explanation))?,
    }
    Ok(ExitCode::SUCCESS)
}
