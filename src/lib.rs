//! jobq: a control plane for DAG workflows over job queues.
//!
//! The map of the house. Arrows point one way: a room may use the rooms above it, never those
//! below; `tests/tidy.rs` reads the `use crate::` lines and fails on a backward arrow.
//!
//! | room | what it does |
//! | --- | --- |
//! | [`limits`], [`clock`] | every bound; the only reader of time and randomness |
//! | [`workflow`] | the pure model: definitions, conditions, the state machine. No IO, no async |
//! | [`wire`] | every byte other programs see: names, messages, state blob, index row |
//! | [`storage`] | the ports (blob, queue, table, lease) and their backends |
//! | [`store`] | the workflow store on the ports: submit, load, flush, list, outputs |
//! | [`coordinator`] | lease, intake, one actor per workflow, dispatch, sweeps |
//! | [`worker`] | receives tasks, runs them, reports their completions |
//! | [`control`] | the use cases; every API calls these and nothing below |
//! | [`api`] | REST and gRPC over the use cases, one server for both |
//! | [`config`], [`telemetry`] | settings; logs, metrics, traces |
//! | [`cli`] | one file per command |

pub mod api;
pub mod cli;
pub mod clock;
pub mod config;
pub mod control;
pub mod coordinator;
pub mod limits;
pub mod storage;
pub mod store;
pub mod telemetry;
pub mod wire;
pub mod worker;
pub mod workflow;
