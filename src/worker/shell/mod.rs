//! Runs tasks as shell commands.
//!
//! | file | what it does |
//! | --- | --- |
//! | `command` | reads `cmd`, `env` and `cwd` from a task's kwargs |
//! | `scratch` | the private directory of one command: output file, upstream references, log |
//! | `group` | the command's process group: signals to all of it |
//! | `capture` | keeps both pipes flowing; keeps the log and the end of stderr |
//!
//! ```text
//! spawn in an own group ──► leader ends ─────────────────────► kill strays ──► outcome
//!        │                                                        ▲
//!        └── stop requested ─► SIGTERM to the group ─► group gone ┤
//!                                      └─ kill_timeout ─► SIGKILL ┘
//! ```
//! A command ends when its leader (the shell) ends: as in a container, what it left behind in its
//! group is killed, so a slot that is free is free. Processes that left the group are nobody's.

mod capture;
mod command;
mod group;
mod scratch;

pub(super) use capture::AttemptLog;
pub(super) use scratch::Scratch;

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use async_trait::async_trait;
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use self::capture::capture;
use self::command::ShellCommand;
use self::group::ProcessGroup;
use super::output::read_output;
use super::runner::{Ending, RunOutcome, Runner, StopSignal};
use crate::wire::TaskMessage;

/// The shells tried, best first.
const SHELLS: [&str; 2] = ["bash", "sh"];

/// Runs `kwargs.cmd` by `bash -c`, or by `sh -c` where there is no bash.
#[derive(Debug, Clone)]
pub struct ShellRunner {
    kill_timeout: Duration,
    env: Vec<(String, String)>,
}

impl ShellRunner {
    /// A runner that lets a command live for `kill_timeout` after it was asked to end.
    #[must_use]
    pub const fn new(kill_timeout: Duration) -> Self {
        Self {
            kill_timeout,
            env: Vec::new(),
        }
    }

    /// The same runner, passing `env` to every command on top of the worker's own environment.
    #[must_use]
    pub fn with_env(mut self, env: Vec<(String, String)>) -> Self {
        self.env = env;
        self
    }

    async fn try_run(&self, task: &TaskMessage, stop: StopSignal) -> Result<RunOutcome, String> {
        let command = ShellCommand::from_kwargs(&task.kwargs)?;
        let scratch = Scratch::create(task)
            .await
            .map_err(|error| format!("no directory for the command's files: {error}"))?;
        let mut child = self.spawn(&command, &scratch)?;
        let group = ProcessGroup::led_by(&child)
            .ok_or_else(|| "the command ended before it could be watched".to_owned())?;
        let pipes = (child.stdout.take(), child.stderr.take());
        let ended = CancellationToken::new();
        let running = async {
            let status = self.supervise(&mut child, group, &stop).await;
            ended.cancel();
            status
        };
        let (status, captured) =
            tokio::join!(running, capture(pipes, scratch.path(), ended.clone()));
        let ending = status.map_or_else(
            |error| Ending::Failed(format!("the command's end is not known: {error}")),
            ending,
        );
        let output = if ending == Ending::Exited(0) {
            read_output(&scratch.output_file()).await
        } else {
            Ok(None)
        };
        Ok(RunOutcome {
            ending,
            stderr_tail: captured.stderr_tail,
            output,
            working_dir: command.cwd,
            log: captured.log,
            _scratch: Some(scratch),
        })
    }

    fn spawn(&self, command: &ShellCommand, scratch: &Scratch) -> Result<Child, String> {
        // Without this check a missing directory would look like a missing shell.
        if let Some(cwd) = command.cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
            return Err(format!("kwargs.cwd {} is not a directory", cwd.display()));
        }
        let mut error = io::Error::from(io::ErrorKind::NotFound);
        for shell in SHELLS {
            let mut process = Command::new(shell);
            process
                .arg("-c")
                .arg(&command.cmd)
                .envs(self.env.iter().map(|(key, value)| (key, value)))
                .envs(&command.env)
                .envs(scratch.env())
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .process_group(0);
            if let Some(cwd) = &command.cwd {
                process.current_dir(cwd);
            }
            match process.spawn() {
                Ok(child) => return Ok(child),
                Err(failed) => error = failed,
            }
            if error.kind() != io::ErrorKind::NotFound {
                break;
            }
        }
        Err(format!("the command could not be started: {error}"))
    }

    /// Waits for the leader to end, or once a stop is requested for the whole group; what is left
    /// of the group then is killed.
    async fn supervise(
        &self,
        child: &mut Child,
        group: ProcessGroup,
        stop: &StopSignal,
    ) -> io::Result<ExitStatus> {
        let by_itself = tokio::select! {
            biased;
            status = child.wait() => Some(status),
            () = stop.requested() => None,
        };
        match by_itself {
            Some(status) => status,
            None => self.terminate(child, &group).await,
        }
    }

    async fn terminate(&self, child: &mut Child, group: &ProcessGroup) -> io::Result<ExitStatus> {
        let deadline = Instant::now() + self.kill_timeout;
        group.terminate();
        if let Ok(status) = timeout_at(deadline, child.wait()).await {
            // The shell dies of the signal at once, while what it started may need time to save
            // its work.
            let _ = timeout_at(deadline, group.gone()).await;
            return status;
        }
        group.kill();
        child.wait().await
    }
}

#[async_trait]
impl Runner for ShellRunner {
    async fn run(&self, task: &TaskMessage, stop: StopSignal) -> RunOutcome {
        self.try_run(task, stop)
            .await
            .unwrap_or_else(|reason| RunOutcome::in_process(Ending::Failed(reason), None))
    }
}

fn ending(status: ExitStatus) -> Ending {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Exited(code),
        (None, Some(signal)) => Ending::Signalled(signal),
        (None, None) => Ending::Failed(format!("the command ended strangely: {status}")),
    }
}

#[cfg(test)]
mod tests;
