//! Settings that several commands share, parsed once into types.

mod storage;

pub use storage::{StorageSpec, StorageSpecError};
