//! `jobq list`.

use std::process::ExitCode;

use clap::Args;

use super::exit::{Failure, print, print_json};
use super::{GlobalArgs, OutputFormat, open, table};
use crate::clock::Timestamp;
use crate::control::{ListOrder, ListRequest};
use crate::workflow::WorkflowState;

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Only workflows in this state; may be repeated.
    #[arg(long = "state", value_parser = parse_state, value_name = "STATE")]
    states: Vec<WorkflowState>,
    /// Only workflows whose name starts so.
    #[arg(long, value_name = "PREFIX")]
    name: Option<String>,
    /// Only workflows with this label, as KEY=VALUE; may be repeated.
    #[arg(long = "label", value_parser = super::parse_label, value_name = "KEY=VALUE")]
    labels: Vec<(String, String)>,
    /// Only workflows submitted at this time (2026-01-02T03:04:05Z) or later.
    #[arg(long, value_name = "TIME")]
    created_from: Option<Timestamp>,
    /// Only workflows submitted before this time.
    #[arg(long, value_name = "TIME")]
    created_to: Option<Timestamp>,
    /// The order.
    #[arg(long, value_enum, default_value_t)]
    order: ListOrder,
    /// Goes on where a list with the same filter and order ended.
    #[arg(long, value_name = "TOKEN")]
    page_token: Option<String>,
    /// At most this many.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// How to print them.
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

pub(super) fn parse_state(word: &str) -> Result<WorkflowState, String> {
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
        labels: args.labels.into_iter().collect(),
        created_from: args.created_from,
        created_to: args.created_to,
        order: args.order,
        limit: args.limit.into(),
        page_token: args.page_token,
    };
    let page = open::backend(global).await?.list(&request).await?;
    match args.output {
        OutputFormat::Json => print_json(&page.workflows)?,
        OutputFormat::Table => print(table::workflows(&page.workflows))?,
    }
    if let Some(token) = page.next_page_token {
        eprintln!("more: --page-token {token}");
    }
    Ok(ExitCode::SUCCESS)
}
