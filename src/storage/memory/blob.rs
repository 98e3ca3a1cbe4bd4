//! Blobs.

use std::ops::Bound;

use async_trait::async_trait;
use bytes::Bytes;

use super::{MemoryStorage, State, StoredBlob};
use crate::limits::PAGE_MAX;
use crate::storage::{Blob, BlobInfo, BlobPage, BlobStore, ETag, Error, Expect, IfChanged, Result};

fn missing(container: &str, name: &str) -> Error {
    Error::NotFound {
        what: format!("blob {container}/{name}"),
    }
}

impl State {
    fn blob(&self, container: &str, name: &str) -> Result<Blob> {
        let found = self
            .containers
            .get(container)
            .and_then(|blobs| blobs.get(name));
        let StoredBlob { data, etag } = found.ok_or_else(|| missing(container, name))?.clone();
        Ok(Blob { data, etag })
    }
}

#[async_trait]
impl BlobStore for MemoryStorage {
    async fn create_container(&self, container: &str) -> Result<()> {
        self.state()
            .containers
            .entry(container.to_owned())
            .or_default();
        Ok(())
    }

    async fn get(&self, container: &str, name: &str) -> Result<Blob> {
        self.state().blob(container, name)
    }

    async fn get_if_changed(&self, container: &str, name: &str, etag: &ETag) -> Result<IfChanged> {
        let blob = self.state().blob(container, name)?;
        Ok(if blob.etag == *etag {
            IfChanged::Unchanged
        } else {
            IfChanged::Changed(blob)
        })
    }

    async fn put(&self, container: &str, name: &str, data: Bytes, expect: Expect) -> Result<ETag> {
        let mut state = self.state();
        let what = || format!("blob {container}/{name}");
        let Some(blobs) = state.containers.get(container) else {
            return Err(Error::NotFound {
                what: format!("container {container}"),
            });
        };
        let found = blobs.get(name).map(|blob| &blob.etag);
        match (&expect, found) {
            (Expect::Absent, Some(_)) => return Err(Error::AlreadyExists { what: what() }),
            (Expect::Version(expected), found) if found != Some(expected) => {
                return Err(Error::PreconditionFailed { what: what() });
            }
            _ => {}
        }
        let etag = state.next_etag();
        let blob = StoredBlob {
            data,
            etag: etag.clone(),
        };
        state
            .containers
            .entry(container.to_owned())
            .or_default()
            .insert(name.to_owned(), blob);
        Ok(etag)
    }

    async fn delete(&self, container: &str, name: &str) -> Result<()> {
        let mut state = self.state();
        let blobs = state.containers.get_mut(container);
        match blobs.and_then(|blobs| blobs.remove(name)) {
            Some(_) => Ok(()),
            None => Err(missing(container, name)),
        }
    }

    async fn list(
        &self,
        container: &str,
        prefix: &str,
        page: Option<&str>,
        limit: usize,
    ) -> Result<BlobPage> {
        let limit = limit.clamp(1, PAGE_MAX);
        let state = self.state();
        let Some(blobs) = state.containers.get(container) else {
            return Err(Error::NotFound {
                what: format!("container {container}"),
            });
        };
        let from = match page {
            Some(page) => Bound::Excluded(page.to_owned()),
            None => Bound::Included(prefix.to_owned()),
        };
        let mut matching = blobs
            .range((from, Bound::Unbounded))
            .take_while(|(name, _)| name.starts_with(prefix))
            .map(|(name, blob)| BlobInfo {
                name: name.clone(),
                size: blob.data.len() as u64,
            });
        let blobs: Vec<_> = matching.by_ref().take(limit).collect();
        let more = matching.next().is_some();
        let next = blobs.last().filter(|_| more).map(|last| last.name.clone());
        Ok(BlobPage { blobs, next })
    }
}
