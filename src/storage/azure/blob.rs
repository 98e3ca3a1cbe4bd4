//! The blob port on the blob service.

use std::num::NonZeroU32;
use std::time::Duration;

use async_trait::async_trait;
use azure_core::prelude::{IfMatchCondition, MaxResults, NextMarker, Prefix};
use azure_storage_blobs::prelude::BlobClient;
use bytes::Bytes;
use futures::StreamExt as _;

use super::AzureStorage;
use super::errors::{Service, Translate, answer};
use super::retry::{SHORT, for_bytes, once, repeatable};
use crate::limits;
use crate::storage::{
    Blob, BlobInfo, BlobPage, BlobStore, ETag, Error, Expect, IfChanged, Result, check,
};

/// Time to read a blob of any size; a stalled connection ends sooner by itself.
const READ: Duration = Duration::from_secs(600);

impl AzureStorage {
    pub(super) fn blob_client(&self, container: &str, name: &str) -> Result<BlobClient> {
        check::container(container)?;
        blob_name(name)?;
        let container = self.blobs.container_client(container);
        Ok(container.blob_client(name))
    }

    fn about_blob(&self, container: &str, name: &str) -> Translate<'_> {
        self.translate(Service::Blob, format!("blob {container}/{name}"))
    }

    fn about_container(&self, container: &str) -> Translate<'_> {
        self.translate(Service::Blob, format!("container {container}"))
    }

    /// `NotFound` if the container is missing.
    pub(super) async fn container_exists(&self, container: &str) -> Result<()> {
        let client = self.blobs.container_client(container);
        let look = || client.get_properties().into_future();
        let found = repeatable(&self.about_container(container), SHORT, look).await;
        found.map(drop)
    }

    /// Reads a blob in one request, so that all bytes are of one version.
    async fn read(&self, container: &str, name: &str, known: Option<&ETag>) -> Result<IfChanged> {
        let client = self.blob_client(container, name)?;
        let about = self.about_blob(container, name);
        let read = repeatable(&about, READ, || read_once(client.clone(), known)).await?;
        match read {
            Read::Whole(blob) => Ok(IfChanged::Changed(blob)),
            Read::Unchanged => Ok(IfChanged::Unchanged),
            Read::Beyond(bytes) => Err(Error::TooLarge {
                what: about.what,
                bytes,
                limit: limits::BLOB_BYTES_MAX,
            }),
        }
    }
}

enum Read {
    Whole(Blob),
    Unchanged,
    /// It is larger than any blob may be.
    Beyond(usize),
}

async fn read_once(client: BlobClient, known: Option<&ETag>) -> azure_core::Result<Read> {
    let mut get = client.get().chunk_size(limits::BLOB_BYTES_MAX as u64);
    if let Some(known) = known {
        get = get.if_match(IfMatchCondition::NotMatch(known.0.clone()));
    }
    let Some(answer) = get.into_stream().next().await else {
        return Ok(Read::Unchanged);
    };
    match answer {
        Ok(part) if part.remaining_range.is_some() => Ok(Read::Beyond(
            usize::try_from(part.blob.properties.content_length).unwrap_or(usize::MAX),
        )),
        Ok(part) => Ok(Read::Whole(Blob {
            etag: etag(part.blob.properties.etag.as_ref()),
            data: part.data.collect().await?,
        })),
        Err(error) => match self::answer(&error) {
            Some((304, _)) => Ok(Read::Unchanged),
            // An empty blob has no first byte to begin a range with.
            Some((416, _)) => read_empty(client, known).await,
            _ => Err(error),
        },
    }
}

async fn read_empty(client: BlobClient, known: Option<&ETag>) -> azure_core::Result<Read> {
    let properties = client.get_properties().await?.blob.properties;
    if properties.content_length != 0 {
        // It was written in between.
        return Box::pin(read_once(client, known)).await;
    }
    let etag = etag(properties.etag.as_ref());
    if known == Some(&etag) {
        return Ok(Read::Unchanged);
    }
    let data = Bytes::new();
    Ok(Read::Whole(Blob { data, etag }))
}

/// The quoted form, which some answers leave bare.
pub(super) fn etag(text: &str) -> ETag {
    if text.starts_with('"') || text.starts_with("W/") {
        ETag(text.to_owned())
    } else {
        ETag(format!("\"{text}\""))
    }
}

/// Blob names become paths of addresses, where some segments have a meaning of their own.
fn blob_name(name: &str) -> Result<()> {
    check::blob(name)?;
    let plain = |segment: &str| !matches!(segment, "." | "..");
    if name.split('/').all(plain) && !name.starts_with('/') && !name.ends_with('/') {
        return Ok(());
    }
    Err(Error::Invalid {
        message: format!(
            "{name:?} is no blob name: it begins or ends with a slash, or a segment of it is a \
             dot or two dots"
        ),
    })
}

fn condition(expect: &Expect) -> Option<IfMatchCondition> {
    match expect {
        Expect::Absent => Some(IfMatchCondition::NotMatch("*".to_owned())),
        Expect::Version(etag) => Some(IfMatchCondition::Match(etag.0.clone())),
        Expect::Anything => None,
    }
}

/// A conditional write on a blob that is gone finds no version to compare with.
fn gone_is_a_failed_precondition(error: Error, expect: &Expect) -> Error {
    match (error, expect) {
        (Error::NotFound { what }, Expect::Version(_)) if what.starts_with("blob ") => {
            Error::PreconditionFailed { what }
        }
        (other, _) => other,
    }
}

#[async_trait]
impl BlobStore for AzureStorage {
    async fn create_container(&self, container: &str) -> Result<()> {
        check::container(container)?;
        let client = self.blobs.container_client(container);
        let about = self.about_container(container);
        let created = repeatable(&about, SHORT, || client.create().into_future()).await;
        match created {
            Err(Error::AlreadyExists { .. }) => Ok(()),
            // Whoever may not create containers may be given one that exists.
            Err(refused @ Error::Unauthorized { .. }) => {
                self.container_exists(container).await.map_err(|_| refused)
            }
            other => other,
        }
    }

    async fn get(&self, container: &str, name: &str) -> Result<Blob> {
        match self.read(container, name, None).await? {
            IfChanged::Changed(blob) => Ok(blob),
            IfChanged::Unchanged => Err(self
                .about_blob(container, name)
                .unavailable("the service sent no answer", None)),
        }
    }

    async fn get_if_changed(&self, container: &str, name: &str, known: &ETag) -> Result<IfChanged> {
        self.read(container, name, Some(known)).await
    }

    async fn put(&self, container: &str, name: &str, data: Bytes, expect: Expect) -> Result<ETag> {
        check::blob_size(name, data.len())?;
        let client = self.blob_client(container, name)?;
        let about = self.about_blob(container, name);
        let budget = for_bytes(data.len());
        let write = || {
            let mut put = client.put_block_blob(data.clone());
            if let Some(condition) = condition(&expect) {
                put = put.if_match(condition);
            }
            put.into_future()
        };
        let written = match expect {
            Expect::Anything => repeatable(&about, budget, write).await,
            // A repetition could find the first try's own blob and report a conflict.
            Expect::Absent | Expect::Version(_) => once(&about, budget, write).await,
        };
        match written {
            Ok(written) => Ok(etag(&written.etag)),
            Err(error @ Error::NotFound { .. }) => {
                // A missing container is no conflict.
                self.container_exists(container).await?;
                Err(gone_is_a_failed_precondition(error, &expect))
            }
            Err(error) => Err(error),
        }
    }

    async fn delete(&self, container: &str, name: &str) -> Result<()> {
        let client = self.blob_client(container, name)?;
        let about = self.about_blob(container, name);
        let delete = || client.delete().into_future();
        repeatable(&about, SHORT, delete).await.map(drop)
    }

    async fn list(
        &self,
        container: &str,
        prefix: &str,
        page: Option<&str>,
        limit: usize,
    ) -> Result<BlobPage> {
        check::container(container)?;
        check::page(limit)?;
        let client = self.blobs.container_client(container);
        let about = self.about_container(container);
        let size = u32::try_from(limit).ok().and_then(NonZeroU32::new);
        let listed = repeatable(&about, SHORT, || {
            let mut list = client.list_blobs();
            if let Some(size) = size {
                list = list.max_results(MaxResults::new(size));
            }
            if !prefix.is_empty() {
                list = list.prefix(Prefix::from(prefix.to_owned()));
            }
            if let Some(page) = page {
                list = list.marker(NextMarker::from(page.to_owned()));
            }
            let mut pages = list.into_stream();
            async move { pages.next().await.transpose() }
        });
        let Some(listed) = listed.await? else {
            return Ok(BlobPage::default());
        };
        let blobs = listed.blobs.blobs().map(|blob| BlobInfo {
            name: blob.name.clone(),
            size: blob.properties.content_length,
        });
        Ok(BlobPage {
            blobs: blobs.collect(),
            next: listed.next_marker.map(|marker| marker.as_str().to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_quoted_whichever_answer_they_come_from() {
        assert_eq!(etag("0x1"), etag("\"0x1\""));
        assert_eq!(etag("W/\"0x1\"").0, "W/\"0x1\"");
    }

    #[test]
    fn names_whose_segments_would_vanish_from_an_address_are_refused() {
        assert!(blob_name("workflow/task.json").is_ok());
        for name in ["/a", "a/", "a/./b", "../a", ".", ""] {
            assert!(blob_name(name).is_err(), "{name:?}");
        }
    }
}
