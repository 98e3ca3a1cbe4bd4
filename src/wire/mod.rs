//! Every byte that other programs see: names, messages, outputs, stored state.
//!
//! | file | what it spells |
//! | --- | --- |
//! | `names` | [`Names`]: every container, blob, queue, table name and key, from a [`Prefix`] |
//! | `envelope` | the outer layer of every message, its size bound, base64, [`Poison`] |
//! | `task_message` | [`TaskMessage`]: coordinator to worker |
//! | `upstream_refs` | [`UpstreamRefs`]: the parents' outputs inside a task message |
//! | `completion_message` | [`CompletionMessage`]: worker to coordinator |
//! | [`state_blob`] | one workflow's runtime, plain or gzip |
//! | [`index_row`] | what listings show of a workflow |
//! | `output` | [`OutputRef`]: an output or its place; the markers that name file outputs |
//!
//! Callers: `store`, `coordinator`, `worker`, `control`. Pure: text in, values out, and back.
//!
//! Invariants: what one version wrote, every later one reads; unknown keys are ignored; nothing a
//! stranger sends panics, it is [`Poison`]; no encoded message exceeds `MESSAGE_BYTES_MAX`; JSON
//! text handed in (kwargs, outputs) comes out to the digit, because it is never parsed and
//! rewritten.

mod completion_message;
mod envelope;
pub mod index_row;
mod names;
mod output;
pub mod state_blob;
mod task_message;
mod upstream_refs;

pub use completion_message::CompletionMessage;
pub use envelope::{
    Encoded, Envelope, Poison, TooLarge, bounded_text, plain_text, seal, xml_escaped_len,
};
pub use names::{FILES_CONTAINER_DEFAULT, Names, NotAPrefix, Prefix};
pub use output::{OutputRef, PendingStash, PendingStashes, ReadyStash, StashError};
pub use task_message::{TaskMessage, WorkflowTask};
pub use upstream_refs::UpstreamRefs;
