//! Settings that several commands share, parsed once into types.

mod connection_string;
mod storage;

pub use connection_string::{AccountSecret, ConnectionString, ConnectionStringError, Secret};
pub use storage::{AzuriteAddress, PortError, StorageSpec, StorageSpecError};
