//! `jobq list`.

use std::process::ExitCode;

use clap::Args;

use super::exit::{Failure, print, print_json};
use super::{GlobalArgs, OutputFormat, open, table};
use crate::control::ListRequest;
use crate::workflow::WorkflowState;

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Only workflows in this state; may be repeated.
    #[arg(long = "state", value_parser = parse_state, value_name = "STATE")]
    states: Vec<WorkflowState>,
    /// Only workflows whose name starts so.
    #[arg(long, value_name = "PREFIX")]
    name: Option<String>,
    /// At most this many.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// How to print them.
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

fn parse_state(word: &str) -> Result<WorkflowState, String> {
    WorkflowState::from_word(word).ok_or_else(|| {
        let words: Vec<_> = WorkflowState::ALL
            .iter()
            .map(|state| state.as_str())
            .collect();
        format!("must be one of {}", words.join(", "))
    })
}

pub(super) async fn run(global: &GlobalArgs, args: ListArgs) -> Result<ExitCode, Failure> {
    let request = ListRequest {
        states: args.states,
        name_prefix: args.name,
        limit: args.limit.into(),
    };
    let rows = open::control(global).await?.list(&request).await?;
    match args.output {
        OutputFormat::Json => print_json(&rows)?,
        OutputFormat::Table => print(table::workflows(&rows))?,
    }
    Ok(ExitCode::SUCCESS)
}
