//! Signals to a command and everything it started.

use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use tokio::process::Child;

/// How often a stopped group is looked at: nothing reports the end of processes that are not our
/// children.
const LOOK: Duration = Duration::from_millis(20);

/// The process group led by a command. Dropping it kills what is left of the group, so that no
/// process outlives the task that runs it, not even when that task is aborted.
pub(super) struct ProcessGroup(Pid);

impl ProcessGroup {
    /// The group of a child that was spawned as a leader; `None` if it was reaped already.
    pub(super) fn led_by(child: &Child) -> Option<Self> {
        let id = i32::try_from(child.id()?).ok()?;
        Some(Self(Pid::from_raw(id)))
    }

    /// Asks all processes of the group to end.
    pub(super) fn terminate(&self) {
        self.send(Signal::SIGTERM);
    }

    /// Ends all processes of the group.
    pub(super) fn kill(&self) {
        self.send(Signal::SIGKILL);
    }

    /// Returns once no process of the group is left. The leader must have been waited for.
    pub(super) async fn gone(&self) {
        loop {
            self.reap();
            if killpg(self.0, None).is_err() {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn send(&self, signal: Signal) {
        // The only errors are a group that is gone, which is what was wanted, and processes that
        // changed their user, which nobody here may signal.
        let _ = killpg(self.0, signal);
    }

    /// Where this process is the first of a container, orphans of the group became its children;
    /// unless they are reaped they count as alive for ever.
    fn reap(&self) {
        let group = Pid::from_raw(-self.0.as_raw());
        while let Ok(status) = waitpid(group, Some(WaitPidFlag::WNOHANG)) {
            if status == WaitStatus::StillAlive {
                return;
            }
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}
