use std::time::Duration;

/// Waits until `fact` holds; fails the test when it does not within ten seconds.
#[track_caller]
pub(super) fn eventually(mut fact: impl AsyncFnMut() -> bool) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        for _ in 0..1_000 {
            if fact().await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("still not the case after ten seconds: {caller}");
    }
}
