//! Cases of the blob port.

use std::collections::BTreeSet;

use bytes::Bytes;
use tokio::task::JoinSet;

use super::{Subject, assert_fails};
use crate::limits;
use crate::storage::{Blob, BlobStore, ETag, Expect, IfChanged, Result};

/// Writes a small blob, whatever is there.
async fn write(subject: &Subject, container: &str, name: &str, text: &'static str) -> ETag {
    let data = Bytes::from_static(text.as_bytes());
    let put = subject
        .storage
        .blobs
        .put(container, name, data, Expect::Anything);
    put.await.unwrap()
}

async fn put(
    subject: &Subject,
    container: &str,
    text: &'static str,
    expect: Expect,
) -> Result<ETag> {
    let data = Bytes::from_static(text.as_bytes());
    subject
        .storage
        .blobs
        .put(container, "blob", data, expect)
        .await
}

async fn read(subject: &Subject, container: &str) -> Blob {
    subject.storage.blobs.get(container, "blob").await.unwrap()
}

/// Creating a container twice keeps what is in it.
pub async fn blob_create_container_may_be_repeated(subject: &Subject) {
    let container = subject.container().await;
    write(subject, &container, "blob", "kept").await;
    let blobs = &subject.storage.blobs;
    blobs.create_container(&container).await.unwrap();
    assert_eq!(read(subject, &container).await.data, "kept");
}

/// A create-only write finds a blob and leaves it alone.
pub async fn blob_create_only_conflicts(subject: &Subject) {
    let container = subject.container().await;
    let etag = put(subject, &container, "first", Expect::Absent)
        .await
        .unwrap();
    let second = put(subject, &container, "second", Expect::Absent).await;
    assert_fails(second, "already_exists");
    let blob = read(subject, &container).await;
    assert_eq!(blob.data, "first");
    assert_eq!(blob.etag, etag);
}

/// A deleted blob is absent.
pub async fn blob_create_only_works_again_after_delete(subject: &Subject) {
    let container = subject.container().await;
    write(subject, &container, "blob", "first").await;
    let blobs = &subject.storage.blobs;
    blobs.delete(&container, "blob").await.unwrap();
    assert_fails(blobs.get(&container, "blob").await, "not_found");
    put(subject, &container, "second", Expect::Absent)
        .await
        .unwrap();
    assert_eq!(read(subject, &container).await.data, "second");
}

/// Deleting twice tells that there is nothing left.
pub async fn blob_delete_of_a_missing_one_is_not_found(subject: &Subject) {
    let container = subject.container().await;
    let blobs = &subject.storage.blobs;
    assert_fails(blobs.delete(&container, "blob").await, "not_found");
    write(subject, &container, "blob", "x").await;
    blobs.delete(&container, "blob").await.unwrap();
    assert_fails(blobs.delete(&container, "blob").await, "not_found");
}

/// A blob of no bytes is a blob.
pub async fn blob_empty_content_is_kept(subject: &Subject) {
    let container = subject.container().await;
    let etag = put(subject, &container, "", Expect::Absent).await.unwrap();
    let blob = read(subject, &container).await;
    assert!(blob.data.is_empty());
    assert_eq!(blob.etag, etag);
    let list = subject.storage.blobs.list(&container, "", None, 10);
    assert_eq!(list.await.unwrap().blobs[0].size, 0);
}

/// Versions tell writes apart even when the bytes are equal.
pub async fn blob_etag_differs_after_every_write(subject: &Subject) {
    let container = subject.container().await;
    let mut etags = Vec::new();
    for _ in 0..5 {
        etags.push(write(subject, &container, "blob", "same").await);
    }
    for (at, etag) in etags.iter().enumerate() {
        assert!(!etags[..at].contains(etag), "{etag:?} came twice");
    }
    assert_eq!(read(subject, &container).await.etag, etags[4]);
}

/// A version from before a delete never fits what is created after it.
pub async fn blob_etag_is_not_reused_after_delete(subject: &Subject) {
    let container = subject.container().await;
    let old = write(subject, &container, "blob", "same").await;
    let blobs = &subject.storage.blobs;
    blobs.delete(&container, "blob").await.unwrap();
    write(subject, &container, "blob", "same").await;
    let stale = put(subject, &container, "late", Expect::Version(old)).await;
    assert_fails(stale, "precondition_failed");
    assert_eq!(read(subject, &container).await.data, "same");
}

/// A conditional read returns bytes only for another version.
pub async fn blob_get_if_changed_skips_the_known_version(subject: &Subject) {
    let container = subject.container().await;
    let blobs = &subject.storage.blobs;
    let old = write(subject, &container, "blob", "first").await;
    let same = blobs.get_if_changed(&container, "blob", &old).await;
    assert!(matches!(same.unwrap(), IfChanged::Unchanged));
    let new = write(subject, &container, "blob", "second").await;
    match blobs
        .get_if_changed(&container, "blob", &old)
        .await
        .unwrap()
    {
        IfChanged::Changed(blob) => assert_eq!((blob.data, blob.etag), ("second".into(), new)),
        IfChanged::Unchanged => panic!("the second write went unnoticed"),
    }
    blobs.delete(&container, "blob").await.unwrap();
    let gone = blobs.get_if_changed(&container, "blob", &old).await;
    assert_fails(gone, "not_found");
}

/// Goal: compare-and-swap loses no update. Method: eight writers each add one to the same number
/// many times, each time repeating the step until its version still held.
pub async fn blob_increments_by_eight_writers_add_up(subject: &Subject) {
    const WRITERS: usize = 8;
    const ROUNDS: usize = 25;
    let container = subject.container().await;
    write(subject, &container, "blob", "0").await;
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let (blobs, container) = (subject.storage.blobs.clone(), container.clone());
        writers.spawn(async move {
            for _ in 0..ROUNDS {
                increment(&*blobs, &container, "blob").await;
            }
        });
    }
    writers.join_all().await;
    let total = read(subject, &container).await.data;
    assert_eq!(total, (WRITERS * ROUNDS).to_string());
}

/// Adds one to the number in a blob, however often others come first.
async fn increment(blobs: &dyn BlobStore, container: &str, name: &str) {
    loop {
        let Blob { data, etag } = blobs.get(container, name).await.unwrap();
        let number: usize = std::str::from_utf8(&data).unwrap().parse().unwrap();
        // Backends that never pause would otherwise let nobody in between.
        tokio::task::yield_now().await;
        let data = Bytes::from((number + 1).to_string());
        match blobs
            .put(container, name, data, Expect::Version(etag))
            .await
        {
            Ok(_) => return,
            Err(error) => assert_eq!(error.kind(), "precondition_failed", "{error}"),
        }
    }
}

/// Names that some backend cannot take are refused by all.
pub async fn blob_invalid_names_are_refused(subject: &Subject) {
    let container = subject.container().await;
    let blobs = &subject.storage.blobs;
    for name in ["ab", "Capitals", "under_score", "-dash", "two--dashes"] {
        assert_fails(blobs.create_container(name).await, "invalid");
    }
    for name in ["", "line\nbreak", &"x".repeat(1_025)] {
        let put = blobs.put(&container, name, Bytes::new(), Expect::Anything);
        assert_fails(put.await, "invalid");
    }
}

/// Content that a backend may have to move in pieces arrives in one piece.
pub async fn blob_large_content_is_read_whole(subject: &Subject) {
    let container = subject.container().await;
    // A prime length, so that no piece ends with the content.
    let data: Bytes = (0..9_000_011usize).map(|i| (i % 251) as u8).collect();
    let blobs = &subject.storage.blobs;
    let etag = blobs
        .put(&container, "blob", data.clone(), Expect::Absent)
        .await
        .unwrap();
    let blob = read(subject, &container).await;
    assert!(blob.data == data, "the bytes differ");
    assert_eq!(blob.etag, etag);
}

/// Listings sort by bytes and show sizes.
pub async fn blob_list_goes_in_byte_order_and_keeps_to_the_prefix(subject: &Subject) {
    let container = subject.container().await;
    for name in ["a/é", "b/1", "a/10", "a/Z", "a/2", "a", "a/z", "_x"] {
        write(subject, &container, name, "four").await;
    }
    let list = subject.storage.blobs.list(&container, "a/", None, 100);
    let page = list.await.unwrap();
    let names: Vec<&str> = page.blobs.iter().map(|blob| blob.name.as_str()).collect();
    assert_eq!(names, ["a/10", "a/2", "a/Z", "a/z", "a/é"]);
    assert!(page.blobs.iter().all(|blob| blob.size == 4));
    assert_eq!(page.next, None);
}

/// Nothing to list is an answer, not an error.
pub async fn blob_list_of_an_empty_container_is_one_empty_page(subject: &Subject) {
    let container = subject.container().await;
    let list = subject.storage.blobs.list(&container, "", None, 10);
    let page = list.await.unwrap();
    assert!(page.blobs.is_empty());
    assert_eq!(page.next, None);
}

/// Blobs that are there all the time appear exactly once, in order, whatever is added meanwhile.
pub async fn blob_list_pages_show_every_blob_once_while_others_come(subject: &Subject) {
    let container = subject.container().await;
    let stable: BTreeSet<String> = (0..23).map(|i| format!("p/{i:02}")).collect();
    for name in &stable {
        write(subject, &container, name, "x").await;
    }
    let (mut seen, mut page) = (Vec::new(), None);
    for round in 0.. {
        let list = subject
            .storage
            .blobs
            .list(&container, "p/", page.as_deref(), 5);
        let answer = list.await.unwrap();
        assert!(answer.blobs.len() <= 5);
        seen.extend(answer.blobs.into_iter().map(|blob| blob.name));
        page = answer.next;
        if page.is_none() {
            break;
        }
        // One before and one after the place where the listing stands.
        write(subject, &container, &format!("p/00-new-{round}"), "x").await;
        write(subject, &container, &format!("p/22-new-{round}"), "x").await;
    }
    assert!(seen.is_sorted(), "{seen:?}");
    let once: BTreeSet<&String> = seen.iter().collect();
    assert_eq!(once.len(), seen.len(), "{seen:?}");
    assert!(stable.iter().all(|name| once.contains(name)), "{seen:?}");
}

/// Pages of nothing and of too much are refused.
pub async fn blob_list_refuses_an_impossible_page(subject: &Subject) {
    let container = subject.container().await;
    for limit in [0, limits::PAGE_MAX + 1] {
        let list = subject.storage.blobs.list(&container, "", None, limit);
        assert_fails(list.await, "invalid");
    }
}

/// Without a container there is nothing to read, write, delete or list.
pub async fn blob_missing_container_is_not_found(subject: &Subject) {
    let container = format!("missing-{}", subject.run);
    let blobs = &subject.storage.blobs;
    let etag = ETag("1".to_owned());
    assert_fails(blobs.get(&container, "blob").await, "not_found");
    let read = blobs.get_if_changed(&container, "blob", &etag).await;
    assert_fails(read, "not_found");
    for expect in [Expect::Absent, Expect::Anything] {
        let put = put(subject, &container, "x", expect).await;
        assert_fails(put, "not_found");
    }
    assert_fails(blobs.delete(&container, "blob").await, "not_found");
    assert_fails(blobs.list(&container, "", None, 10).await, "not_found");
}

/// Names as tasks have them, and any bytes, come back as they were.
pub async fn blob_names_and_bytes_round_trip(subject: &Subject) {
    let container = subject.container().await;
    let blobs = &subject.storage.blobs;
    let data: Bytes = (0..=255u8).collect();
    for name in [
        "wf/train 1.json",
        "wf/träin#日本?.json",
        "100%/a+b&c='d'.json",
    ] {
        let etag = blobs
            .put(&container, name, data.clone(), Expect::Absent)
            .await
            .unwrap();
        let blob = blobs.get(&container, name).await.unwrap();
        assert_eq!((blob.data, blob.etag), (data.clone(), etag), "{name}");
        let page = blobs.list(&container, name, None, 10).await.unwrap();
        assert_eq!(page.blobs.len(), 1, "{name}");
        assert_eq!(page.blobs[0].name, name);
    }
}

/// An outright overwrite creates and replaces.
pub async fn blob_overwrite_takes_anything(subject: &Subject) {
    let container = subject.container().await;
    for text in ["created", "replaced"] {
        put(subject, &container, text, Expect::Anything)
            .await
            .unwrap();
        assert_eq!(read(subject, &container).await.data, text);
    }
}

/// Goal: bytes and version belong together. Method: one writer fills a blob that is read in pieces
/// on some backends with one letter after the other, while a reader looks.
pub async fn blob_read_during_writes_sees_one_version(subject: &Subject) {
    let container = subject.container().await;
    let blobs = subject.storage.blobs.clone();
    let fill = |letter: u8| Bytes::from(vec![letter; 6_000_000]);
    let put = blobs.put(&container, "blob", fill(b'a'), Expect::Absent);
    put.await.unwrap();
    let (writer, place) = (blobs.clone(), container.clone());
    let writing = tokio::spawn(async move {
        for letter in b'b'..b'h' {
            let put = writer.put(&place, "blob", fill(letter), Expect::Anything);
            put.await.unwrap();
            tokio::task::yield_now().await;
        }
    });
    while !writing.is_finished() {
        let blob = blobs.get(&container, "blob").await.unwrap();
        let first = blob.data[0];
        assert_eq!(blob.data.len(), 6_000_000);
        assert!(blob.data.iter().all(|&b| b == first), "two versions mixed");
        tokio::task::yield_now().await;
    }
    writing.await.unwrap();
}

/// A write with a version that is no longer there leaves the newer one alone.
pub async fn blob_version_mismatch_changes_nothing(subject: &Subject) {
    let container = subject.container().await;
    let first = write(subject, &container, "blob", "first").await;
    let second = put(
        subject,
        &container,
        "second",
        Expect::Version(first.clone()),
    )
    .await
    .unwrap();
    let stale = put(subject, &container, "third", Expect::Version(first)).await;
    assert_fails(stale, "precondition_failed");
    let blob = read(subject, &container).await;
    assert_eq!((blob.data, blob.etag), ("second".into(), second));
}

/// A version is not a reason to create a blob anew.
pub async fn blob_version_of_a_deleted_blob_fails(subject: &Subject) {
    let container = subject.container().await;
    let etag = write(subject, &container, "blob", "first").await;
    let blobs = &subject.storage.blobs;
    blobs.delete(&container, "blob").await.unwrap();
    let late = put(subject, &container, "late", Expect::Version(etag)).await;
    assert_fails(late, "precondition_failed");
    assert_fails(blobs.get(&container, "blob").await, "not_found");
}
