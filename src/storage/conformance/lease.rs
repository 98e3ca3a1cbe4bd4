//! Cases of the lease port.
#![expect(missing_docs, reason = "the names of cases say what they hold")]

use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;

use super::Rig;
use crate::storage::{Error, LeaseId, LeaseStore};

const LOCK: &str = "_coordinator.lock";

struct Lock<'a> {
    rig: &'a Rig,
    leases: Arc<dyn LeaseStore>,
    container: String,
}

impl<'a> Lock<'a> {
    async fn new(rig: &'a Rig) -> Self {
        let container = rig.unique();
        rig.storage
            .blobs
            .create_container(&container)
            .await
            .unwrap();
        Self {
            rig,
            leases: rig.storage.leases.clone(),
            container,
        }
    }

    fn id(&self) -> LeaseId {
        let id = self.rig.clock.new_id();
        LeaseId([&id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..]].join("-"))
    }

    async fn acquire(&self, id: &LeaseId, content: &str) -> Result<(), Error> {
        let content = Bytes::copy_from_slice(content.as_bytes());
        let duration = self.rig.lease_duration;
        self.leases
            .acquire(&self.container, LOCK, id, duration, content)
            .await
    }

    async fn renew(&self, id: &LeaseId) -> Result<(), Error> {
        self.leases.renew(&self.container, LOCK, id).await
    }

    async fn release(&self, id: &LeaseId) {
        self.leases
            .release(&self.container, LOCK, id)
            .await
            .unwrap();
    }
}

fn assert_held(result: &Result<(), Error>) {
    assert!(matches!(result, Err(Error::LeaseHeld { .. })), "{result:?}");
}

pub async fn lease_excludes_others_until_released(rig: &Rig) {
    let lock = Lock::new(rig).await;
    let (first, second) = (lock.id(), lock.id());
    lock.acquire(&first, "first").await.unwrap();
    assert_held(&lock.acquire(&second, "second").await);
    assert_held(&lock.renew(&second).await);
    lock.release(&second).await;
    assert_held(&lock.acquire(&second, "second").await);
    lock.release(&first).await;
    lock.acquire(&second, "second").await.unwrap();
    lock.release(&first).await;
    lock.renew(&second).await.unwrap();
}

pub async fn lease_the_same_id_may_acquire_again(rig: &Rig) {
    let lock = Lock::new(rig).await;
    let id = lock.id();
    lock.acquire(&id, "1").await.unwrap();
    lock.acquire(&id, "2").await.unwrap();
    assert_held(&lock.acquire(&lock.id(), "3").await);
}

pub async fn lease_a_lapsed_lease_is_free_and_its_old_holder_refused(rig: &Rig) {
    let lock = Lock::new(rig).await;
    let (first, second) = (lock.id(), lock.id());
    lock.acquire(&first, "first").await.unwrap();
    rig.pass(rig.lease_duration).await;
    lock.acquire(&second, "second").await.unwrap();
    assert_held(&lock.renew(&first).await);
    assert_held(&lock.acquire(&first, "first").await);
}

pub async fn lease_renewals_keep_it(rig: &Rig) {
    let lock = Lock::new(rig).await;
    let id = lock.id();
    lock.acquire(&id, "x").await.unwrap();
    for _ in 0..3 {
        tokio::time::sleep(rig.lease_duration * 2 / 3).await;
        lock.renew(&id).await.unwrap();
        assert_held(&lock.acquire(&lock.id(), "y").await);
    }
}

pub async fn lease_breaking_frees_it_at_once(rig: &Rig) {
    let lock = Lock::new(rig).await;
    let (first, second) = (lock.id(), lock.id());
    // Nothing to break is fine.
    lock.leases
        .break_lease(&lock.container, LOCK)
        .await
        .unwrap();
    lock.acquire(&first, "first").await.unwrap();
    lock.leases
        .break_lease(&lock.container, LOCK)
        .await
        .unwrap();
    lock.leases
        .break_lease(&lock.container, LOCK)
        .await
        .unwrap();
    lock.acquire(&second, "second").await.unwrap();
    assert_held(&lock.renew(&first).await);
}

pub async fn lease_the_holder_is_told(rig: &Rig) {
    let lock = Lock::new(rig).await;
    let holder = async || lock.leases.holder(&lock.container, LOCK).await;
    let none = holder().await;
    assert!(matches!(none, Err(Error::NotFound { .. })), "{none:?}");
    let id = lock.id();
    lock.acquire(&id, "host and process").await.unwrap();
    let told = holder().await.unwrap();
    assert_eq!(
        (told.content.as_ref(), told.held),
        (&b"host and process"[..], true)
    );
    assert_held(&lock.acquire(&lock.id(), "another").await);
    assert_eq!(
        holder().await.unwrap().content,
        told.content,
        "a refused one left its name"
    );
    lock.release(&id).await;
    assert!(!holder().await.unwrap().held);
}

pub async fn lease_of_eight_at_once_exactly_one_holds(rig: &Rig) {
    let lock = Lock::new(rig).await;
    let ids: Vec<LeaseId> = (0..8).map(|_| lock.id()).collect();
    let answers = join_all(ids.iter().map(|id| lock.acquire(id, &id.0))).await;
    let holders: Vec<_> = answers
        .iter()
        .zip(&ids)
        .filter(|(answer, _)| answer.is_ok())
        .collect();
    assert_eq!(holders.len(), 1, "{answers:?}");
    let told = lock.leases.holder(&lock.container, LOCK).await.unwrap();
    assert_eq!(told.content, holders[0].1.0.as_bytes());
}
