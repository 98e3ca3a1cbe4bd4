//! Tests of the whole room. `support` says how a text is judged.

mod hostile;
mod properties;
mod rules;
mod schema;
mod support;
mod valid;
