//! The workflow model, pure: no IO, no async, no clock, no logging.
//!
//! - [`definition`]: what a person submits, and everything that can be wrong with it.
//! - [`condition`]: the small expression language of a task's `condition`.
//! - [`runtime`]: the state machine of a running workflow.
//!
//! Time comes in as an argument and what is to be dispatched goes out as data, so every rule can
//! be tested without a runtime. Callers: `wire` (to read and write state), `store`, `coordinator`,
//! `control`.

pub mod condition;
pub mod definition;
pub mod fan_in;
mod names;
pub mod runtime;
mod state;
#[cfg(test)]
pub(crate) mod testkit;

pub use names::{NameError, QueueName, TaskName, WorkflowId};
pub use state::{DepPolicy, ResultPolicy, Seconds, TaskState, WorkflowState};
