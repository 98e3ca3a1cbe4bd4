//! `jobq config`.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::{ArgMatches, Args, Command};
use serde::Serialize;

use super::exit::{Failure, print, print_json};
use super::hosting::{WorkerSettings, parse_parallel};
use super::serve::{CoordinatorSettings, ServerSettings};
use super::settings::{self, SETTINGS};
use super::{GlobalArgs, OutputFormat, open, table};

/// Prints the effective settings: what `serve` and `worker` would use if they were given the same
/// flags here.
#[derive(Debug, Args)]
pub(super) struct ConfigArgs {
    /// How to print them.
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
    /// How many tasks a worker runs at once.
    #[arg(short = 'n', long, default_value = "1", value_parser = parse_parallel, value_name = "N")]
    parallel: usize,
    #[command(flatten)]
    server: ServerSettings,
    #[command(flatten)]
    coordinator: CoordinatorSettings,
    #[command(flatten)]
    worker: WorkerSettings,
}

/// One line of the answer.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    /// The setting, as the configuration file names it.
    pub(super) setting: String,
    /// Its value; `null` if it has none.
    pub(super) value: Option<String>,
    /// Where the value comes from: a flag, a variable, a line of a file, or `default`.
    pub(super) from: String,
}

/// Prints what the innermost matches of the command line say.
pub(super) fn run(
    global: &GlobalArgs,
    args: &ConfigArgs,
    command: &Command,
    matches: &ArgMatches,
    origins: &BTreeMap<&'static str, String>,
) -> Result<ExitCode, Failure> {
    let mut rows: Vec<_> = SETTINGS
        .iter()
        .filter_map(|setting| {
            let arg = settings::find(command, setting.arg)?;
            let mut raw = matches.get_raw(setting.arg).into_iter().flatten();
            let name = match setting.section {
                "" => setting.key.to_owned(),
                section => format!("{section}.{}", setting.key),
            };
            Some(Row {
                setting: name,
                value: raw.next().map(|value| value.to_string_lossy().into_owned()),
                from: settings::origin_of(origins, matches, arg, setting.arg),
            })
        })
        .collect();
    rows.extend(open::described(global)?);
    match args.output {
        OutputFormat::Json => print_json(&rows)?,
        OutputFormat::Table => print(table::settings(&rows))?,
    }
    Ok(ExitCode::SUCCESS)
}
