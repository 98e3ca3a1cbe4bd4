//! Which storage to work on.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A storage, as `--storage` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorageSpec {
    /// `sqlite:DIR`: the embedded store in a data directory of this machine.
    Sqlite(PathBuf),
}

/// A text that names no storage.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no storage; use sqlite:DIR, for example sqlite:./jobq-data")]
pub struct StorageSpecError(String);

impl FromStr for StorageSpec {
    type Err = StorageSpecError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            Some(("sqlite", directory)) if !directory.is_empty() => {
                Ok(Self::Sqlite(directory.into()))
            }
            _ => Err(StorageSpecError(text.chars().take(80).collect())),
        }
    }
}

impl fmt::Display for StorageSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(directory) => write!(f, "sqlite:{}", directory.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storage_is_named_by_its_kind_and_place() {
        let spec: StorageSpec = "sqlite:./jobq-data".parse().unwrap();
        assert_eq!(spec, StorageSpec::Sqlite("./jobq-data".into()));
        assert_eq!(spec.to_string(), "sqlite:./jobq-data");
    }

    #[test]
    fn what_names_no_storage_is_refused_with_an_example() {
        for text in ["", "sqlite", "sqlite:", "./jobq-data", "redis:x"] {
            let error = text.parse::<StorageSpec>().unwrap_err().to_string();
            assert!(error.contains("sqlite:./jobq-data"), "{error}");
        }
    }
}
