//! `jobq tasks`.

use std::process::ExitCode;

use clap::Args;

use super::exit::{Failure, print, print_json};
use super::{GlobalArgs, OutputFormat, open, table};
use crate::control::TaskListRequest;
use crate::workflow::{TaskState, WorkflowId};

#[derive(Debug, Args)]
pub(super) struct TasksArgs {
    /// The workflow's id.
    id: WorkflowId,
    /// Only tasks in this state; may be repeated.
    #[arg(long = "state", value_parser = parse_state, value_name = "STATE")]
    states: Vec<TaskState>,
    /// Only tasks of this queue.
    #[arg(long)]
    queue: Option<String>,
    /// Only tasks whose name starts so.
    #[arg(long, value_name = "PREFIX")]
    name: Option<String>,
    /// How to print them.
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

fn parse_state(word: &str) -> Result<TaskState, String> {
    TaskState::from_word(word).ok_or_else(|| {
        let words: Vec<_> = TaskState::ALL.iter().map(|state| state.as_str()).collect();
        format!("must be one of {}", words.join(", "))
    })
}

pub(super) async fn run(global: &GlobalArgs, args: TasksArgs) -> Result<ExitCode, Failure> {
    let request = TaskListRequest {
        states: args.states,
        queue: args.queue,
        name_prefix: args.name,
        ..TaskListRequest::default()
    };
    let tasks = open::backend(global)
        .await?
        .tasks(&args.id, &request)
        .await?;
    let tasks = tasks.tasks;
    match args.output {
        OutputFormat::Json => print_json(&tasks)?,
        OutputFormat::Table => print(table::tasks(&tasks))?,
    }
    Ok(ExitCode::SUCCESS)
}
