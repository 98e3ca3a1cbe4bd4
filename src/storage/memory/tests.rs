use std::time::Duration;

use super::MemoryStorage;
use crate::clock::{Clock, Timestamp};
use crate::storage::Storage;
use crate::storage::conformance::Rig;

async fn rig() -> Rig {
    let clock = Clock::simulated(Timestamp::from_micros(1_767_225_600_000_000), 1);
    Rig {
        storage: Storage::from_backend(MemoryStorage::new(clock.clone())),
        clock,
        lease_duration: Duration::from_secs(15),
        visibility: Duration::from_secs(30),
    }
}

crate::conformance_tests!(tokio::test(start_paused = true), super::rig);
