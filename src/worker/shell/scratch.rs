//! The private directory of one command.

use std::ffi::OsString;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use tempfile::TempDir;

use crate::wire::TaskMessage;

/// A directory that only this user can enter, removed when dropped, and the variables that tell
/// the command what is in it.
pub(in super::super) struct Scratch {
    dir: TempDir,
    env: Vec<(&'static str, OsString)>,
}

impl Scratch {
    /// Creates the directory and writes what the command will read.
    pub(super) async fn create(task: &TaskMessage) -> io::Result<Self> {
        let dir = tempfile::Builder::new()
            .prefix("jobq-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir()?;
        let mut scratch = Self {
            env: Vec::new(),
            dir,
        };
        scratch
            .env
            .push(("JOBQ_OUTPUT_FILE", scratch.output_file().into()));
        let Some(workflow) = &task.workflow else {
            return Ok(scratch);
        };
        let upstream = scratch.path().join("upstream.json");
        let refs = workflow.upstream.clone().unwrap_or_default();
        tokio::fs::write(&upstream, refs.to_plain_json()).await?;
        scratch.env.extend([
            ("JOBQ_WORKFLOW_ID", workflow.workflow_id.as_str().into()),
            ("JOBQ_WORKFLOW_TASK", workflow.task.as_str().into()),
            (
                "JOBQ_WORKFLOW_ATTEMPT",
                workflow.attempt_no.to_string().into(),
            ),
            ("JOBQ_WORKFLOW_UPSTREAM_REFS", upstream.into()),
        ]);
        if let Some(traceparent) = &workflow.traceparent {
            scratch.env.push(("TRACEPARENT", traceparent.into()));
        }
        Ok(scratch)
    }

    /// The directory.
    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Where the command writes its output. Not there unless it does.
    pub(super) fn output_file(&self) -> PathBuf {
        self.path().join("output.json")
    }

    /// The variables of the task and its files.
    pub(super) fn env(&self) -> impl Iterator<Item = (&'static str, &OsString)> {
        self.env.iter().map(|(name, value)| (*name, value))
    }
}

impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Scratch").field(&self.path()).finish()
    }
}
