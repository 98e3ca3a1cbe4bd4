//! Opening the storage that the command line names.

use std::time::Duration;

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;

use super::GlobalArgs;
use super::backend::Backend;
use super::config::Row;
use super::exit::Failure;
use crate::api::client::Client;
use crate::clock::Clock;
use crate::config::{AccountSecret, AzuriteAddress, ConnectionString, QueuesSpec, StorageSpec};
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
                tracing::error!(%error, error_kind = error.kind(), retry_in_s, "the storage is not available; trying again");
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
    let mut storage = storage(&global.storage, clock)?;
    if let Some(QueuesSpec(spec)) = &global.queue_storage {
        storage.queues = self::storage(spec, clock)?.queues;
    }
    Ok(WorkflowStore::new(
        storage,
        Names::new(global.prefix.clone()),
    ))
}

/// Opens a storage without looking whether it is there.
pub(super) fn storage(spec: &StorageSpec, clock: &Clock) -> Result<Storage, Failure> {
    let Some(account) = account(spec)? else {
        let StorageSpec::Sqlite(directory) = spec else {
            return Err(anyhow::anyhow!("{spec} is no directory").into());
        };
        let opened = SqliteStorage::open(directory, clock.clone());
        let opened = opened.with_context(|| format!("cannot open {spec}"))?;
        return Ok(Storage::from_backend(opened));
    };
    let opened = AzureStorage::new(&account, clock.clone());
    let opened = opened.with_context(|| format!("cannot open {spec}"))?;
    Ok(Storage::from_backend(std::sync::Arc::new(opened)))
}

/// The account that a storage is; none for a directory.
fn account(spec: &StorageSpec) -> Result<Option<Account>, Failure> {
    Ok(Some(match spec {
        StorageSpec::Sqlite(_) => return Ok(None),
        StorageSpec::Azure { account } => Account {
            name: account.clone(),
            endpoints: Endpoints::public(account),
            credential: Credential::Identity,
        },
        StorageSpec::AzureConnectionString => of_connection_string()?,
        StorageSpec::Azurite => emulator()?,
    }))
}

/// What the storages come to, for `jobq config`.
pub(super) fn described(global: &GlobalArgs) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    let queues = global.queue_storage.as_ref().map(|QueuesSpec(spec)| spec);
    let files = global.file_storage.as_ref().map(|files| &files.storage);
    for (name, spec) in [
        ("storage", Some(&global.storage)),
        ("queues", queues),
        ("blobs", files),
    ] {
        let Some(spec) = spec else { continue };
        let Some(account) = account(spec)? else {
            continue;
        };
        let from = match spec {
            StorageSpec::AzureConnectionString => CONNECTION_STRING.to_owned(),
            other => other.to_string(),
        };
        let shown = [
            ("account", account.name),
            ("blob endpoint", account.endpoints.blob),
            ("queue endpoint", account.endpoints.queue),
            ("table endpoint", account.endpoints.table),
            ("credential", account.credential.to_string()),
        ];
        rows.extend(shown.into_iter().map(|(part, value)| Row {
            setting: format!("{name}: {part}"),
            value: Some(value),
            from: from.clone(),
        }));
    }
    Ok(rows)
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
fn of_connection_string() -> Result<Account, Failure> {
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

/// The use cases where the command line says: in a server, or on the storage.
pub(super) async fn backend(global: &GlobalArgs) -> Result<Backend, Failure> {
    match &global.server {
        Some(server) => Ok(Backend::Remote(Client::new(server)?)),
        None => Ok(Backend::Local(control(global).await?)),
    }
}

/// The use cases on the named storage, without a coordinator of its own.
pub(super) async fn control(global: &GlobalArgs) -> Result<Control, Failure> {
    let clock = Clock::system();
    Ok(Control::new(store(global, &clock).await?, clock, None))
}
