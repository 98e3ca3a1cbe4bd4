//! From what a command wrote to a reference others can follow.

use std::io;
use std::path::Path;

use bytes::Bytes;
use md5::{Digest as _, Md5};
use tokio::io::AsyncReadExt as _;

use super::publish::insist;
use crate::clock::Clock;
use crate::limits::{FILE_OUTPUT_BYTES_MAX, OUTPUT_BYTES_MAX, OUTPUT_INLINE_BYTES_MAX};
use crate::storage::{BlobStore, Error, Expect, Result as StorageResult};
use crate::wire::{Names, OutputRef, PendingStash, PendingStashes, ReadyStash};
use crate::workflow::{TaskName, WorkflowId};

/// Why an output could not be handed on.
#[derive(Debug, thiserror::Error)]
pub(super) enum OutputError {
    /// The command's doing: the attempt fails with this text.
    #[error("{0}")]
    Unusable(String),
    /// Not the command's doing: the message is left for another delivery.
    #[error(transparent)]
    Storage(#[from] Error),
}

/// Reads the output file of a command. A missing or blank file is no output: shells create the
/// file of a redirection before they know whether anything will be written.
///
/// # Errors
/// Why the file cannot be used, for a person.
pub(super) async fn read_output(path: &Path) -> Result<Option<String>, String> {
    let bytes = match read_bounded(path, OUTPUT_BYTES_MAX as u64).await {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Err(format!("the output has more than {OUTPUT_BYTES_MAX} bytes")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("the output file cannot be read: {error}")),
    };
    let text = String::from_utf8(bytes).map_err(|_| "the output is not UTF-8 text".to_owned())?;
    Ok((!text.trim().is_empty()).then_some(text))
}

/// A regular file's bytes; `None` if there are more than `bytes_max`.
async fn read_bounded(path: &Path, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
    // Opening a pipe would wait for a writer, and a device may never end.
    if !tokio::fs::metadata(path).await?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let file = tokio::fs::File::open(path).await?;
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes).await?;
    Ok((bytes.len() as u64 <= bytes_max).then_some(bytes))
}

/// Where the outputs of one task go.
pub(super) struct OutputStore<'a> {
    pub(super) workflow: &'a WorkflowId,
    pub(super) task: &'a TaskName,
    /// The storage and container of outputs.
    pub(super) outputs: (&'a dyn BlobStore, &'a str),
    /// The storage and container of file outputs.
    pub(super) files: (&'a dyn BlobStore, &'a str),
    pub(super) attempts_max: Option<usize>,
    pub(super) clock: &'a Clock,
}

impl OutputStore<'_> {
    /// Uploads the files an output names, if any, and returns the output that names the uploads.
    /// Relative paths start at `working_dir`.
    pub(super) async fn upload_files(
        &self,
        output: &str,
        working_dir: &Path,
    ) -> Result<String, OutputError> {
        let stashes = PendingStashes::find(output).map_err(|error| {
            OutputError::Unusable(format!("the output cannot be used: {error}"))
        })?;
        let mut ready = Vec::with_capacity(stashes.files().len());
        for file in stashes.files() {
            ready.push(self.upload_file(file, working_dir).await?);
        }
        Ok(stashes.replaced_by(&ready))
    }

    async fn upload_file(
        &self,
        file: &PendingStash,
        working_dir: &Path,
    ) -> Result<ReadyStash, OutputError> {
        let path = working_dir.join(&file.local_path);
        let unusable = |reason: &dyn std::fmt::Display| {
            OutputError::Unusable(format!("file output {}: {reason}", path.display()))
        };
        let bytes = read_bounded(&path, FILE_OUTPUT_BYTES_MAX)
            .await
            .map_err(|error| unusable(&error))?
            .ok_or_else(|| unusable(&format!("more than {FILE_OUTPUT_BYTES_MAX} bytes")))?;
        let ready = ReadyStash {
            blob_name: Names::file_output_blob(self.workflow, self.task, &file.filename),
            md5: hex::encode(Md5::digest(&bytes)),
            size: bytes.len() as u64,
        };
        self.put(self.files, &ready.blob_name, bytes.into()).await?;
        Ok(ready)
    }

    /// Puts an output into the outputs container, at its task's place.
    pub(super) async fn stash(&self, output: String) -> Result<OutputRef, OutputError> {
        let path = Names::output_blob(self.workflow, self.task);
        self.put(self.outputs, &path, output.into()).await?;
        Ok(OutputRef::canonical(self.workflow, self.task))
    }

    async fn put(
        &self,
        (blobs, container): (&dyn BlobStore, &str),
        name: &str,
        data: Bytes,
    ) -> Result<(), OutputError> {
        let put = insist("storing an output", self.attempts_max, self.clock, || {
            put_creating(blobs, container, name, data.clone())
        });
        match put.await {
            Ok(()) => Ok(()),
            Err(error @ (Error::TooLarge { .. } | Error::Invalid { .. })) => {
                Err(OutputError::Unusable(error.to_string()))
            }
            Err(error) => Err(OutputError::Storage(error)),
        }
    }
}

/// Writes a blob, whatever is there; creates its container first if it is missing.
pub(super) async fn put_creating(
    blobs: &dyn BlobStore,
    container: &str,
    name: &str,
    data: Bytes,
) -> StorageResult<()> {
    match blobs
        .put(container, name, data.clone(), Expect::Anything)
        .await
    {
        Err(Error::NotFound { .. }) => {
            blobs.create_container(container).await?;
            blobs
                .put(container, name, data, Expect::Anything)
                .await
                .map(drop)
        }
        result => result.map(drop),
    }
}

/// Whether an output may travel in its completion message.
pub(super) const fn fits_inline(output: &str) -> bool {
    output.len() <= OUTPUT_INLINE_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn output_files_are_read_within_bounds() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("output.json");
        assert_eq!(read_output(&path).await, Ok(None));
        std::fs::write(&path, " \n").unwrap();
        assert_eq!(read_output(&path).await, Ok(None));
        std::fs::write(&path, "{\"a\": 1}\n").unwrap();
        assert_eq!(
            read_output(&path).await,
            Ok(Some("{\"a\": 1}\n".to_owned()))
        );
        std::fs::write(&path, [0xff]).unwrap();
        assert_eq!(
            read_output(&path).await,
            Err("the output is not UTF-8 text".to_owned())
        );
        let large = std::fs::File::create(&path).unwrap();
        large.set_len(OUTPUT_BYTES_MAX as u64 + 1).unwrap();
        assert!(read_output(&path).await.unwrap_err().contains("more than"));
        assert!(
            read_output(dir.path())
                .await
                .unwrap_err()
                .contains("not a regular file")
        );
    }

    #[test]
    fn one_byte_past_the_inline_limit_is_stashed() {
        assert!(fits_inline(&"x".repeat(OUTPUT_INLINE_BYTES_MAX)));
        assert!(!fits_inline(&"x".repeat(OUTPUT_INLINE_BYTES_MAX + 1)));
    }
}
