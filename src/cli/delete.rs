//! `jobq delete`.

use std::process::ExitCode;

use clap::Args;

use super::exit::Failure;
use super::{GlobalArgs, open};
use crate::workflow::WorkflowId;

#[derive(Debug, Args)]
pub(super) struct DeleteArgs {
    /// The workflows' ids.
    #[arg(required = true, value_name = "ID")]
    ids: Vec<WorkflowId>,
    /// Also deletes workflows that have not ended.
    #[arg(long)]
    force: bool,
}

pub(super) async fn run(global: &GlobalArgs, args: DeleteArgs) -> Result<ExitCode, Failure> {
    let backend = open::backend(global).await?;
    for id in &args.ids {
        backend.delete(id, args.force).await?;
        eprintln!("workflow {id} is deleted");
    }
    Ok(ExitCode::SUCCESS)
}
