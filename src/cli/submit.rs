//! `jobq submit`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use tracing::Instrument as _;

use super::exit::{Failure, print};
use super::{GlobalArgs, definition_file, open};
use crate::control::SubmitRequest;
use crate::telemetry::trace;
use crate::workflow::WorkflowId;

#[derive(Debug, Args)]
pub(super) struct SubmitArgs {
    /// Definitions in YAML or JSON; `-` reads standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The workflow's id, which makes it safe to repeat the command; a fresh one unless given.
    #[arg(long)]
    id: Option<WorkflowId>,
    /// A label, as KEY=VALUE; may be repeated. Stronger than the definition's.
    #[arg(long = "label", value_parser = super::parse_label, value_name = "KEY=VALUE")]
    labels: Vec<(String, String)>,
    /// Rewrites tasks with more dependencies than this into sequential batches.
    #[arg(long, value_name = "N")]
    max_fan_in: Option<usize>,
}

pub(super) async fn run(global: &GlobalArgs, args: SubmitArgs) -> Result<ExitCode, Failure> {
    if args.id.is_some() && args.files.len() > 1 {
        return Err(Failure::Usage(
            "--id names one workflow: give one file with it".to_owned(),
        ));
    }
    // All files are checked before the first is submitted: all or none.
    let definitions = args
        .files
        .iter()
        .map(|file| definition_file::read(file))
        .collect::<Result<Vec<_>, _>>()?;
    let backend = open::backend(global).await?;
    for definition in definitions {
        let span = tracing::info_span!(target: trace::TARGET, "jobq submit", otel.kind = "client");
        let caller = super::caller();
        trace::follow(&span, caller.as_deref());
        let request = SubmitRequest {
            traceparent: trace::traceparent_of(&span).or(caller),
            id: args.id.clone(),
            labels: args.labels.iter().cloned().collect(),
            max_fan_in: args.max_fan_in,
            ..SubmitRequest::new(definition)
        };
        let result = backend.submit(request).instrument(span).await?;
        if !result.created {
            eprintln!("workflow {} was submitted before", result.workflow_id);
        }
        print(format!("{}\n", result.workflow_id))?;
    }
    Ok(ExitCode::SUCCESS)
}
