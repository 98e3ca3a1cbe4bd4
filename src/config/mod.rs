//! Settings that several commands share, parsed once into types.
//!
//! - [`StorageSpec`], [`QueuesSpec`], [`FilesSpec`]: which storage, in the few forms that name one.
//! - [`ConnectionString`]: Azure's form, with its [`Secret`].
//! - [`ConfigFile`]: `jobq.yaml` as text; what the settings mean is decided by the command line's own
//!   parsers.

mod connection_string;
mod file;
mod files;
mod storage;

pub use connection_string::{AccountSecret, ConnectionString, ConnectionStringError, Secret};
pub use file::{ConfigFile, ConfigFileError, Entry};
pub use files::{FilesSpec, PlaceError, QueuesSpec, split_workflow_prefix};
pub use storage::{AzuriteAddress, PortError, StorageSpec, StorageSpecError};
