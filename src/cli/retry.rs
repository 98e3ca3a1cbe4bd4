//! `jobq retry`.

use std::process::ExitCode;

use clap::Args;

use super::exit::{Failure, print, print_json};
use super::{GlobalArgs, OutputFormat, open};
use crate::control::RetryRequest;
use crate::workflow::WorkflowId;

#[derive(Debug, Args)]
pub(super) struct RetryArgs {
    /// The workflow's id.
    id: WorkflowId,
    /// One task, with what hangs on it; everything that did not succeed unless given.
    #[arg(long)]
    task: Option<String>,
    /// Only tells what would run again.
    #[arg(long)]
    dry_run: bool,
    /// How to print the tasks.
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

pub(super) async fn run(global: &GlobalArgs, args: RetryArgs) -> Result<ExitCode, Failure> {
    let request = RetryRequest {
        task: args.task,
        dry_run: args.dry_run,
    };
    let result = open::backend(global)
        .await?
        .retry(&args.id, &request)
        .await?;
    match args.output {
        OutputFormat::Json => print_json(&result)?,
        OutputFormat::Table => {
            let names = result.tasks.iter().map(|task| format!("{task}\n"));
            print(names.collect::<String>())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
