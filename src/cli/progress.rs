//! Showing a running workflow: a bar on a terminal, a line per change elsewhere.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::control::Snapshot;
use crate::workflow::TaskState;

/// How often the bar's clock moves while nothing else does.
const TICK: Duration = Duration::from_millis(100);

/// The progress of one workflow, on standard error.
pub(super) enum Progress {
    Bar(ProgressBar),
    Lines,
}

impl Progress {
    /// A bar if standard error is a terminal, otherwise lines.
    pub(super) fn new() -> Self {
        if !std::io::stderr().is_terminal() {
            return Self::Lines;
        }
        let style = "{spinner} {elapsed_precise} [{wide_bar}] {pos}/{len} {msg}";
        let style = ProgressStyle::with_template(style)
            .expect("the template is valid")
            .progress_chars("=> ");
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(style);
        bar.enable_steady_tick(TICK);
        Self::Bar(bar)
    }

    /// Shows what changed.
    pub(super) fn show(&self, snapshot: &Snapshot) {
        let tasks = &snapshot.workflow.tasks;
        let terminal = tasks.total - tasks.pending - tasks.ready - tasks.running;
        for change in snapshot
            .changes
            .iter()
            .filter(|change| is_told(change.state))
        {
            let error = change
                .error
                .as_ref()
                .map(|error| format!(": {}", first_line(error)));
            let line = format!(
                "{:<15} {}{}",
                change.state,
                change.task,
                error.unwrap_or_default()
            );
            match self {
                // The bar shows the good news; bad news stay on the screen above it.
                Self::Bar(bar) if change.state.breaks() => bar.println(line),
                Self::Bar(_) => {}
                Self::Lines => eprintln!("{line}"),
            }
        }
        if let Self::Bar(bar) = self {
            bar.set_length(tasks.total.into());
            bar.set_position(terminal.into());
            bar.set_message(format!(
                "{} running, {} failed",
                tasks.running, tasks.failed
            ));
        }
    }

    /// Takes the bar off the screen.
    pub(super) fn finish(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// Waiting is no news.
const fn is_told(state: TaskState) -> bool {
    !matches!(state, TaskState::Pending | TaskState::Ready)
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
