//! Recounting what is kept incrementally.

use super::Runtime;
use crate::workflow::TaskState;

/// A counter or queue that does not agree with the tasks: always a bug of this module.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}: kept {kept}, recounted {recounted}")]
pub struct Inconsistency {
    what: &'static str,
    kept: String,
    recounted: String,
}

impl Runtime {
    /// Compares every counter and queue with a recount. Costs time in proportion to the whole
    /// workflow: for tests, and for the coordinator's own doubts, not for every step.
    ///
    /// # Errors
    /// The first disagreement.
    pub fn check(&self) -> Result<(), Inconsistency> {
        let mut fresh = self.clone();
        fresh.recount();
        differ("counts", &self.counts, &fresh.counts)?;
        for (kept, recounted) in self.tasks.iter().zip(&fresh.tasks) {
            differ("satisfied parents", &kept.satisfied, &recounted.satisfied)?;
            differ("broken parents", &kept.broken, &recounted.broken)?;
        }
        let members = |runtime: &Self| {
            let mut indexes: Vec<_> = runtime.ready.iter().map(|&(_, index)| index).collect();
            indexes.sort_unstable();
            indexes
        };
        differ("ready queue", &members(self), &members(&fresh))?;
        differ("deadlines", &self.deadlines, &fresh.deadlines)?;
        differ("state", &self.state, &fresh.derive_state())?;
        self.check_undecided()?;
        match self.header.max_parallelism {
            Some(bound) if self.counts.of(TaskState::Running) > bound => {
                differ("running tasks", &self.counts.of(TaskState::Running), &bound)
            }
            _ => Ok(()),
        }
    }

    /// A pending task that its parents decide stands in the list of undecided ones.
    fn check_undecided(&self) -> Result<(), Inconsistency> {
        for (position, task) in self.tasks.iter().enumerate() {
            let decided = task.is_policy_satisfied() || task.is_policy_broken();
            let listed = self.undecided.contains(&super::build::index_of(position));
            if task.state == TaskState::Pending && decided {
                differ("undecided", &listed, &true)?;
            }
        }
        Ok(())
    }
}

fn differ<T: PartialEq + std::fmt::Debug>(
    what: &'static str,
    kept: &T,
    recounted: &T,
) -> Result<(), Inconsistency> {
    if kept == recounted {
        return Ok(());
    }
    let (kept, recounted) = (format!("{kept:?}"), format!("{recounted:?}"));
    Err(Inconsistency {
        what,
        kept,
        recounted,
    })
}
