//! Where file outputs and queues live when it is not with the state.

use std::fmt;
use std::str::FromStr;

use super::storage::{StorageSpec, StorageSpecError};

/// The account and container of file outputs, as `ACCOUNT/CONTAINER`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesSpec {
    /// The storage.
    pub storage: StorageSpec,
    /// The container in it.
    pub container: String,
}

/// The storage of task and completion queues: a storage, or the bare name of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuesSpec(pub StorageSpec);

/// A text that names no place for queues or files.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// It lacks a part.
    #[error("{0:?} is not ACCOUNT/CONTAINER, for example science/results")]
    NoContainer(String),
    /// It names another service.
    #[error(
        "{0:?}: queues can be on Azure Storage (ACCOUNT, or azure:ACCOUNT), azurite or sqlite:DIR; \
         Service Bus is not supported"
    )]
    ServiceBus(String),
    /// The account or storage is not one.
    #[error(transparent)]
    Storage(#[from] StorageSpecError),
}

/// A storage by its full name, or an account by its bare one.
fn account_or_storage(text: &str) -> Result<StorageSpec, StorageSpecError> {
    match text.parse() {
        Err(StorageSpecError::Unknown(_)) if !text.contains(':') => format!("azure:{text}").parse(),
        other => other,
    }
}

impl FromStr for FilesSpec {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.rsplit_once('/') {
            Some((account, container)) if !account.is_empty() && !container.is_empty() => {
                Ok(Self {
                    storage: account_or_storage(account)?,
                    container: container.to_owned(),
                })
            }
            _ => Err(PlaceError::NoContainer(text.chars().take(80).collect())),
        }
    }
}

impl FromStr for QueuesSpec {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.starts_with("sb://") {
            return Err(PlaceError::ServiceBus(text.chars().take(80).collect()));
        }
        Ok(Self(account_or_storage(text)?))
    }
}

impl fmt::Display for FilesSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.storage, self.container)
    }
}

/// Splits upstream's `<account>/<prefix>` into a storage's name and a prefix.
#[must_use]
pub fn split_workflow_prefix(text: &str) -> Option<(String, String)> {
    let (account, prefix) = text.split_once('/')?;
    if account.is_empty() || prefix.is_empty() {
        return None;
    }
    let storage = match account {
        "devstoreaccount1" | "azurite" => "azurite".to_owned(),
        account if account.contains(':') => account.to_owned(),
        account => format!("azure:{account}"),
    };
    Some((storage, prefix.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_may_be_named_as_upstream_does() {
        let files: FilesSpec = "science/results".parse().unwrap();
        assert_eq!(files.storage.to_string(), "azure:science");
        assert_eq!(files.container, "results");
        let files: FilesSpec = "devstoreaccount1/results".parse().unwrap();
        assert_eq!(files.storage, StorageSpec::Azurite);
        let queues: QueuesSpec = "science".parse().unwrap();
        assert_eq!(queues.0.to_string(), "azure:science");
        let queues: QueuesSpec = "sqlite:/tmp/q".parse().unwrap();
        assert_eq!(queues.0.to_string(), "sqlite:/tmp/q");
    }

    #[test]
    fn what_names_no_place_is_refused_with_what_to_write() {
        for text in ["science", "/x", "science/", ""] {
            let error = text.parse::<FilesSpec>().unwrap_err().to_string();
            assert!(error.contains("science/results"), "{error}");
        }
        let error = "sb://bus".parse::<QueuesSpec>().unwrap_err().to_string();
        assert!(error.contains("Service Bus is not supported"), "{error}");
        assert!("No-Account".parse::<QueuesSpec>().is_err());
    }

    #[test]
    fn upstreams_prefix_names_account_and_prefix() {
        let split = |text| split_workflow_prefix(text);
        let both = |a: &str, b: &str| Some((a.to_owned(), b.to_owned()));
        assert_eq!(split("science/My"), both("azure:science", "My"));
        assert_eq!(split("devstoreaccount1/My"), both("azurite", "My"));
        assert_eq!(split("My"), None);
        assert_eq!(split("/My"), None);
    }
}
