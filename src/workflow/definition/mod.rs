//! What a person submits: the tasks of a workflow and how they depend on each other.

mod model;
mod problem;

pub use model::{Definition, TaskDefinition};
pub use problem::{Problem, ProblemCode};
