//! Where settings come from: flags, then environment variables, then the configuration file, then
//! defaults.
//!
//! What the file says becomes the default of the flag of the same name, so that one parser judges
//! every value wherever it was written.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgMatches, Command};

use super::exit::Failure;
use crate::config::{ConfigFile, Entry, split_workflow_prefix};

/// A setting that may stand in the configuration file.
pub(super) struct Setting {
    /// Its section; empty at the top level.
    pub(super) section: &'static str,
    /// Its name there.
    pub(super) key: &'static str,
    /// The id of its flag.
    pub(super) arg: &'static str,
}

const fn setting(section: &'static str, key: &'static str, arg: &'static str) -> Setting {
    Setting { section, key, arg }
}

/// Every setting of the file.
pub(super) const SETTINGS: &[Setting] = &[
    setting("", "log", "log"),
    setting("", "log_format", "log_format"),
    setting("", "otlp_endpoint", "otlp_endpoint"),
    setting("connection", "storage", "storage"),
    setting("connection", "server", "server"),
    setting("connection", "prefix", "prefix"),
    setting("connection", "queues", "queue_storage"),
    setting("connection", "blobs", "file_storage"),
    setting("coordinator", "batch_size", "batch_size"),
    setting(
        "coordinator",
        "visibility_timeout_s",
        "visibility_timeout_s",
    ),
    setting("coordinator", "idle_sleep_s", "idle_sleep_s"),
    setting(
        "coordinator",
        "cancel_poll_interval_s",
        "cancel_poll_interval_s",
    ),
    setting("coordinator", "flush_retry_limit", "flush_retry_limit"),
    setting(
        "coordinator",
        "ready_sweep_interval_s",
        "ready_sweep_interval_s",
    ),
    setting(
        "coordinator",
        "ready_repair_threshold_s",
        "ready_repair_threshold_s",
    ),
    setting("server", "listen", "listen"),
    setting("worker", "parallel", "parallel"),
    setting("worker", "visibility_timeout", "visibility_timeout"),
    setting("worker", "cancel_poll_interval", "cancel_poll_interval"),
    setting("worker", "kill_timeout", "kill_timeout"),
    setting("worker", "max_idle_backoff", "max_idle_backoff"),
    setting(
        "worker",
        "completion_send_max_attempts",
        "completion_send_max_attempts",
    ),
];

/// Upstream's variable for an account and a prefix in one.
const WORKFLOW_PREFIX: &str = "JOBQ_WORKFLOW_PREFIX";

/// The command line, with what the environment and the file say as its defaults.
#[derive(Debug)]
pub(super) struct Layers {
    /// The command line to parse.
    pub(super) command: Command,
    /// Where the default of a flag comes from, if it is not its own.
    pub(super) origins: BTreeMap<&'static str, String>,
}

/// Reads the layers below the flags. `arguments` are looked at only for the file's name.
pub(super) fn load(
    command: Command,
    arguments: impl IntoIterator<Item = OsString>,
    var: impl Fn(&str) -> Option<String>,
) -> Result<Layers, Failure> {
    let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
    let named = named_file(command.clone(), arguments);
    let file = ConfigFile::find(named.as_deref(), &var).map_err(|error| usage(&error))?;
    let mut layers = Layers {
        command,
        origins: BTreeMap::new(),
    };
    if let Some(file) = file {
        layers
            .add_file(&file)
            .map_err(|problems| usage(&problems.join("\n")))?;
    }
    if let Some(text) = var(WORKFLOW_PREFIX).filter(|text| !text.is_empty()) {
        let Some((storage, prefix)) = split_workflow_prefix(&text) else {
            return Err(Failure::Usage(format!(
                "{WORKFLOW_PREFIX} is {text:?}; write ACCOUNT/PREFIX, for example science/Training"
            )));
        };
        layers.add("storage", &storage, WORKFLOW_PREFIX.to_owned());
        layers.add("prefix", &prefix, WORKFLOW_PREFIX.to_owned());
    }
    Ok(layers)
}

/// The file that `--config` or its variable names. Whatever else is wrong with the arguments is
/// told later.
fn named_file(command: Command, arguments: impl IntoIterator<Item = OsString>) -> Option<PathBuf> {
    let lenient = command.ignore_errors(true).try_get_matches_from(arguments);
    deepest(&lenient.ok()?)
        .get_one::<PathBuf>("config")
        .cloned()
}

/// The matches of the innermost command, which know the global flags too.
pub(super) fn deepest(matches: &ArgMatches) -> &ArgMatches {
    matches
        .subcommand()
        .map_or(matches, |(_, inner)| deepest(inner))
}

impl Layers {
    fn add(&mut self, arg: &'static str, value: &str, origin: String) {
        let command = std::mem::take(&mut self.command);
        self.command = with_default(command, arg, value);
        self.origins.insert(arg, origin);
    }

    /// Adds a file's settings, or tells all that is wrong with them.
    fn add_file(&mut self, file: &ConfigFile) -> Result<(), Vec<String>> {
        let mut problems = Vec::new();
        for entry in &file.entries {
            let place = format!("{}:{}", file.path.display(), entry.line);
            match known(entry).and_then(|setting| self.judge(setting, entry)) {
                Ok(arg) => self.add(arg, &entry.value, place),
                Err(problem) => problems.push(format!("{place}: {problem}")),
            }
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems)
        }
    }

    /// Whether the flag of a setting takes its value.
    fn judge(&self, setting: &Setting, entry: &Entry) -> Result<&'static str, String> {
        let Some(arg) = find(&self.command, setting.arg) else {
            return Err(format!("{} cannot be set here", entry.key));
        };
        let flag = arg.get_long().unwrap_or(setting.arg).to_owned();
        let alone = Command::new("jobq").arg(arg.clone().global(false));
        let given = format!("--{flag}={}", entry.value);
        match alone.try_get_matches_from(["jobq", &given]) {
            Ok(_) => Ok(setting.arg),
            Err(error) => Err(first_line(&error.to_string())),
        }
    }
}

fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

/// The setting that an entry names.
fn known(entry: &Entry) -> Result<&'static Setting, String> {
    let named = |setting: &&Setting| setting.section == entry.section && setting.key == entry.key;
    if let Some(setting) = SETTINGS.iter().find(named) {
        return Ok(setting);
    }
    let full = |section: &str, key: &str| match section {
        "" => key.to_owned(),
        section => format!("{section}.{key}"),
    };
    let wrong = full(&entry.section, &entry.key);
    let close = SETTINGS.iter().map(|setting| {
        let name = full(setting.section, setting.key);
        (strsim::jaro_winkler(&wrong, &name), name)
    });
    let closest = close.max_by(|(one, _), (another, _)| one.total_cmp(another));
    let hint = match closest {
        Some((likeness, name)) if likeness > 0.8 => format!("; did you mean {name}?"),
        _ => "; see docs/configuration.md for all settings".to_owned(),
    };
    Err(format!("there is no setting {wrong}{hint}"))
}

/// The flag of a setting: one of all commands, or one that `config` has, as it has them all.
pub(super) fn find<'a>(command: &'a Command, id: &str) -> Option<&'a Arg> {
    let config = command.find_subcommand("config");
    let mut all = command
        .get_arguments()
        .chain(config.into_iter().flat_map(Command::get_arguments));
    all.find(|arg| arg.get_id() == id)
}

/// The command with a new default for a flag, wherever it or a subcommand has it.
fn with_default(command: Command, id: &'static str, value: &str) -> Command {
    let has = command.get_arguments().any(|arg| arg.get_id() == id);
    let mut command = if has {
        command.mut_arg(id, |arg| arg.default_value(value.to_owned()))
    } else {
        command
    };
    let inner: Vec<_> = command
        .get_subcommands()
        .map(|inner| inner.get_name().to_owned())
        .collect();
    for name in inner {
        command = command.mut_subcommand(name, |inner| with_default(inner, id, value));
    }
    command
}

/// The name of a file, to show where a value came from.
pub(super) fn origin_of(
    layers_origins: &BTreeMap<&'static str, String>,
    matches: &ArgMatches,
    arg: &Arg,
    id: &str,
) -> String {
    use clap::parser::ValueSource;
    let flag = || format!("--{}", arg.get_long().unwrap_or(id));
    match matches.value_source(id) {
        Some(ValueSource::CommandLine) => flag(),
        Some(ValueSource::EnvVariable) => {
            let name = arg
                .get_env()
                .map(|name| name.to_string_lossy().into_owned());
            name.unwrap_or_else(flag)
        }
        _ => layers_origins
            .get(id)
            .cloned()
            .unwrap_or_else(|| "default".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::super::Cli;
    use super::*;

    fn layers(text: &str) -> Result<Layers, Vec<String>> {
        let mut layers = Layers {
            command: Cli::command(),
            origins: BTreeMap::new(),
        };
        let file = ConfigFile::parse(std::path::Path::new("jobq.yaml"), text).unwrap();
        layers.add_file(&file).map(|()| layers)
    }

    /// The line that documents a setting.
    fn documented(command: &Command, setting: &Setting) -> String {
        let arg = find(command, setting.arg).unwrap();
        let name = match setting.section {
            "" => setting.key.to_owned(),
            section => format!("{section}.{}", setting.key),
        };
        let ticked = |text: String| match text.as_str() {
            "" => "-".to_owned(),
            text => format!("`{text}`"),
        };
        let env = arg
            .get_env()
            .map(|name| name.to_string_lossy().into_owned());
        let default = arg.get_default_values().first();
        let default = default.map(|value| value.to_string_lossy().into_owned());
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        format!(
            "| `{name}` | `--{}` | {} | {} | {} |",
            arg.get_long().unwrap(),
            ticked(env.unwrap_or_default()),
            ticked(default.unwrap_or_default()),
            help.split_whitespace().collect::<Vec<_>>().join(" "),
        )
    }

    #[test]
    fn the_documented_settings_are_those_there_are() {
        let doc = include_str!("../../docs/configuration.md");
        let (_, table) = doc.split_once("| --- |").unwrap();
        let written = table
            .lines()
            .skip(1)
            .take_while(|line| line.starts_with("| `"));
        let written: Vec<_> = written.collect();
        let command = Cli::command();
        let expected: Vec<_> = SETTINGS
            .iter()
            .map(|setting| documented(&command, setting))
            .collect();
        assert_eq!(
            written,
            expected,
            "the table should be:\n{}",
            expected.join("\n")
        );
    }

    #[test]
    fn every_setting_is_a_flag() {
        for setting in SETTINGS {
            assert!(
                find(&Cli::command(), setting.arg).is_some(),
                "{}",
                setting.arg
            );
        }
    }

    #[test]
    fn a_flag_is_stronger_than_the_file_and_the_file_than_the_default() {
        let text = "connection:\n  prefix: Filed\ncoordinator:\n  idle_sleep_s: 0.25\n";
        let prefix = |arguments: &[&str]| {
            let command = layers(text).unwrap().command;
            let matches = command.try_get_matches_from(arguments).unwrap();
            let raw = deepest(&matches).get_raw("prefix").unwrap().next().unwrap();
            raw.to_string_lossy().into_owned()
        };
        assert_eq!(prefix(&["jobq", "list"]), "Filed");
        assert_eq!(prefix(&["jobq", "list", "--prefix", "Given"]), "Given");
        let command = layers(text).unwrap().command;
        let matches = command.try_get_matches_from(["jobq", "serve"]).unwrap();
        let idle = deepest(&matches).get_one::<std::time::Duration>("idle_sleep_s");
        assert_eq!(idle, Some(&std::time::Duration::from_millis(250)));
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once_with_lines() {
        let text = "conection:\n  storage: azurite\nconnection:\n  prefixx: A\n  storage: redis:x\n\
                    coordinator:\n  idle_sleep_s: soon\n  flush_retry_limit: -1\nworker:\n  parallel: 0\n";
        let problems = layers(text).unwrap_err();
        let expected = [
            ("jobq.yaml:2: ", "did you mean connection.storage?"),
            ("jobq.yaml:4: ", "did you mean connection.prefix?"),
            ("jobq.yaml:5: ", "names no storage"),
            ("jobq.yaml:7: ", "is no duration"),
            ("jobq.yaml:8: ", "--flush-retry-limit"),
            ("jobq.yaml:10: ", "must be a number from 1"),
        ];
        assert_eq!(problems.len(), expected.len(), "{problems:#?}");
        for (problem, (place, part)) in problems.iter().zip(expected) {
            assert!(
                problem.starts_with(place) && problem.contains(part),
                "{problem}"
            );
        }
    }

    #[test]
    fn upstreams_variable_is_stronger_than_the_file() {
        let var = |name: &str| (name == WORKFLOW_PREFIX).then(|| "science/Mine".to_owned());
        let layers = load(Cli::command(), ["jobq".into()], var).unwrap();
        assert_eq!(layers.origins["prefix"], WORKFLOW_PREFIX);
        let matches = layers
            .command
            .try_get_matches_from(["jobq", "list"])
            .unwrap();
        let storage = deepest(&matches)
            .get_raw("storage")
            .unwrap()
            .next()
            .unwrap();
        assert_eq!(storage, "azure:science");
        let wrong = |name: &str| (name == WORKFLOW_PREFIX).then(|| "Mine".to_owned());
        assert!(load(Cli::command(), ["jobq".into()], wrong).is_err());
    }
}
