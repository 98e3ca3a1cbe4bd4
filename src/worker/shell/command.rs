//! The command in a task's kwargs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// What a worker reads of the kwargs. The command itself may use other keys for its own ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ShellCommand {
    pub(super) cmd: String,
    pub(super) env: BTreeMap<String, String>,
    pub(super) cwd: Option<PathBuf>,
}

impl ShellCommand {
    /// Reads `cmd` (required), `env` and `cwd`.
    ///
    /// # Errors
    /// What is missing or of the wrong type, for a person.
    pub(super) fn from_kwargs(kwargs: &RawValue) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Fields {
            cmd: Option<Value>,
            env: Option<BTreeMap<String, Value>>,
            cwd: Option<PathBuf>,
        }
        let fields: Fields = serde_json::from_str(kwargs.get())
            .map_err(|error| format!("kwargs cannot be used: {error}"))?;
        let cmd = match fields.cmd {
            Some(Value::String(cmd)) => cmd,
            Some(_) => return Err("kwargs.cmd must be a string".to_owned()),
            None => return Err("the task has no kwargs.cmd to run".to_owned()),
        };
        let env = fields.env.unwrap_or_default().into_iter().map(variable);
        Ok(Self {
            cmd,
            env: env.collect::<Result<_, _>>()?,
            cwd: fields.cwd,
        })
    }
}

/// Numbers and truth values are taken as their JSON text: `env: {SEED: 7}` is what people write.
fn variable((name, value): (String, Value)) -> Result<(String, String), String> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(format!("kwargs.env has an invalid name {name:?}"));
    }
    match value {
        Value::String(text) => Ok((name, text)),
        Value::Number(_) | Value::Bool(_) => Ok((name, value.to_string())),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            Err(format!("kwargs.env.{name} must be a string or a number"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kwargs: &str) -> Result<ShellCommand, String> {
        ShellCommand::from_kwargs(&RawValue::from_string(kwargs.to_owned()).unwrap())
    }

    #[test]
    fn command_environment_and_directory_are_read() {
        let command =
            read(r#"{"cmd":"x","env":{"A":"b","N":7,"T":true},"cwd":"/tmp","more":[]}"#).unwrap();
        assert_eq!(command.cmd, "x");
        assert_eq!(command.cwd, Some(PathBuf::from("/tmp")));
        let env: Vec<_> = command
            .env
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .collect();
        assert_eq!(env, [("A", "b"), ("N", "7"), ("T", "true")]);
    }

    #[test]
    fn what_cannot_be_run_is_explained() {
        for (kwargs, reason) in [
            ("{}", "no kwargs.cmd"),
            (r#"{"cmd":["a"]}"#, "cmd must be a string"),
            (r#"{"cmd":"x","env":{"A":null}}"#, "env.A must be"),
            (r#"{"cmd":"x","env":{"A=B":"c"}}"#, "invalid name \"A=B\""),
            (r#"{"cmd":"x","env":[]}"#, "cannot be used"),
            (r#"{"cmd":"x","cwd":1}"#, "cannot be used"),
        ] {
            let error = read(kwargs).unwrap_err();
            assert!(error.contains(reason), "{kwargs}: {error}");
        }
    }
}
