//! The blob port.

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;

use super::Result;

/// The version of a blob: another one after every write, never reused for the same name.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ETag(pub String);

impl fmt::Debug for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ETag({})", self.0)
    }
}

/// What must hold for a write to take effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    /// Nothing is there yet; otherwise the write fails with `AlreadyExists`.
    Absent,
    /// This very version is there; otherwise it fails with `PreconditionFailed`, also when the
    /// blob is gone.
    Version(ETag),
    /// Anything, or nothing. Never used for workflow state while a coordinator may run.
    Anything,
}

/// A blob's bytes and version, read together.
#[derive(Debug, Clone)]
pub struct Blob {
    /// The content.
    pub data: Bytes,
    /// The version the content belongs to.
    pub etag: ETag,
}

/// The answer to a conditional read.
#[derive(Debug, Clone)]
pub enum IfChanged {
    /// The version is still the one given.
    Unchanged,
    /// Another version, in full.
    Changed(Blob),
}

/// A blob as listings show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobInfo {
    /// The name within its container.
    pub name: String,
    /// The size in bytes.
    pub size: u64,
}

/// A page of a listing.
#[derive(Debug, Clone, Default)]
pub struct BlobPage {
    /// Blobs in ascending byte order of their names.
    pub blobs: Vec<BlobInfo>,
    /// Hand this to the next call; `None` after the last page.
    pub next: Option<String>,
}

/// Named bytes in containers, with versions for compare-and-swap.
#[async_trait]
pub trait BlobStore: Send + Sync + 'static {
    /// Creates the container; fine if it exists. Survives a crash after `Ok`.
    async fn create_container(&self, container: &str) -> Result<()>;

    /// Reads a blob whole; all bytes belong to the one version returned. `NotFound` if the blob
    /// or its container is missing.
    async fn get(&self, container: &str, name: &str) -> Result<Blob>;

    /// As [`get`](Self::get), but answers `Unchanged`, without the bytes, if the version is still
    /// `etag`.
    async fn get_if_changed(&self, container: &str, name: &str, etag: &ETag) -> Result<IfChanged>;

    /// Writes a blob whole and returns its new version. After `Ok` the bytes survive a crash of
    /// this process and of the machine; after an error other than `Unavailable` nothing changed.
    async fn put(&self, container: &str, name: &str, data: Bytes, expect: Expect) -> Result<ETag>;

    /// Deletes a blob, whatever its version. `NotFound` if it is missing. After `Ok` it stays
    /// deleted across a crash.
    async fn delete(&self, container: &str, name: &str) -> Result<()>;

    /// Lists blobs whose names start with `prefix`, at most `limit` (1 to 1,000) a page, starting
    /// where `page` says. A blob that exists during the whole listing appears exactly once.
    /// `NotFound` if the container is missing.
    async fn list(
        &self,
        container: &str,
        prefix: &str,
        page: Option<&str>,
        limit: usize,
    ) -> Result<BlobPage>;
}
