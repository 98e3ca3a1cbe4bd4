//! Which account, and how to sign in.

use std::fmt;
use std::sync::Arc;

use azure_core::HttpClient;
use azure_core::auth::Secret;
use azure_data_tables::clients::{TableServiceClient, TableServiceClientBuilder};
use azure_identity::{DefaultAzureCredentialBuilder, TokenCredentialOptions};
use azure_identity::{WorkloadIdentityCredential, create_credential};
use azure_storage::{CloudLocation, StorageCredentials};
use azure_storage_blobs::prelude::{BlobServiceClient, ClientBuilder};
use azure_storage_queues::{QueueServiceClient, QueueServiceClientBuilder};
use base64::Engine as _;

use super::super::{Error, Result};
use super::transport::Transport;

/// The addresses of an account's services, without a slash at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoints {
    /// The blob service.
    pub blob: String,
    /// The queue service.
    pub queue: String,
    /// The table service.
    pub table: String,
}

impl Endpoints {
    /// The public cloud's addresses of an account.
    #[must_use]
    pub fn public(account: &str) -> Self {
        Self::with_suffix("https", account, "core.windows.net")
    }

    /// The addresses of an account in another cloud, such as `core.chinacloudapi.cn`.
    #[must_use]
    pub fn with_suffix(protocol: &str, account: &str, suffix: &str) -> Self {
        let of = |service: &str| format!("{protocol}://{account}.{service}.{suffix}");
        Self {
            blob: of("blob"),
            queue: of("queue"),
            table: of("table"),
        }
    }
}

/// How to sign in.
#[derive(Clone)]
pub enum Credential {
    /// One of the account's two keys, in base64. Allows everything.
    Key(String),
    /// A shared access signature: a query string that allows some things for some time.
    Sas(String),
    /// An identity: the environment's service principal, a workload or managed identity, or the
    /// Azure CLI's user, whichever is found first.
    Identity,
}

impl Credential {
    pub(super) const fn is_key(&self) -> bool {
        matches!(self, Self::Key(_))
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key(_) => "Key(***)",
            Self::Sas(_) => "Sas(***)",
            Self::Identity => "Identity",
        })
    }
}

impl fmt::Display for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key(_) => "account key (***)",
            Self::Sas(_) => "shared access signature (***)",
            Self::Identity => "identity of the environment",
        })
    }
}

/// An account of Azure Storage, or the emulator's.
#[derive(Debug, Clone)]
pub struct Account {
    /// Its name.
    pub name: String,
    /// Where its services are.
    pub endpoints: Endpoints,
    /// How to sign in.
    pub credential: Credential,
}

impl Account {
    /// The emulator's account, whose name and key are public.
    #[must_use]
    pub fn emulator(host: &str, blob_port: u16, queue_port: u16, table_port: u16) -> Self {
        let name = azure_storage::EMULATOR_ACCOUNT;
        let at = |port: u16| format!("http://{host}:{port}/{name}");
        Self {
            name: name.to_owned(),
            endpoints: Endpoints {
                blob: at(blob_port),
                queue: at(queue_port),
                table: at(table_port),
            },
            credential: Credential::Key(azure_storage::EMULATOR_ACCOUNT_KEY.to_owned()),
        }
    }
}

/// The clients of an account's services.
pub(super) struct Clients {
    pub(super) blobs: BlobServiceClient,
    pub(super) queues: QueueServiceClient,
    pub(super) tables: TableServiceClient,
}

impl Clients {
    pub(super) fn new(account: &Account, transport: &Arc<Transport>) -> Result<Self> {
        let credentials = credentials(account, transport.clone())?;
        let options = transport.options();
        let at = |uri: &str| CloudLocation::Custom {
            account: account.name.clone(),
            uri: uri.trim_end_matches('/').to_owned(),
        };
        let Endpoints { blob, queue, table } = &account.endpoints;
        Ok(Self {
            blobs: ClientBuilder::with_location(at(blob), credentials.clone())
                .client_options(options.clone())
                .blob_service_client(),
            queues: QueueServiceClientBuilder::with_location(at(queue), credentials.clone())
                .client_options(options.clone())
                .build(),
            tables: TableServiceClientBuilder::with_location(at(table), credentials)
                .client_options(options)
                .build(),
        })
    }
}

fn credentials(account: &Account, transport: Arc<Transport>) -> Result<StorageCredentials> {
    let refused = |reason: &str| Error::Unauthorized {
        message: format!("{reason} of account {}", account.name),
    };
    match &account.credential {
        Credential::Key(key) => {
            let decoded = base64::engine::general_purpose::STANDARD.decode(key);
            if decoded.is_err() {
                return Err(refused("the text given is not base64, so it is no key"));
            }
            let key = Secret::new(key.clone());
            Ok(StorageCredentials::access_key(account.name.clone(), key))
        }
        Credential::Sas(token) => StorageCredentials::sas_token(token)
            .map_err(|_| refused("the text given is no shared access signature")),
        Credential::Identity => identity(transport),
    }
}

/// The chain of identities. A workload identity is no part of the library's own chain; a kind
/// named in `AZURE_CREDENTIAL_KIND` stands alone.
fn identity(transport: Arc<Transport>) -> Result<StorageCredentials> {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let client: Arc<dyn HttpClient> = transport;
    let options = TokenCredentialOptions::from(client);
    let found = if set("AZURE_CREDENTIAL_KIND") {
        create_credential()
    } else if set("AZURE_FEDERATED_TOKEN_FILE") || set("AZURE_FEDERATED_TOKEN") {
        WorkloadIdentityCredential::create(options).map(|found| Arc::new(found) as _)
    } else {
        let chain = DefaultAzureCredentialBuilder::new()
            .with_options(options)
            .build();
        chain.map(|found| Arc::new(found) as _)
    };
    found
        .map(StorageCredentials::token_credential)
        .map_err(|_| Error::Unauthorized {
            message: "no identity found: set AZURE_CLIENT_ID, AZURE_TENANT_ID and \
                      AZURE_CLIENT_SECRET, run where a managed or workload identity is assigned, \
                      or run `az login`"
                .to_owned(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    fn clients(credential: Credential) -> Result<Clients> {
        let account = Account {
            name: "science".to_owned(),
            endpoints: Endpoints::public("science"),
            credential,
        };
        Clients::new(&account, &Arc::new(Transport::new(Clock::system(), true)?))
    }

    #[test]
    fn the_public_cloud_is_addressed_by_account_and_service() {
        let endpoints = Endpoints::public("science");
        assert_eq!(endpoints.blob, "https://science.blob.core.windows.net");
        assert_eq!(endpoints.queue, "https://science.queue.core.windows.net");
        assert_eq!(endpoints.table, "https://science.table.core.windows.net");
    }

    #[test]
    fn a_key_that_is_no_base64_is_refused_without_showing_it() {
        let Err(error) = clients(Credential::Key("n0t base64!".to_owned())) else {
            panic!("it was accepted");
        };
        let text = error.to_string();
        assert!(text.contains("no key of account science"), "{text}");
        assert!(!text.contains("n0t"), "{text}");
    }

    #[test]
    fn secrets_are_not_in_the_debug_form() {
        for credential in [
            Credential::Key("c2VjcmV0".to_owned()),
            Credential::Sas("sig=c2VjcmV0".to_owned()),
        ] {
            assert!(!format!("{credential:?}").contains("c2VjcmV0"));
        }
    }
}
