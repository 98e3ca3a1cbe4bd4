//! `jobq definition`.

use std::process::ExitCode;

use clap::Args;

use super::exit::{Failure, print};
use super::{GlobalArgs, open};
use crate::workflow::WorkflowId;

#[derive(Debug, Args)]
pub(super) struct DefinitionArgs {
    /// The workflow's id.
    id: WorkflowId,
}

pub(super) async fn run(global: &GlobalArgs, args: DefinitionArgs) -> Result<ExitCode, Failure> {
    let json = open::backend(global).await?.definition(&args.id).await?;
    print(json)?;
    print("\n")?;
    Ok(ExitCode::SUCCESS)
}
