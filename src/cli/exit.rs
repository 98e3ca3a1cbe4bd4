//! How commands end.

use std::io;
use std::process::ExitCode;

use crate::api::client;
use crate::control;

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub(super) enum Failure {
    /// The caller has to change something about the call or the definition: exit code 2.
    Usage(String),
    /// Something failed: exit code 1.
    Failed(anyhow::Error),
    /// The reader of our output went away (`jobq list | head`): no more to do, exit code 0.
    OutputClosed,
}

impl Failure {
    /// Tells the person, in one line where possible, and gives the exit code.
    pub(super) fn report(&self) -> ExitCode {
        match self {
            Self::Usage(message) => {
                eprintln!("error: {message}");
                ExitCode::from(2)
            }
            Self::Failed(error) => {
                eprintln!("error: {error:#}");
                ExitCode::FAILURE
            }
            Self::OutputClosed => ExitCode::SUCCESS,
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::Failed(error.into()),
        }
    }
}

impl From<control::Error> for Failure {
    fn from(error: control::Error) -> Self {
        match error {
            control::Error::InvalidDefinition(_) => Self::Usage(error.to_string()),
            other => Self::Failed(other.into()),
        }
    }
}

impl From<client::ClientError> for Failure {
    fn from(error: client::ClientError) -> Self {
        match error {
            client::ClientError::Address(_) => Self::Usage(error.to_string()),
            client::ClientError::Refused(problem) if problem.status == 422 => {
                Self::Usage(client::ClientError::Refused(problem).to_string())
            }
            other => Self::Failed(other.into()),
        }
    }
}

impl From<crate::store::Error> for Failure {
    fn from(error: crate::store::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl From<crate::coordinator::Error> for Failure {
    fn from(error: crate::coordinator::Error) -> Self {
        Self::Failed(error.into())
    }
}

/// Writes data to standard output.
pub(super) fn print(data: impl AsRef<[u8]>) -> Result<(), Failure> {
    use io::Write as _;
    let mut stdout = io::stdout().lock();
    stdout.write_all(data.as_ref())?;
    stdout.flush()?;
    Ok(())
}

/// Writes a value as indented JSON to standard output.
pub(super) fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_string_pretty(value).map_err(anyhow::Error::from)?;
    text.push('\n');
    print(text)
}
