//! Cases of the lease port.

use std::time::Duration;

use tokio::task::JoinSet;

use super::{Subject, assert_fails};
use crate::storage::{LeaseId, Result};

/// The shortest lease there is.
const DURATION: Duration = Duration::from_secs(15);
const NAME: &str = "_lock";

/// The `n`th of several lease ids.
fn id(n: u64) -> LeaseId {
    LeaseId(uuid::Uuid::from_u64_pair(0x4000, 1 << 63 | n).to_string())
}

async fn acquire(subject: &Subject, container: &str, n: u64) -> Result<()> {
    let content = format!("holder {n}").into();
    let leases = &subject.storage.leases;
    leases
        .acquire(container, NAME, &id(n), DURATION, content)
        .await
}

async fn renew(subject: &Subject, container: &str, n: u64) -> Result<()> {
    subject.storage.leases.renew(container, NAME, &id(n)).await
}

/// Fails unless `n` wrote the lock's content last, and the lease is held or not, as told.
async fn assert_holder(subject: &Subject, container: &str, n: u64, held: bool) {
    let holder = subject.storage.leases.holder(container, NAME).await;
    let holder = holder.unwrap();
    assert_eq!(holder.content, format!("holder {n}"));
    assert_eq!(holder.held, held);
}

/// Breaking ends a lease without its holder, who learns of it at the next renewal.
pub async fn lease_break_frees_at_once(subject: &Subject) {
    let container = subject.container().await;
    acquire(subject, &container, 1).await.unwrap();
    let leases = &subject.storage.leases;
    leases.break_lease(&container, NAME).await.unwrap();
    assert_holder(subject, &container, 1, false).await;
    assert_fails(renew(subject, &container, 1).await, "lease_held");
    acquire(subject, &container, 2).await.unwrap();
    assert_fails(renew(subject, &container, 1).await, "lease_held");
    assert_holder(subject, &container, 2, true).await;
}

/// Nobody has to look before breaking.
pub async fn lease_break_without_a_lease_is_fine(subject: &Subject) {
    let container = subject.container().await;
    let leases = &subject.storage.leases;
    leases.break_lease(&container, NAME).await.unwrap();
    acquire(subject, &container, 1).await.unwrap();
    leases.release(&container, NAME, &id(1)).await.unwrap();
    leases.break_lease(&container, NAME).await.unwrap();
    acquire(subject, &container, 2).await.unwrap();
}

/// Of eight who come at once, exactly one gets the lease.
pub async fn lease_concurrent_acquires_have_one_winner(subject: &Subject) {
    let container = subject.container().await;
    let mut contenders = JoinSet::new();
    for n in 1..=8 {
        let (leases, container) = (subject.storage.leases.clone(), container.clone());
        contenders.spawn(async move {
            tokio::task::yield_now().await;
            let content = format!("holder {n}").into();
            let id = id(n);
            let acquire = leases.acquire(&container, NAME, &id, DURATION, content);
            (n, acquire.await)
        });
    }
    let mut winners = Vec::new();
    for (n, answer) in contenders.join_all().await {
        match answer {
            Ok(()) => winners.push(n),
            Err(error) => assert_eq!(error.kind(), "lease_held", "{error}"),
        }
    }
    assert_eq!(winners.len(), 1, "{winners:?}");
    assert_holder(subject, &container, winners[0], true).await;
}

/// Leases are 15 to 60 s long everywhere.
pub async fn lease_duration_outside_the_range_is_refused(subject: &Subject) {
    let container = subject.container().await;
    let leases = &subject.storage.leases;
    for seconds in [0, 14, 61] {
        let duration = Duration::from_secs(seconds);
        let id = id(1);
        let acquire = leases.acquire(&container, NAME, &id, duration, "x".into());
        assert_fails(acquire.await, "invalid");
    }
}

/// What was never leased has no holder to show.
pub async fn lease_holder_of_an_unleased_name_is_not_found(subject: &Subject) {
    let container = subject.container().await;
    let holder = subject.storage.leases.holder(&container, NAME).await;
    assert_fails(holder, "not_found");
}

/// The lock tells who holds it, and who held it last.
pub async fn lease_holder_shows_the_latest_content(subject: &Subject) {
    let container = subject.container().await;
    acquire(subject, &container, 1).await.unwrap();
    assert_holder(subject, &container, 1, true).await;
    let leases = &subject.storage.leases;
    leases.release(&container, NAME, &id(1)).await.unwrap();
    assert_holder(subject, &container, 1, false).await;
    acquire(subject, &container, 2).await.unwrap();
    assert_holder(subject, &container, 2, true).await;
    // The lock is a blob that others may read.
    let blob = subject.storage.blobs.get(&container, NAME).await.unwrap();
    assert_eq!(blob.data, "holder 2");
}

/// A lease that nobody renews goes to the next who asks, and its old holder cannot renew it.
pub async fn lease_lapses_and_passes_to_another(subject: &Subject) {
    let container = subject.container().await;
    acquire(subject, &container, 1).await.unwrap();
    assert_fails(acquire(subject, &container, 2).await, "lease_held");
    subject.elapse(DURATION).await;
    assert_holder(subject, &container, 1, false).await;
    acquire(subject, &container, 2).await.unwrap();
    assert_fails(renew(subject, &container, 1).await, "lease_held");
    assert_fails(acquire(subject, &container, 1).await, "lease_held");
    assert_holder(subject, &container, 2, true).await;
}

/// A renewal starts the whole duration anew.
pub async fn lease_lives_on_when_renewed(subject: &Subject) {
    let container = subject.container().await;
    acquire(subject, &container, 1).await.unwrap();
    for _ in 0..2 {
        subject.elapse(Duration::from_secs(9)).await;
        renew(subject, &container, 1).await.unwrap();
    }
    subject.elapse(Duration::from_secs(9)).await;
    assert_fails(acquire(subject, &container, 2).await, "lease_held");
}

/// A lease needs a container to be in.
pub async fn lease_missing_container_is_not_found(subject: &Subject) {
    let container = format!("missing-{}", subject.run);
    let leases = &subject.storage.leases;
    assert_fails(acquire(subject, &container, 1).await, "not_found");
    assert_fails(leases.holder(&container, NAME).await, "not_found");
}

/// Who does not hold a lease cannot end it by releasing.
pub async fn lease_release_by_another_id_changes_nothing(subject: &Subject) {
    let container = subject.container().await;
    acquire(subject, &container, 1).await.unwrap();
    let leases = &subject.storage.leases;
    leases.release(&container, NAME, &id(2)).await.unwrap();
    assert_fails(acquire(subject, &container, 2).await, "lease_held");
    renew(subject, &container, 1).await.unwrap();
}

/// A released lease is free, for its old holder only through a new acquire.
pub async fn lease_release_lets_others_in_at_once(subject: &Subject) {
    let container = subject.container().await;
    let leases = &subject.storage.leases;
    acquire(subject, &container, 1).await.unwrap();
    leases.release(&container, NAME, &id(1)).await.unwrap();
    assert_fails(renew(subject, &container, 1).await, "lease_held");
    // Releasing twice is fine: the first answer may have been lost.
    leases.release(&container, NAME, &id(1)).await.unwrap();
    acquire(subject, &container, 2).await.unwrap();
    leases.release(&container, NAME, &id(1)).await.unwrap();
    assert_holder(subject, &container, 2, true).await;
}

/// An acquire whose answer was lost may be repeated, and counts from the repetition.
pub async fn lease_same_id_acquires_again(subject: &Subject) {
    let container = subject.container().await;
    acquire(subject, &container, 1).await.unwrap();
    subject.elapse(Duration::from_secs(9)).await;
    acquire(subject, &container, 1).await.unwrap();
    subject.elapse(Duration::from_secs(9)).await;
    assert_fails(acquire(subject, &container, 2).await, "lease_held");
}

/// While one id holds the lease, another gets nothing and writes nothing.
pub async fn lease_second_id_is_refused(subject: &Subject) {
    let container = subject.container().await;
    acquire(subject, &container, 1).await.unwrap();
    assert_fails(acquire(subject, &container, 2).await, "lease_held");
    assert_fails(renew(subject, &container, 2).await, "lease_held");
    assert_holder(subject, &container, 1, true).await;
}
