//! `jobq cancel`.

use std::process::ExitCode;

use clap::Args;

use super::exit::Failure;
use super::{GlobalArgs, open};
use crate::workflow::WorkflowId;

#[derive(Debug, Args)]
pub(super) struct CancelArgs {
    /// The workflow's id.
    id: WorkflowId,
}

pub(super) async fn run(global: &GlobalArgs, args: CancelArgs) -> Result<ExitCode, Failure> {
    open::backend(global).await?.cancel(&args.id).await?;
    eprintln!("cancel of workflow {} requested", args.id);
    Ok(ExitCode::SUCCESS)
}
