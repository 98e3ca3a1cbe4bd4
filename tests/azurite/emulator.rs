//! The emulator that `scripts/with-azurite` started.
#![expect(unreachable_pub, reason = "a helper of this test target")]

use std::sync::Arc;
use std::time::Duration;

use jobq::clock::Clock;
use jobq::storage::Storage;
use jobq::storage::azure::{Account, AzureStorage};
use jobq::storage::conformance::{Gap, Subject};

use crate::support::Site;

pub const ACCOUNT: &str = "devstoreaccount1";
/// The emulator's key is public.
pub const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// Ports of the blob, queue and table service.
pub fn ports() -> [u16; 3] {
    ["BLOB", "QUEUE", "TABLE"].map(|service| {
        let name = format!("AZURITE_{service}_PORT");
        let port = std::env::var(&name);
        port.expect("run through scripts/with-azurite")
            .parse()
            .unwrap()
    })
}

pub fn account() -> Account {
    let [blob, queue, table] = ports();
    Account::emulator("127.0.0.1", blob, queue, table)
}

pub fn storage() -> Storage {
    let opened = AzureStorage::new(&account(), Clock::system()).unwrap();
    Storage::from_backend(Arc::new(opened))
}

pub async fn subject() -> Subject {
    let subject = Subject::new(storage()).with_promptly(Duration::from_secs(20));
    subject.with_gaps(&[Gap::NeMatchesOtherTypes])
}

/// The connection string of the emulator, with another key if told so.
pub fn connection_string(key: &str) -> String {
    let [blob, queue, table] = ports();
    let at = |port| format!("http://127.0.0.1:{port}/{ACCOUNT}");
    format!(
        "AccountName={ACCOUNT};AccountKey={key};BlobEndpoint={};QueueEndpoint={};TableEndpoint={}",
        at(blob),
        at(queue),
        at(table)
    )
}

/// A prefix that no other test uses.
pub fn prefix() -> String {
    let mut id = Clock::system().new_id();
    format!("Test{}", id.split_off(16))
}

/// A site whose processes work on the emulator, under a prefix of their own.
pub fn site(prefix: &str) -> Site {
    let [blob, queue, table] = ports();
    Site::with_environment([
        ("JOBQ_STORAGE", "azurite".to_owned()),
        ("JOBQ_PREFIX", prefix.to_owned()),
        ("AZURITE_BLOB_PORT", blob.to_string()),
        ("AZURITE_QUEUE_PORT", queue.to_string()),
        ("AZURITE_TABLE_PORT", table.to_string()),
        ("JOBQ_MAX_IDLE_BACKOFF", "1".to_owned()),
    ])
}
