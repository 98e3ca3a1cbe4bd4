//! `jobq watch`.

use std::process::ExitCode;

use clap::Args;
use futures::StreamExt as _;

use super::exit::{Failure, print};
use super::{GlobalArgs, open};
use crate::workflow::WorkflowId;

#[derive(Debug, Args)]
pub(super) struct WatchArgs {
    /// The workflow's id.
    id: WorkflowId,
}

pub(super) async fn run(global: &GlobalArgs, args: WatchArgs) -> Result<ExitCode, Failure> {
    let mut events = open::backend(global).await?.watch(&args.id).await?;
    while let Some(event) = events.next().await {
        let event = event?;
        let json = serde_json::to_string(&event).map_err(anyhow::Error::from)?;
        print(format!("{json}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}
