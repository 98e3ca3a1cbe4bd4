//! Every byte that other programs see: names, messages, the state blob, the index row.

pub mod index_row;
pub mod state_blob;
