//! The command line: one file per command, all of them thin shells over `control`.
//!
//! Standard output carries data (ids, tables, JSON), standard error everything meant for people.
//! Exit codes: 0 done, 1 failed (for `run`: the workflow failed or was cancelled), 2 wrong usage or
//! an invalid definition, 130 interrupted.

mod backend;
mod bench;
mod cancel;
mod config;
mod coordinator;
mod definition;
mod definition_file;
mod delete;
mod doctor;
mod duration;
mod exit;
mod explain;
mod graph;
mod hosting;
mod list;
mod open;
mod output;
mod progress;
mod purge;
mod retry;
mod run;
mod serve;
mod settings;
mod shutdown;
mod status;
mod submit;
mod summary;
mod table;
mod task;
mod tasks;
mod validate;
mod watch;
mod worker;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::parser::ValueSource;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};

use crate::config::{FilesSpec, QueuesSpec, StorageSpec};
use crate::telemetry::{self, LogFormat, Telemetry, TraceExport};
use crate::wire::Prefix;
use exit::Failure;

/// A control plane for DAG workflows over job queues.
#[derive(Debug, Parser)]
#[command(name = "jobq", version, propagate_version = true, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    global: GlobalArgs,
    #[command(subcommand)]
    command: Command,
}

/// Settings of every command.
#[derive(Debug, Args)]
struct GlobalArgs {
    /// Where workflows, queues and listings live.
    #[arg(
        help = "Where workflows, queues and listings live: sqlite:DIR, azure:ACCOUNT (signed in to \
                by the environment's identity), azure (as AZURE_STORAGE_CONNECTION_STRING says), \
                or azurite",
        long,
        global = true,
        env = "JOBQ_STORAGE",
        default_value = "sqlite:./jobq-data",
        value_name = "STORAGE"
    )]
    storage: StorageSpec,
    /// Asks a server (http://HOST:PORT) instead of working on the storage.
    #[arg(long, global = true, env = "JOBQ_SERVER", value_name = "URL")]
    server: Option<String>,
    /// Where task and completion queues live, if not with the rest: an account of Azure Storage, or
    /// any storage.
    #[arg(
        long,
        global = true,
        env = "JOBQ_WORKFLOW_QUEUES",
        value_name = "STORAGE"
    )]
    queue_storage: Option<QueuesSpec>,
    /// Where the files that tasks name as outputs go: an account and a container. The container
    /// `jobq-workflow-data` beside the state unless given.
    #[arg(
        long,
        global = true,
        env = "JOBQ_WORKFLOW_BLOBS",
        value_name = "ACCOUNT/CONTAINER"
    )]
    file_storage: Option<FilesSpec>,
    /// The configuration file; `jobq.yaml` here or in the user's directory of configurations unless
    /// given.
    #[arg(long, global = true, env = "JOBQ_WORKFLOW_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Names everything in the storage: 3 to 40 letters and digits, a letter first.
    #[arg(long, global = true, env = "JOBQ_PREFIX", default_value = "Jobq")]
    prefix: Prefix,
    /// What to log: a level, or directives such as `info,jobq::coordinator=debug`. Servers and
    /// workers log at `info` by default, other commands at `warn`.
    #[arg(long, global = true, env = "JOBQ_LOG", value_name = "FILTER")]
    log: Option<String>,
    /// How log lines look.
    #[arg(
        long,
        global = true,
        env = "JOBQ_LOG_FORMAT",
        value_enum,
        default_value_t
    )]
    log_format: LogFormat,
    /// Sends the spans of traces to this collector (http://HOST:PORT), which speaks OTLP over gRPC.
    #[arg(
        long,
        global = true,
        env = "OTEL_EXPORTER_OTLP_ENDPOINT",
        value_name = "URL"
    )]
    otlp_endpoint: Option<String>,
}

/// How a command prints its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum OutputFormat {
    /// For people.
    #[default]
    Table,
    /// For programs.
    Json,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs one workflow to its end on this machine.
    Run(run::RunArgs),
    /// Checks definitions and prints everything that is wrong with them.
    Validate(validate::ValidateArgs),
    /// Runs the coordinator, and workers in the same process if asked to.
    Serve(serve::ServeArgs),
    /// Runs tasks from queues.
    Worker(worker::WorkerArgs),
    /// Submits workflows and prints their ids.
    Submit(submit::SubmitArgs),
    /// Shows one workflow.
    Status(status::StatusArgs),
    /// Lists workflows, the newest first.
    List(list::ListArgs),
    /// Shows the tasks of a workflow.
    Tasks(tasks::TasksArgs),
    /// Prints the output of a task.
    Output(output::OutputArgs),
    /// Asks for a workflow to be cancelled.
    Cancel(cancel::CancelArgs),
    /// Runs again what did not succeed: failed, upstream-failed and cancelled tasks.
    Retry(retry::RetryArgs),
    /// Deletes workflows with their outputs and logs.
    Delete(delete::DeleteArgs),
    /// Deletes old workflows that have ended.
    Purge(purge::PurgeArgs),
    /// Counts workflows by state.
    Summary(summary::SummaryArgs),
    /// Prints the definition of a workflow.
    Definition(definition::DefinitionArgs),
    /// Draws a workflow, for Graphviz or Mermaid.
    Graph(graph::GraphArgs),
    /// Says why a task is not running.
    Explain(explain::ExplainArgs),
    /// Follows a workflow until it ends.
    Watch(watch::WatchArgs),
    /// Looks at everything that can be wrong, and says what to do.
    Doctor(doctor::DoctorArgs),
    /// Measures the storage and this machine.
    Bench(bench::BenchArgs),
    /// Shows who leads and what it counted.
    Coordinator,
    /// Shows the effective settings and where each comes from.
    Config(config::ConfigArgs),
    /// Inside a task's command: reads the parents' outputs, sets the task's own.
    Task(task::TaskArgs),
}

impl Command {
    const fn default_log(&self) -> &'static str {
        match self {
            Self::Serve(_) | Self::Worker(_) => "info",
            _ => "warn",
        }
    }

    /// Whether it does something that belongs to traces; the others need not look for a collector.
    const fn is_traced(&self) -> bool {
        matches!(
            self,
            Self::Run(_) | Self::Serve(_) | Self::Worker(_) | Self::Submit(_)
        )
    }
}

/// Parses `KEY=VALUE`.
fn parse_label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE".to_owned()),
    }
}

/// The trace parent of whoever runs this process, by the variable that jobq's own tasks have it in too.
fn caller() -> Option<String> {
    let text = std::env::var("TRACEPARENT").ok()?;
    telemetry::is_traceparent(&text).then_some(text)
}

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    let var = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let layers = match settings::load(Cli::command(), std::env::args_os(), var) {
        Ok(layers) => layers,
        Err(failure) => return failure.report(),
    };
    let matches = layers.command.clone().get_matches();
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    let cli = match cli.choose(&matches) {
        Ok(cli) => cli,
        Err(failure) => return failure.report(),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return Failure::from(anyhow::Error::from(error)).report(),
    };
    let telemetry = match start_telemetry(&cli, &runtime, var) {
        Ok(telemetry) => telemetry,
        Err(message) => return Failure::Usage(message).report(),
    };
    if let (Command::Config(args), Some((_, inner))) = (&cli.command, matches.subcommand()) {
        let shown = config::run(&cli.global, args, &layers.command, inner, &layers.origins);
        return shown.unwrap_or_else(|failure| failure.report());
    }
    let result = runtime.block_on(cli.run());
    telemetry.end();
    // Blocking reads that a shutdown left behind must not hold the process.
    runtime.shutdown_background();
    result.unwrap_or_else(|failure| failure.report())
}

/// Starts logs, and traces where the command has some.
fn start_telemetry(
    cli: &Cli,
    runtime: &tokio::runtime::Runtime,
    var: impl Fn(&str) -> Option<String>,
) -> Result<Telemetry, String> {
    let GlobalArgs {
        log,
        log_format,
        otlp_endpoint,
        ..
    } = &cli.global;
    let filter = log.as_deref();
    let filter = filter.unwrap_or_else(|| cli.command.default_log());
    let export = if cli.command.is_traced() {
        TraceExport::from_settings(otlp_endpoint.as_deref(), var)?
    } else {
        None
    };
    let _inside = runtime.enter();
    telemetry::start(filter, *log_format, export.as_ref())
}

impl Cli {
    /// Decides between a server and a storage: a flag beats a variable of the other, two flags
    /// contradict each other, and of two variables the server's counts.
    fn choose(mut self, matches: &clap::ArgMatches) -> Result<Self, Failure> {
        let innermost = settings::deepest(matches);
        let flag = |id| innermost.value_source(id) == Some(ValueSource::CommandLine);
        match (flag("server"), flag("storage")) {
            (true, true) => Err(Failure::Usage(
                "--server and --storage are two places to ask: give one of them".to_owned(),
            )),
            (false, true) => {
                self.global.server = None;
                Ok(self)
            }
            _ => Ok(self),
        }
    }

    async fn run(self) -> Result<ExitCode, Failure> {
        let Self { global, command } = self;
        match command {
            Command::Run(args) => run::run(&global, args).await,
            Command::Validate(args) => validate::run(&args),
            Command::Serve(args) => serve::run(&global, args).await,
            Command::Worker(args) => worker::run(&global, args).await,
            Command::Submit(args) => submit::run(&global, args).await,
            Command::Status(args) => status::run(&global, args).await,
            Command::List(args) => list::run(&global, args).await,
            Command::Tasks(args) => tasks::run(&global, args).await,
            Command::Output(args) => output::run(&global, args).await,
            Command::Cancel(args) => cancel::run(&global, args).await,
            Command::Retry(args) => retry::run(&global, args).await,
            Command::Delete(args) => delete::run(&global, args).await,
            Command::Purge(args) => purge::run(&global, args).await,
            Command::Summary(args) => summary::run(&global, args).await,
            Command::Definition(args) => definition::run(&global, args).await,
            Command::Graph(args) => graph::run(&global, args).await,
            Command::Explain(args) => explain::run(&global, args).await,
            Command::Watch(args) => watch::run(&global, args).await,
            Command::Doctor(args) => doctor::run(&global, args).await,
            Command::Bench(args) => bench::run(&global, args).await,
            Command::Coordinator => coordinator::run(&global).await,
            Command::Task(args) => task::run(&global, args).await,
            // It needs no runtime and was answered before there was one.
            Command::Config(_) => Ok(ExitCode::SUCCESS),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
