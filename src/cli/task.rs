//! `jobq task`: for use inside a task's command.
//!
//! Reads the environment that the worker gives every command, so that shell scripts can use their
//! parents' outputs and write their own without any other tool.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, anyhow};
use clap::{Args, Subcommand};
use serde_json::Value;

use super::exit::{Failure, print};
use super::{GlobalArgs, open};
use crate::clock::Clock;
use crate::limits::OUTPUT_BYTES_MAX;
use crate::store::WorkflowStore;
use crate::wire::OutputRef;

#[derive(Debug, Args)]
pub(super) struct TaskArgs {
    #[command(subcommand)]
    command: TaskCommand,
}

#[derive(Debug, Subcommand)]
enum TaskCommand {
    /// Prints the output of one parent.
    Output {
        /// The parent's name.
        parent: String,
        #[command(flatten)]
        part: Part,
        /// Where the worker put the parents' outputs.
        #[arg(long, env = "JOBQ_WORKFLOW_UPSTREAM_REFS", hide = true)]
        upstream_refs: PathBuf,
    },
    /// Prints the outputs of all parents that have one: a line each, the parent's name, a tab and
    /// the output.
    Outputs {
        #[command(flatten)]
        part: Part,
        /// Where the worker put the parents' outputs.
        #[arg(long, env = "JOBQ_WORKFLOW_UPSTREAM_REFS", hide = true)]
        upstream_refs: PathBuf,
    },
    /// Sets this task's output.
    SetOutput {
        /// The output as JSON; `-` reads standard input, `@FILE` a file.
        json: String,
        /// Where the worker looks for the output.
        #[arg(long, env = "JOBQ_OUTPUT_FILE", hide = true)]
        output_file: PathBuf,
    },
}

/// Which part of an output to print.
#[derive(Debug, Args)]
struct Part {
    /// Only what this JSON pointer names, such as `/loss`; texts are printed without quotes.
    #[arg(long, value_name = "POINTER")]
    pointer: Option<String>,
}

impl Part {
    /// The chosen part on one line, if the output has it.
    fn of(&self, output: &Value) -> Option<String> {
        let part = match &self.pointer {
            None => output,
            Some(pointer) => output.pointer(pointer)?,
        };
        match part {
            Value::String(text) if self.pointer.is_some() => Some(text.clone()),
            part => Some(part.to_string()),
        }
    }
}

pub(super) async fn run(global: &GlobalArgs, args: TaskArgs) -> Result<ExitCode, Failure> {
    match args.command {
        TaskCommand::Output {
            parent,
            part,
            upstream_refs,
        } => {
            let mut outputs = Outputs::open(global, &upstream_refs)?;
            let value = outputs.get(&parent).await?;
            let text = part.of(&value).ok_or_else(|| {
                anyhow!(
                    "the output of {parent:?} has no {}",
                    part.pointer.unwrap_or_default()
                )
            })?;
            print(text + "\n")?;
        }
        TaskCommand::Outputs {
            part,
            upstream_refs,
        } => {
            let mut outputs = Outputs::open(global, &upstream_refs)?;
            for parent in outputs.parents_with_output() {
                if let Some(text) = part.of(&outputs.get(&parent).await?) {
                    print(format!("{parent}\t{text}\n"))?;
                }
            }
        }
        TaskCommand::SetOutput { json, output_file } => set_output(&json, &output_file)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The outputs of the parents; the storage is opened only for those that live there.
struct Outputs<'a> {
    global: &'a GlobalArgs,
    refs: BTreeMap<String, Option<String>>,
    store: Option<WorkflowStore>,
}

impl<'a> Outputs<'a> {
    fn open(global: &'a GlobalArgs, path: &std::path::Path) -> Result<Self, Failure> {
        let text = std::fs::read(path)
            .with_context(|| format!("cannot read the parents' outputs at {}", path.display()))?;
        let refs = serde_json::from_slice(&text)
            .with_context(|| format!("{} does not hold the parents' outputs", path.display()))?;
        Ok(Self {
            global,
            refs,
            store: None,
        })
    }

    fn parents_with_output(&self) -> Vec<String> {
        let with_output = self
            .refs
            .iter()
            .filter(|(_, reference)| reference.is_some());
        with_output.map(|(parent, _)| parent.clone()).collect()
    }

    async fn get(&mut self, parent: &str) -> Result<Value, Failure> {
        let reference = match self.refs.get(parent) {
            Some(Some(reference)) => OutputRef::from_wire(reference),
            Some(None) => return Err(anyhow!("{parent:?} has no output").into()),
            None => return Err(anyhow!("this task does not depend on {parent:?}").into()),
        };
        let Some(path) = reference.blob_path() else {
            let value = serde_json::from_str(reference.as_str());
            return Ok(value.with_context(|| format!("the output of {parent:?} is not JSON"))?);
        };
        let store = match self.store.take() {
            Some(store) => store,
            None => open::store(self.global, &Clock::system()).await?,
        };
        let value = store.output_value(path).await;
        self.store = Some(store);
        Ok(
            value?
                .map_err(|reason| anyhow!("the output of {parent:?} cannot be read: {reason}"))?,
        )
    }
}

fn set_output(json: &str, output_file: &std::path::Path) -> Result<(), Failure> {
    let text = match json.strip_prefix('@') {
        Some(file) => {
            std::fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?
        }
        None if json == "-" => {
            let mut text = String::new();
            let limit = OUTPUT_BYTES_MAX as u64 + 1;
            std::io::stdin().take(limit).read_to_string(&mut text)?;
            text
        }
        None => json.to_owned(),
    };
    if text.len() > OUTPUT_BYTES_MAX {
        return Err(anyhow!("the output has more than {OUTPUT_BYTES_MAX} bytes").into());
    }
    serde_json::from_str::<serde::de::IgnoredAny>(&text)
        .map_err(|error| Failure::Usage(format!("the output is not JSON: {error}")))?;
    std::fs::write(output_file, text)
        .with_context(|| format!("cannot write {}", output_file.display()))?;
    Ok(())
}
