//! `jobq graph`.

use std::process::ExitCode;

use clap::Args;

use super::exit::{Failure, print, print_json};
use super::{GlobalArgs, open};
use crate::control::graph::{GraphFormat, GraphRequest};
use crate::workflow::WorkflowId;

#[derive(Debug, Args)]
pub(super) struct GraphArgs {
    /// The workflow's id.
    id: WorkflowId,
    /// How to write it.
    #[arg(long, value_enum, default_value = "dot")]
    format: GraphFormat,
    /// From how many alike tasks on a group is one node; 0 for never.
    #[arg(long, default_value_t = 10, value_name = "N")]
    collapse_from: usize,
}

pub(super) async fn run(global: &GlobalArgs, args: GraphArgs) -> Result<ExitCode, Failure> {
    let request = GraphRequest {
        collapse_from: Some(args.collapse_from).filter(|from| *from > 0),
    };
    let graph = open::backend(global)
        .await?
        .graph(&args.id, request)
        .await?;
    match args.format {
        GraphFormat::Json => print_json(&graph)?,
        GraphFormat::Dot => print(graph.to_dot())?,
        GraphFormat::Mermaid => print(graph.to_mermaid())?,
    }
    Ok(ExitCode::SUCCESS)
}
