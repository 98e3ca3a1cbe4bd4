//! Opening the storage that the command line names.

use std::time::Duration;

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;

use super::GlobalArgs;
use super::exit::Failure;
use crate::clock::Clock;
use crate::config::{AccountSecret, AzuriteAddress, ConnectionString, StorageSpec};
use crate::control::Control;
use crate::storage::azure::{Account, AzureStorage, Credential, Endpoints};
use crate::storage::sqlite::SqliteStorage;
use crate::storage::{Retry, Storage};
use crate::store::WorkflowStore;
use crate::wire::Names;

/// Where a connection string is looked for.
const CONNECTION_STRING: &str = "AZURE_STORAGE_CONNECTION_STRING";

/// The pauses between looks at a storage that may come back.
const PATIENCE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Opens the storage and makes sure that what jobq needs is there.
pub(super) async fn store(global: &GlobalArgs, clock: &Clock) -> Result<WorkflowStore, Failure> {
    let store = unchecked(global, clock)?;
    store.ensure().await?;
    Ok(store)
}

/// As [`store`], but waits for a storage that cannot be reached, as servers do: it may come back.
/// `None` if told to stop meanwhile.
pub(super) async fn store_when_reachable(
    global: &GlobalArgs,
    clock: &Clock,
    stop: &CancellationToken,
) -> Result<Option<WorkflowStore>, Failure> {
    let store = unchecked(global, clock)?;
    let (mut pause, longest) = PATIENCE;
    loop {
        let ensured = tokio::select! {
            () = stop.cancelled() => return Ok(None),
            ensured = store.ensure() => ensured,
        };
        match ensured {
            Ok(()) => return Ok(Some(store)),
            Err(error) if error.retry() == Retry::Never => return Err(error.into()),
            Err(error) => {
                let retry_in_s = pause.as_secs();
                tracing::error!(%error, retry_in_s, "the storage is not available; trying again");
            }
        }
        tokio::select! {
            () = stop.cancelled() => return Ok(None),
            () = tokio::time::sleep(clock.jitter(pause, 0.2)) => {}
        }
        pause = (pause * 2).min(longest);
    }
}

fn unchecked(global: &GlobalArgs, clock: &Clock) -> Result<WorkflowStore, Failure> {
    let storage = storage(&global.storage, clock)?;
    Ok(WorkflowStore::new(
        storage,
        Names::new(global.prefix.clone()),
    ))
}

fn storage(spec: &StorageSpec, clock: &Clock) -> Result<Storage, Failure> {
    let account = match spec {
        StorageSpec::Sqlite(directory) => {
            let opened = SqliteStorage::open(directory, clock.clone());
            let opened = opened.with_context(|| format!("cannot open {spec}"))?;
            return Ok(Storage::from_backend(opened));
        }
        StorageSpec::Azure { account } => Account {
            name: account.clone(),
            endpoints: Endpoints::public(account),
            credential: Credential::Identity,
        },
        StorageSpec::AzureConnectionString => described()?,
        StorageSpec::Azurite => emulator()?,
    };
    let opened = AzureStorage::new(&account, clock.clone());
    let opened = opened.with_context(|| format!("cannot open {spec}"))?;
    Ok(Storage::from_backend(std::sync::Arc::new(opened)))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn emulator() -> Result<Account, Failure> {
    let address = AzuriteAddress::from_env(variable);
    let address = address.map_err(|error| Failure::Usage(error.to_string()))?;
    let AzuriteAddress {
        host,
        blob_port,
        queue_port,
        table_port,
    } = address;
    Ok(Account::emulator(&host, blob_port, queue_port, table_port))
}

/// The account of the connection string in the environment.
fn described() -> Result<Account, Failure> {
    let Some(text) = variable(CONNECTION_STRING) else {
        return Err(Failure::Usage(format!(
            "{CONNECTION_STRING} is not set; set it, or use --storage azure:ACCOUNT to sign in with \
             an identity"
        )));
    };
    let parsed: Result<ConnectionString, _> = text.parse();
    match parsed.map_err(|error| Failure::Usage(format!("{CONNECTION_STRING}: {error}")))? {
        ConnectionString::Emulator => emulator(),
        ConnectionString::Account {
            name,
            secret,
            protocol,
            suffix,
            blob_endpoint,
            queue_endpoint,
            table_endpoint,
        } => {
            let usual = Endpoints::with_suffix(&protocol, &name, &suffix);
            let endpoints = Endpoints {
                blob: blob_endpoint.unwrap_or(usual.blob),
                queue: queue_endpoint.unwrap_or(usual.queue),
                table: table_endpoint.unwrap_or(usual.table),
            };
            let credential = match secret {
                AccountSecret::Key(key) => Credential::Key(key.expose().to_owned()),
                AccountSecret::Sas(sas) => Credential::Sas(sas.expose().to_owned()),
            };
            Ok(Account {
                name,
                endpoints,
                credential,
            })
        }
    }
}

/// The use cases on the named storage, without a coordinator of its own.
pub(super) async fn control(global: &GlobalArgs) -> Result<Control, Failure> {
    let clock = Clock::system();
    Ok(Control::new(store(global, &clock).await?, clock, None))
}
