//! Deciding pending tasks whose dependencies are satisfied or broken.

use std::collections::{BTreeMap, HashMap};

use super::apply::clipped;
use super::{Runtime, TaskIndex};
use crate::clock::Timestamp;
use crate::workflow::{TaskState, condition::Condition};

/// Outputs that live in blobs and were loaded for conditions, by path: the value, or why it could
/// not be had.
pub type LoadedOutputs = HashMap<String, Result<serde_json::Value, String>>;

/// What a condition evaluates to at this moment.
enum Verdict {
    /// The task may run.
    Run,
    /// It is skipped, for this reason.
    Skip(String),
    /// These blobs must be loaded first.
    Needs(Vec<String>),
}

impl Runtime {
    /// Decides every pending task that can be decided: its policy satisfied and no condition, or a
    /// true one → ready; a false condition, or one that fails to evaluate → skipped; its policy
    /// broken → upstream-failed. Each decision may decide its children in turn.
    ///
    /// Returns the paths of outputs that conditions need and `outputs` does not hold; the caller
    /// loads them and settles again. The tasks that need them stay pending meanwhile.
    pub fn settle(&mut self, outputs: &LoadedOutputs, now: Timestamp) -> Vec<String> {
        let mut needs = Vec::new();
        let mut held_back = Vec::new();
        let mut changed = false;
        while let Some(index) = self.undecided.pop_first() {
            let task = self.task(index);
            if task.state != TaskState::Pending {
                continue;
            }
            if task.is_policy_satisfied() {
                match self.judge(index, outputs) {
                    Verdict::Run => self.make_ready(index, now),
                    Verdict::Skip(reason) => {
                        self.task_mut(index).error = Some(clipped(&reason));
                        self.finish(index, TaskState::Skipped, now);
                    }
                    Verdict::Needs(paths) => {
                        needs.extend(paths);
                        held_back.push(index);
                        continue;
                    }
                }
                changed = true;
            } else if task.is_policy_broken() {
                self.finish(index, TaskState::UpstreamFailed, now);
                changed = true;
            }
        }
        self.undecided.extend(held_back);
        if changed {
            self.touch(now);
        }
        needs.sort_unstable();
        needs.dedup();
        needs
    }

    /// Whether some task waits for an output to be loaded before it can be decided.
    #[must_use]
    pub fn is_undecided(&self) -> bool {
        !self.undecided.is_empty()
    }

    /// A joint of a rewritten fan-in completes at once; there is nothing for a worker to do.
    fn make_ready(&mut self, index: TaskIndex, now: Timestamp) {
        self.set_state(index, TaskState::Ready);
        if self.task(index).is_batch_merge {
            self.start(index, now);
            self.finish(index, TaskState::Completed, now);
        }
    }

    fn judge(&self, index: TaskIndex, outputs: &LoadedOutputs) -> Verdict {
        let Some(condition) = &self.task(index).condition else {
            return Verdict::Run;
        };
        match &condition.parsed {
            Ok(parsed) => self.evaluate(index, parsed, outputs),
            Err(error) => Verdict::Skip(format!("the condition does not parse: {error}")),
        }
    }

    fn evaluate(&self, index: TaskIndex, condition: &Condition, loaded: &LoadedOutputs) -> Verdict {
        let mut inputs = BTreeMap::new();
        let mut needs = Vec::new();
        let parents = self
            .task(index)
            .parents
            .iter()
            .map(|&parent| self.task(parent));
        for parent in parents.filter(|parent| condition.reads(&parent.name)) {
            let value = match parent.output_ref.as_deref() {
                None => serde_json::Value::Null,
                Some(reference) => match reference.strip_prefix("blob:") {
                    None => match serde_json::from_str(reference) {
                        Ok(value) => value,
                        Err(error) => return skip_for(&parent.name, &error.to_string()),
                    },
                    Some(path) => match loaded.get(path) {
                        Some(Ok(value)) => value.clone(),
                        Some(Err(reason)) => return skip_for(&parent.name, reason),
                        None => {
                            needs.push(path.to_owned());
                            continue;
                        }
                    },
                },
            };
            inputs.insert(parent.name.as_str(), value);
        }
        if !needs.is_empty() {
            return Verdict::Needs(needs);
        }
        match condition.evaluate(&inputs) {
            Ok(true) => Verdict::Run,
            Ok(false) => Verdict::Skip("the condition is false".to_owned()),
            Err(error) => Verdict::Skip(format!("the condition cannot be evaluated: {error}")),
        }
    }
}

fn skip_for(parent: &str, reason: &str) -> Verdict {
    Verdict::Skip(format!(
        "the condition cannot be evaluated: the output of {parent:?} cannot be read: {reason}"
    ))
}
