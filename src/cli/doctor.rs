//! `jobq doctor`.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::exit::{Failure, print, print_json};
use super::{GlobalArgs, OutputFormat, duration, open, table};
use crate::control::{CheckStatus, DoctorRequest};

#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// Also mends the index: writes rows from states, removes rows without one.
    #[arg(long)]
    fix: bool,
    /// From when on a workflow has waited for its start for too long.
    #[arg(long, default_value = "5m", value_parser = duration::parse, value_name = "DURATION")]
    pending_too_long: Duration,
    /// From when on a workflow that has not changed stands still.
    #[arg(long, default_value = "24h", value_parser = duration::parse, value_name = "DURATION")]
    running_too_long: Duration,
    /// From what age on the oldest completion has waited for too long.
    #[arg(long, default_value = "2m", value_parser = duration::parse, value_name = "DURATION")]
    completion_too_old: Duration,
    /// From what age on a message of a task queue that nobody received has waited for too long.
    #[arg(long, default_value = "1h", value_parser = duration::parse, value_name = "DURATION")]
    task_too_old: Duration,
    /// How many workflows to look at.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    sample: u32,
    /// How to print what was seen.
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

pub(super) async fn run(global: &GlobalArgs, args: DoctorArgs) -> Result<ExitCode, Failure> {
    let request = DoctorRequest {
        pending_too_long: args.pending_too_long,
        running_too_long: args.running_too_long,
        completion_too_old: args.completion_too_old,
        task_too_old: args.task_too_old,
        sample: args.sample as usize,
        fix: args.fix,
    };
    let report = open::backend(global).await?.doctor(&request).await?;
    match args.output {
        OutputFormat::Json => print_json(&report)?,
        OutputFormat::Table => print(table::checks(&report))?,
    }
    Ok(if report.status == CheckStatus::Fail {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
