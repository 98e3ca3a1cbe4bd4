//! How a task is run: the seam between the worker's protocol and the command.

use std::fmt;
use std::path::PathBuf;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::shell::{AttemptLog, Scratch};
use crate::limits::ERROR_BYTES_MAX;
use crate::wire::{TaskMessage, bounded_text};

/// Runs tasks.
#[async_trait]
pub trait Runner: Send + Sync + 'static {
    /// Runs one attempt to its end. A workflow task has its `upstream` filled in. When `stop` is
    /// requested the command is asked to end, and made to if it does not; the call returns once it
    /// has ended.
    async fn run(&self, task: &TaskMessage, stop: StopSignal) -> RunOutcome;
}

/// Tells a runner that its command has to end.
#[derive(Debug, Clone, Default)]
pub struct StopSignal(CancellationToken);

impl StopSignal {
    /// Requests the stop.
    pub fn stop(&self) {
        self.0.cancel();
    }

    /// Returns once the stop is requested.
    pub async fn requested(&self) {
        self.0.cancelled().await;
    }
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this code; 0 is success.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// It never ran, or its end is not known; why.
    Failed(String),
}

impl Ending {
    /// The exit code, if the command ended by itself.
    #[must_use]
    pub const fn exit_code(&self) -> Option<i32> {
        match self {
            Self::Exited(code) => Some(*code),
            Self::Signalled(_) | Self::Failed(_) => None,
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit code {code}"),
            Self::Signalled(number) => match nix::sys::signal::Signal::try_from(*number) {
                Ok(signal) => write!(f, "killed by {signal}"),
                Err(_) => write!(f, "killed by signal {number}"),
            },
            Self::Failed(reason) => f.write_str(reason),
        }
    }
}

/// What is left of a command that ended.
#[derive(Debug)]
pub struct RunOutcome {
    /// How it ended.
    pub ending: Ending,
    /// The end of what it wrote to stderr, at most `ERROR_BYTES_MAX` bytes.
    pub stderr_tail: String,
    /// The output it wrote, as text, or why that cannot be used. Whether it is JSON is not checked
    /// yet. Counts only after success.
    pub output: Result<Option<String>, String>,
    /// Where relative paths of file outputs start; the worker's own directory unless given.
    pub working_dir: Option<PathBuf>,
    /// What it printed.
    pub(super) log: Option<AttemptLog>,
    /// The command's private files; they live as long as this, because an output may name them.
    pub(super) _scratch: Option<Scratch>,
}

impl RunOutcome {
    /// The outcome of work done in this process, which prints nothing and names no files.
    #[must_use]
    pub fn in_process(ending: Ending, output: Option<String>) -> Self {
        Self {
            ending,
            stderr_tail: String::new(),
            output: Ok(output),
            working_dir: None,
            log: None,
            _scratch: None,
        }
    }

    /// Whether the command itself reports success.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.ending == Ending::Exited(0)
    }

    /// Why the attempt failed, for a person: how the command ended, then what it said last. At most
    /// `ERROR_BYTES_MAX` bytes; the end is kept, because that is where programs name the cause.
    #[must_use]
    pub fn failure(&self) -> String {
        let ending = bounded_text(self.ending.to_string(), ERROR_BYTES_MAX / 2);
        let tail = self.stderr_tail.trim();
        if tail.is_empty() {
            return ending;
        }
        let room = ERROR_BYTES_MAX - ending.len() - ": ".len();
        let start = tail.ceil_char_boundary(tail.len().saturating_sub(room));
        format!("{ending}: {}", &tail[start..])
    }
}

/// Runs nothing and succeeds at once, with the same output every time. For benchmarks and tests
/// of everything around the command.
#[derive(Debug, Clone, Default)]
pub struct NoopRunner {
    /// The output of every task: JSON text.
    pub output: Option<String>,
}

#[async_trait]
impl Runner for NoopRunner {
    async fn run(&self, _task: &TaskMessage, _stop: StopSignal) -> RunOutcome {
        RunOutcome::in_process(Ending::Exited(0), self.output.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_say_how_the_command_ended_and_what_it_said() {
        let mut outcome = RunOutcome::in_process(Ending::Exited(3), None);
        assert_eq!(outcome.failure(), "exit code 3");
        outcome.stderr_tail = "no such file\n".to_owned();
        assert_eq!(outcome.failure(), "exit code 3: no such file");
        outcome.ending = Ending::Signalled(9);
        assert_eq!(outcome.failure(), "killed by SIGKILL: no such file");
    }
}
