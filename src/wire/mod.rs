//! Every byte that other programs see: names, messages, the state blob, the index row.

pub mod index_row;
mod names;
pub mod state_blob;

pub use names::{FILES_CONTAINER_DEFAULT, Names, NotAPrefix, Prefix};
