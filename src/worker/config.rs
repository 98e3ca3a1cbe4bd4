//! The settings of a worker.

use std::time::Duration;

use crate::limits::{VISIBILITY_TIMEOUT_MAX, WORKER_ID_BYTES_MAX, WORKER_PARALLEL_MAX};
use crate::wire::FILES_CONTAINER_DEFAULT;
use crate::workflow::QueueName;

/// The settings of a worker. [`WorkerConfig::new`] fills in the defaults.
#[derive(Debug, Clone)]
pub struct WorkerConfig {
    /// The queues to serve, each as often as the others. At least one.
    pub queues: Vec<QueueName>,
    /// Names this worker in completions and logs; at most `WORKER_ID_BYTES_MAX` bytes.
    pub worker_id: String,
    /// Tasks run at once; 1 to `WORKER_PARALLEL_MAX`. Default 1.
    pub parallel: usize,
    /// How long a message stays hidden without a sign of life; 1 s to `VISIBILITY_TIMEOUT_MAX`.
    /// It is extended every third of this. Default 60 s.
    pub visibility_timeout: Duration,
    /// How often each running workflow's cancel flag is read, give or take a tenth. Default 30 s.
    pub cancel_poll_interval: Duration,
    /// The longest pause between looks at empty queues, where the storage cannot wait itself.
    /// Default 30 s.
    pub idle_backoff_max: Duration,
    /// How often a completion is sent before its task message is left for another delivery; no
    /// bound unless given.
    pub completion_send_attempts_max: Option<usize>,
    /// The container of file outputs. Default `jobq-workflow-data`.
    pub files_container: String,
}

/// A setting outside its range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {reason}")]
pub struct ConfigError {
    /// The field of [`WorkerConfig`].
    pub setting: &'static str,
    /// What is wrong with it.
    pub reason: String,
}

impl WorkerConfig {
    /// The default settings for `queues`.
    #[must_use]
    pub fn new(queues: Vec<QueueName>, worker_id: impl Into<String>) -> Self {
        Self {
            queues,
            worker_id: worker_id.into(),
            parallel: 1,
            visibility_timeout: Duration::from_secs(60),
            cancel_poll_interval: Duration::from_secs(30),
            idle_backoff_max: Duration::from_secs(30),
            completion_send_attempts_max: None,
            files_container: FILES_CONTAINER_DEFAULT.to_owned(),
        }
    }

    /// Checks every setting against its range.
    ///
    /// # Errors
    /// The first setting outside its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let fail = |setting, reason: String| Err(ConfigError { setting, reason });
        if self.queues.is_empty() {
            return fail("queues", "name at least one".to_owned());
        }
        if self.worker_id.len() > WORKER_ID_BYTES_MAX {
            return fail(
                "worker_id",
                format!("must have at most {WORKER_ID_BYTES_MAX} bytes"),
            );
        }
        if !(1..=WORKER_PARALLEL_MAX).contains(&self.parallel) {
            return fail("parallel", format!("must be 1 to {WORKER_PARALLEL_MAX}"));
        }
        if !(Duration::from_secs(1)..=VISIBILITY_TIMEOUT_MAX).contains(&self.visibility_timeout) {
            return fail("visibility_timeout", "must be 1 s to 7 days".to_owned());
        }
        if self.cancel_poll_interval.is_zero() {
            return fail("cancel_poll_interval", "must be positive".to_owned());
        }
        if self.completion_send_attempts_max == Some(0) {
            return fail(
                "completion_send_attempts_max",
                "must be positive".to_owned(),
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_outside_their_range_are_named() {
        let good = WorkerConfig::new(vec![QueueName::parse("q").unwrap()], "w");
        assert_eq!(good.check(), Ok(()));
        let mut bad: Vec<WorkerConfig> = std::iter::repeat_n(good, 7).collect();
        bad[0].queues.clear();
        bad[1].parallel = 0;
        bad[2].parallel = WORKER_PARALLEL_MAX + 1;
        bad[3].visibility_timeout = VISIBILITY_TIMEOUT_MAX + Duration::from_secs(1);
        bad[4].cancel_poll_interval = Duration::ZERO;
        bad[5].completion_send_attempts_max = Some(0);
        bad[6].worker_id = "w".repeat(WORKER_ID_BYTES_MAX + 1);
        let named: Vec<_> = bad
            .iter()
            .map(|bad| bad.check().unwrap_err().setting)
            .collect();
        assert_eq!(
            named,
            [
                "queues",
                "parallel",
                "parallel",
                "visibility_timeout",
                "cancel_poll_interval",
                "completion_send_attempts_max",
                "worker_id"
            ]
        );
    }
}
