//! Blobs in memory.

use std::collections::BTreeMap;
use std::ops::Bound;

use async_trait::async_trait;
use bytes::Bytes;

use super::lease::Lease;
use super::{MemoryStorage, Rooms};
use crate::storage::{
    Blob, BlobInfo, BlobPage, BlobStore, ETag, Error, Expect, IfChanged, Result, check,
};

pub(super) struct StoredBlob {
    pub(super) data: Bytes,
    pub(super) etag: ETag,
    pub(super) lease: Option<Lease>,
}

impl Rooms {
    pub(super) fn container(
        &mut self,
        container: &str,
    ) -> Result<&mut BTreeMap<String, StoredBlob>> {
        self.containers
            .get_mut(container)
            .ok_or_else(|| Error::NotFound {
                what: format!("container {container}"),
            })
    }

    pub(super) fn blob(&mut self, container: &str, name: &str) -> Result<&mut StoredBlob> {
        self.container(container)?
            .get_mut(name)
            .ok_or_else(|| missing(container, name))
    }

    /// Writes a blob's bytes, whatever is there, and leaves its lease alone.
    pub(super) fn write(&mut self, container: &str, name: &str, data: Bytes) -> Result<ETag> {
        let etag = self.next_etag();
        let blob = self
            .container(container)?
            .entry(name.to_owned())
            .or_insert_with(|| StoredBlob {
                data: Bytes::new(),
                etag: etag.clone(),
                lease: None,
            });
        blob.data = data;
        blob.etag = etag.clone();
        Ok(etag)
    }
}

fn missing(container: &str, name: &str) -> Error {
    Error::NotFound {
        what: format!("blob {container}/{name}"),
    }
}

#[async_trait]
impl BlobStore for MemoryStorage {
    async fn create_container(&self, container: &str) -> Result<()> {
        check::container(container)?;
        self.rooms()
            .containers
            .entry(container.to_owned())
            .or_default();
        Ok(())
    }

    async fn get(&self, container: &str, name: &str) -> Result<Blob> {
        let mut rooms = self.rooms();
        let blob = rooms.blob(container, name)?;
        Ok(Blob {
            data: blob.data.clone(),
            etag: blob.etag.clone(),
        })
    }

    async fn get_if_changed(&self, container: &str, name: &str, etag: &ETag) -> Result<IfChanged> {
        let blob = self.get(container, name).await?;
        if blob.etag == *etag {
            return Ok(IfChanged::Unchanged);
        }
        Ok(IfChanged::Changed(blob))
    }

    async fn put(&self, container: &str, name: &str, data: Bytes, expect: Expect) -> Result<ETag> {
        check::blob(name)?;
        check::blob_size(name, data.len())?;
        let mut rooms = self.rooms();
        let present = rooms.container(container)?.get(name).map(|blob| &blob.etag);
        let what = || format!("blob {container}/{name}");
        match (expect, present) {
            (Expect::Absent, Some(_)) => return Err(Error::AlreadyExists { what: what() }),
            (Expect::Version(etag), present) if present != Some(&etag) => {
                return Err(Error::PreconditionFailed { what: what() });
            }
            (Expect::Absent | Expect::Version(_) | Expect::Anything, _) => {}
        }
        rooms.write(container, name, data)
    }

    async fn delete(&self, container: &str, name: &str) -> Result<()> {
        self.rooms()
            .container(container)?
            .remove(name)
            .map(|_| ())
            .ok_or_else(|| missing(container, name))
    }

    async fn list(
        &self,
        container: &str,
        prefix: &str,
        page: Option<&str>,
        limit: usize,
    ) -> Result<BlobPage> {
        check::page(limit)?;
        let mut rooms = self.rooms();
        // A page's token is the last name of the page before.
        let start = match page {
            Some(last) if last >= prefix => Bound::Excluded(last),
            Some(_) | None => Bound::Included(prefix),
        };
        let mut blobs: Vec<BlobInfo> = rooms
            .container(container)?
            .range::<str, _>((start, Bound::Unbounded))
            .take_while(|(name, _)| name.starts_with(prefix))
            .take(limit + 1)
            .map(|(name, blob)| BlobInfo {
                name: name.clone(),
                size: blob.data.len() as u64,
            })
            .collect();
        let more = blobs.len() > limit;
        blobs.truncate(limit);
        let next = blobs.last().filter(|_| more).map(|last| last.name.clone());
        Ok(BlobPage { blobs, next })
    }
}
