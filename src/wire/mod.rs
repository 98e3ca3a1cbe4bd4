//! Every byte that other programs see: names, messages, the state blob, the index row.
