//! Cases of the blob port.
#![expect(missing_docs, reason = "the names of cases say what they hold")]

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;

use super::Rig;
use crate::storage::{BlobStore, ETag, Error, Expect, IfChanged};

async fn container(rig: &Rig) -> (Arc<dyn BlobStore>, String) {
    let name = rig.unique();
    rig.storage.blobs.create_container(&name).await.unwrap();
    (rig.storage.blobs.clone(), name)
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

pub async fn blob_create_only_conflicts(rig: &Rig) {
    let (blobs, c) = container(rig).await;
    blobs
        .put(&c, "a", bytes("first"), Expect::Absent)
        .await
        .unwrap();
    let again = blobs.put(&c, "a", bytes("second"), Expect::Absent).await;
    assert!(
        matches!(again, Err(Error::AlreadyExists { .. })),
        "{again:?}"
    );
    assert_eq!(blobs.get(&c, "a").await.unwrap().data, bytes("first"));
}

pub async fn blob_versions_guard_writes(rig: &Rig) {
    let (blobs, c) = container(rig).await;
    let first = blobs
        .put(&c, "a", bytes("1"), Expect::Absent)
        .await
        .unwrap();
    let second = blobs
        .put(&c, "a", bytes("2"), Expect::Version(first.clone()))
        .await
        .unwrap();
    let stale = blobs.put(&c, "a", bytes("3"), Expect::Version(first)).await;
    assert!(
        matches!(stale, Err(Error::PreconditionFailed { .. })),
        "{stale:?}"
    );
    let read = blobs.get(&c, "a").await.unwrap();
    assert_eq!((read.data, &read.etag), (bytes("2"), &second));
    // The version of a read guards like that of a write.
    blobs
        .put(&c, "a", bytes("4"), Expect::Version(read.etag))
        .await
        .unwrap();
    blobs
        .put(&c, "a", bytes("5"), Expect::Anything)
        .await
        .unwrap();
    blobs
        .put(&c, "b", bytes("new"), Expect::Anything)
        .await
        .unwrap();
}

pub async fn blob_versions_differ_after_every_write(rig: &Rig) {
    let (blobs, c) = container(rig).await;
    let mut seen = BTreeSet::new();
    for _ in 0..5 {
        let etag = blobs
            .put(&c, "a", bytes("same"), Expect::Anything)
            .await
            .unwrap();
        assert!(seen.insert(etag.0), "a version came twice");
    }
}

pub async fn blob_a_deleted_blob_has_no_version(rig: &Rig) {
    let (blobs, c) = container(rig).await;
    let etag = blobs
        .put(&c, "a", bytes("1"), Expect::Absent)
        .await
        .unwrap();
    blobs.delete(&c, "a").await.unwrap();
    let write = blobs.put(&c, "a", bytes("2"), Expect::Version(etag)).await;
    assert!(
        matches!(write, Err(Error::PreconditionFailed { .. })),
        "{write:?}"
    );
    assert!(matches!(
        blobs.get(&c, "a").await,
        Err(Error::NotFound { .. })
    ));
    blobs
        .put(&c, "a", bytes("3"), Expect::Absent)
        .await
        .unwrap();
}

pub async fn blob_conditional_reads_tell_whether_anything_changed(rig: &Rig) {
    let (blobs, c) = container(rig).await;
    let etag = blobs
        .put(&c, "a", bytes("1"), Expect::Absent)
        .await
        .unwrap();
    let same = blobs.get_if_changed(&c, "a", &etag).await.unwrap();
    assert!(matches!(same, IfChanged::Unchanged), "{same:?}");
    blobs
        .put(&c, "a", bytes("2"), Expect::Anything)
        .await
        .unwrap();
    match blobs.get_if_changed(&c, "a", &etag).await.unwrap() {
        IfChanged::Changed(blob) => assert_eq!(blob.data, bytes("2")),
        IfChanged::Unchanged => panic!("the change was not seen"),
    }
    blobs.delete(&c, "a").await.unwrap();
    let gone = blobs.get_if_changed(&c, "a", &etag).await;
    assert!(matches!(gone, Err(Error::NotFound { .. })), "{gone:?}");
}

pub async fn blob_missing_things_are_not_found(rig: &Rig) {
    let (blobs, c) = container(rig).await;
    let nowhere = rig.unique();
    assert!(matches!(
        blobs.get(&c, "a").await,
        Err(Error::NotFound { .. })
    ));
    assert!(matches!(
        blobs.get(&nowhere, "a").await,
        Err(Error::NotFound { .. })
    ));
    assert!(matches!(
        blobs.delete(&c, "a").await,
        Err(Error::NotFound { .. })
    ));
    assert!(matches!(
        blobs.list(&nowhere, "", None, 10).await,
        Err(Error::NotFound { .. })
    ));
    let expects = [
        Expect::Absent,
        Expect::Anything,
        Expect::Version(ETag("\"0x1\"".to_owned())),
    ];
    for expect in expects {
        let write = blobs.put(&nowhere, "a", bytes("1"), expect).await;
        assert!(matches!(write, Err(Error::NotFound { .. })), "{write:?}");
    }
    let gone = blobs
        .put(
            &c,
            "a",
            bytes("1"),
            Expect::Version(ETag("\"0x1\"".to_owned())),
        )
        .await;
    assert!(
        matches!(gone, Err(Error::PreconditionFailed { .. })),
        "{gone:?}"
    );
    // Creating what is there is fine.
    blobs.create_container(&c).await.unwrap();
}

pub async fn blob_names_and_bytes_are_kept_exactly(rig: &Rig) {
    let (blobs, c) = container(rig).await;
    let content = Bytes::from_static(&[0, 255, 31, 139, 10, 13, 0]);
    for name in [
        "run.1_a-b.json",
        "run/grp/t ü#?%&+.json",
        "Run.json",
        "run.json",
    ] {
        blobs
            .put(&c, name, content.clone(), Expect::Absent)
            .await
            .unwrap();
        assert_eq!(blobs.get(&c, name).await.unwrap().data, content, "{name}");
    }
}

pub async fn blob_empty_and_large_blobs_are_kept(rig: &Rig) {
    let (blobs, c) = container(rig).await;
    blobs
        .put(&c, "empty", Bytes::new(), Expect::Absent)
        .await
        .unwrap();
    let empty = blobs.get(&c, "empty").await.unwrap();
    assert!(empty.data.is_empty());
    blobs
        .put(&c, "empty", bytes("1"), Expect::Version(empty.etag))
        .await
        .unwrap();
    let large: Bytes = (0..9_000_000u32).map(|i| (i % 251) as u8).collect();
    blobs
        .put(&c, "large", large.clone(), Expect::Absent)
        .await
        .unwrap();
    assert_eq!(blobs.get(&c, "large").await.unwrap().data, large);
}

pub async fn blob_listing_pages_in_order_without_gap_or_double(rig: &Rig) {
    let (blobs, c) = container(rig).await;
    for i in 0..7 {
        blobs
            .put(&c, &format!("p/{i}"), bytes("xy"), Expect::Absent)
            .await
            .unwrap();
    }
    blobs
        .put(&c, "q/0", bytes("x"), Expect::Absent)
        .await
        .unwrap();
    let mut names = Vec::new();
    let mut page: Option<String> = None;
    loop {
        let listed = blobs.list(&c, "p/", page.as_deref(), 3).await.unwrap();
        assert!(listed.blobs.len() <= 3);
        for blob in listed.blobs {
            assert_eq!(blob.size, 2);
            names.push(blob.name);
        }
        page = listed.next;
        if page.is_none() {
            break;
        }
        // A blob that comes in between, before the place reached, changes nothing.
        blobs
            .put(
                &c,
                &format!("p/!{}", names.len()),
                bytes("xy"),
                Expect::Absent,
            )
            .await
            .unwrap();
    }
    let expected: Vec<String> = (0..7).map(|i| format!("p/{i}")).collect();
    assert_eq!(names, expected);
    assert_eq!(blobs.list(&c, "none/", None, 10).await.unwrap().blobs, []);
}

pub async fn blob_increments_of_eight_writers_are_all_counted(rig: &Rig) {
    const WRITERS: usize = 8;
    const EACH: usize = 10;
    let (blobs, c) = container(rig).await;
    blobs
        .put(&c, "n", bytes("0"), Expect::Absent)
        .await
        .unwrap();
    let writers = (0..WRITERS).map(|_| {
        let (blobs, c) = (blobs.clone(), c.clone());
        async move {
            let mut done = 0;
            while done < EACH {
                let read = blobs.get(&c, "n").await.unwrap();
                let count: usize = std::str::from_utf8(&read.data).unwrap().parse().unwrap();
                let next = bytes(&(count + 1).to_string());
                match blobs.put(&c, "n", next, Expect::Version(read.etag)).await {
                    Ok(_) => done += 1,
                    Err(Error::PreconditionFailed { .. }) => tokio::task::yield_now().await,
                    Err(error) => panic!("{error}"),
                }
            }
        }
    });
    join_all(writers).await;
    let total = blobs.get(&c, "n").await.unwrap().data;
    assert_eq!(total, bytes(&(WRITERS * EACH).to_string()));
}
