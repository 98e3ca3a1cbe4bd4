//! `jobq output`.

use std::process::ExitCode;

use clap::Args;

use super::exit::{Failure, print};
use super::{GlobalArgs, open};
use crate::workflow::WorkflowId;

#[derive(Debug, Args)]
pub(super) struct OutputArgs {
    /// The workflow's id.
    id: WorkflowId,
    /// The task's name.
    task: String,
}

pub(super) async fn run(global: &GlobalArgs, args: OutputArgs) -> Result<ExitCode, Failure> {
    let output = open::backend(global)
        .await?
        .task_output(&args.id, &args.task)
        .await?;
    print(output)?;
    print("\n")?;
    Ok(ExitCode::SUCCESS)
}
