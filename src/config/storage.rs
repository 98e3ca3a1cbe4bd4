//! Which storage to work on.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A storage, as `--storage` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorageSpec {
    /// `sqlite:DIR`: the embedded store in a data directory of this machine.
    Sqlite(PathBuf),
    /// `azure:ACCOUNT`: an account of Azure Storage, signed in to by the environment's identity.
    Azure {
        /// The account's name.
        account: String,
    },
    /// `azure`: the account that `AZURE_STORAGE_CONNECTION_STRING` describes.
    AzureConnectionString,
    /// `azurite`, or by its account's name `devstoreaccount1`: the emulator.
    Azurite,
}

/// A text that names no storage.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StorageSpecError {
    /// It has none of the forms.
    #[error(
        "{0:?} names no storage; use sqlite:DIR (for example sqlite:./jobq-data), azure:ACCOUNT, \
         azure (with AZURE_STORAGE_CONNECTION_STRING), or azurite"
    )]
    Unknown(String),
    /// It is a connection string, which other users of the machine could read off a command line.
    #[error(
        "a connection string does not belong on the command line; put it into \
         AZURE_STORAGE_CONNECTION_STRING and use --storage azure"
    )]
    ConnectionString,
    /// The account's name is impossible.
    #[error("{0:?} is no account name: 3 to 24 lower-case letters and digits")]
    Account(String),
}

impl FromStr for StorageSpec {
    type Err = StorageSpecError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.contains(';') || text.contains("AccountKey") || text.contains("sig=") {
            return Err(StorageSpecError::ConnectionString);
        }
        match (text, text.split_once(':')) {
            ("azure", _) => Ok(Self::AzureConnectionString),
            ("azurite" | "devstoreaccount1", _) => Ok(Self::Azurite),
            (_, Some(("sqlite", directory))) if !directory.is_empty() => {
                Ok(Self::Sqlite(directory.into()))
            }
            (_, Some(("azure", account))) if !account.is_empty() => azure(account),
            _ => Err(StorageSpecError::Unknown(text.chars().take(80).collect())),
        }
    }
}

fn azure(account: &str) -> Result<StorageSpec, StorageSpecError> {
    let letters = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    if (3..=24).contains(&account.len()) && account.bytes().all(letters) {
        let account = account.to_owned();
        return Ok(StorageSpec::Azure { account });
    }
    Err(StorageSpecError::Account(
        account.chars().take(80).collect(),
    ))
}

impl fmt::Display for StorageSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(directory) => write!(f, "sqlite:{}", directory.display()),
            Self::Azure { account } => write!(f, "azure:{account}"),
            Self::AzureConnectionString => f.write_str("azure"),
            Self::Azurite => f.write_str("azurite"),
        }
    }
}

/// Where the emulator listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AzuriteAddress {
    /// Its host: `127.0.0.1` unless `AZURITE_HOST` says otherwise.
    pub host: String,
    /// The blob service's port: 10000 unless `AZURITE_BLOB_PORT` or `BLOB_PORT` says otherwise.
    pub blob_port: u16,
    /// The queue service's port: 10001 unless `AZURITE_QUEUE_PORT` or `QUEUE_PORT` says otherwise.
    pub queue_port: u16,
    /// The table service's port: 10002 unless `AZURITE_TABLE_PORT` or `TABLE_PORT` says otherwise.
    pub table_port: u16,
}

/// An emulator's port that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} is {value:?}, which is no port; use a number from 1 to 65535")]
pub struct PortError {
    name: &'static str,
    value: String,
}

impl AzuriteAddress {
    /// The address that the environment, or what stands for it, describes.
    ///
    /// # Errors
    /// [`PortError`] for the first port that is not a number.
    pub fn from_env(var: impl Fn(&str) -> Option<String>) -> Result<Self, PortError> {
        // The second name of each is upstream's.
        let port = |names: [&'static str; 2], usual: u16| {
            let found = names.into_iter().find_map(|name| Some((name, var(name)?)));
            let Some((name, value)) = found else {
                return Ok(usual);
            };
            match value.parse() {
                Ok(port) if port > 0 => Ok(port),
                _ => Err(PortError { name, value }),
            }
        };
        Ok(Self {
            host: var("AZURITE_HOST").unwrap_or_else(|| "127.0.0.1".to_owned()),
            blob_port: port(["AZURITE_BLOB_PORT", "BLOB_PORT"], 10_000)?,
            queue_port: port(["AZURITE_QUEUE_PORT", "QUEUE_PORT"], 10_001)?,
            table_port: port(["AZURITE_TABLE_PORT", "TABLE_PORT"], 10_002)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storage_is_named_by_its_kind_and_place() {
        for (text, expected) in [
            (
                "sqlite:./jobq-data",
                StorageSpec::Sqlite("./jobq-data".into()),
            ),
            (
                "azure:science01",
                StorageSpec::Azure {
                    account: "science01".to_owned(),
                },
            ),
            ("azure", StorageSpec::AzureConnectionString),
            ("azurite", StorageSpec::Azurite),
        ] {
            let spec: StorageSpec = text.parse().unwrap();
            assert_eq!(spec, expected);
            assert_eq!(spec.to_string(), text);
        }
        assert_eq!("devstoreaccount1".parse(), Ok(StorageSpec::Azurite));
    }

    #[test]
    fn what_names_no_storage_is_refused_with_an_example() {
        for text in ["", "sqlite", "sqlite:", "./jobq-data", "redis:x", "azure:"] {
            let error = text.parse::<StorageSpec>().unwrap_err().to_string();
            assert!(error.contains("sqlite:./jobq-data"), "{error}");
        }
        for account in ["a", "Science", "a_b", &"x".repeat(25)] {
            let error = format!("azure:{account}").parse::<StorageSpec>();
            assert!(matches!(error, Err(StorageSpecError::Account(_))));
        }
    }

    #[test]
    fn a_connection_string_is_refused_without_showing_it() {
        let text = "AccountName=science;AccountKey=c2VjcmV0";
        let error = text.parse::<StorageSpec>().unwrap_err().to_string();
        assert!(error.contains("AZURE_STORAGE_CONNECTION_STRING"), "{error}");
        assert!(!error.contains("c2VjcmV0"), "{error}");
    }

    #[test]
    fn the_emulators_ports_come_from_the_environment() {
        let usual = AzuriteAddress::from_env(|_| None).unwrap();
        assert_eq!((usual.blob_port, usual.table_port), (10_000, 10_002));
        for ours_or_upstreams in ["AZURITE_QUEUE_PORT", "QUEUE_PORT"] {
            let one = |name: &str| (name == ours_or_upstreams).then(|| "7".to_owned());
            assert_eq!(AzuriteAddress::from_env(one).unwrap().queue_port, 7);
        }
        let wrong = |name: &str| (name == "AZURITE_QUEUE_PORT").then(|| "0".to_owned());
        let error = AzuriteAddress::from_env(wrong).unwrap_err().to_string();
        assert!(error.contains("AZURITE_QUEUE_PORT"), "{error}");
    }
}
