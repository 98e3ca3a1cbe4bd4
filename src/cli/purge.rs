//! `jobq purge`.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::exit::{Failure, print, print_json};
use super::{GlobalArgs, OutputFormat, open};
use crate::control::PurgeRequest;
use crate::workflow::WorkflowState;

#[derive(Debug, Args)]
pub(super) struct PurgeArgs {
    /// Only workflows that have not changed for so long.
    #[arg(long, value_parser = super::duration::parse, value_name = "DURATION")]
    older_than: Duration,
    /// Only workflows in this terminal state; may be repeated.
    #[arg(long = "state", value_parser = super::list::parse_state, value_name = "STATE")]
    states: Vec<WorkflowState>,
    /// At most this many.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Only tells which would go.
    #[arg(long)]
    dry_run: bool,
    /// How to print the ids.
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

pub(super) async fn run(global: &GlobalArgs, args: PurgeArgs) -> Result<ExitCode, Failure> {
    let request = PurgeRequest {
        states: args.states,
        older_than: args.older_than,
        limit: args.limit.into(),
        dry_run: args.dry_run,
    };
    let result = open::backend(global).await?.purge(&request).await?;
    match args.output {
        OutputFormat::Json => print_json(&result)?,
        OutputFormat::Table => {
            let ids = result.workflow_ids.iter().map(|id| format!("{id}\n"));
            print(ids.collect::<String>())?;
        }
    }
    if result.more {
        eprintln!("more match; purge again for them");
    }
    Ok(ExitCode::SUCCESS)
}
