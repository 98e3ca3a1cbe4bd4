//! Opening the storage that the command line names.

use anyhow::Context as _;

use super::GlobalArgs;
use super::exit::Failure;
use crate::clock::Clock;
use crate::config::StorageSpec;
use crate::control::Control;
use crate::storage::Storage;
use crate::storage::sqlite::SqliteStorage;
use crate::store::WorkflowStore;
use crate::wire::Names;

/// Opens the storage and makes sure that what jobq needs is there.
pub(super) async fn store(global: &GlobalArgs, clock: &Clock) -> Result<WorkflowStore, Failure> {
    let storage = match &global.storage {
        StorageSpec::Sqlite(directory) => Storage::from_backend(
            SqliteStorage::open(directory, clock.clone())
                .with_context(|| format!("cannot open {}", global.storage))?,
        ),
    };
    let store = WorkflowStore::new(storage, Names::new(global.prefix.clone()));
    store.ensure().await?;
    Ok(store)
}

/// The use cases on the named storage, without a coordinator of its own.
pub(super) async fn control(global: &GlobalArgs) -> Result<Control, Failure> {
    let clock = Clock::system();
    Ok(Control::new(store(global, &clock).await?, clock, None))
}
