//! Tables for people.

use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};

use crate::clock::Timestamp;
use crate::control::{
    CheckStatus, DoctorReport, Explanation, Summary, TaskView, WorkflowSummary, WorkflowView,
};

/// Longest output or error shown in a cell; the rest is a command away.
const CELL_CHARS_MAX: usize = 60;

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.iter().copied());
    table
}

fn finished(table: &Table) -> String {
    let lines = table.lines().map(|line| format!("{}\n", line.trim_end()));
    lines.collect()
}

/// Text for one cell: on one line and of bounded length.
fn cell(text: &str) -> String {
    let flat: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if flat.chars().count() <= CELL_CHARS_MAX {
        return flat;
    }
    flat.chars().take(CELL_CHARS_MAX - 1).chain(['…']).collect()
}

fn seconds(from: Option<Timestamp>, to: Option<Timestamp>) -> String {
    match (from, to) {
        (Some(from), Some(to)) => format!("{:.2} s", to.since(from).as_secs_f64()),
        _ => String::new(),
    }
}

/// Settings with their values and where these come from.
pub(super) fn settings(rows: &[super::config::Row]) -> String {
    let mut table = table(&["SETTING", "VALUE", "FROM"]);
    for row in rows {
        let value = row.value.as_deref().unwrap_or("-");
        table.add_row([row.setting.as_str(), value, row.from.as_str()]);
    }
    finished(&table)
}

/// Counts by state.
pub(super) fn summary(summary: &Summary) -> String {
    let mut table = table(&["STATE", "WORKFLOWS"]);
    for (state, count) in &summary.workflows {
        table.add_row([state.to_string(), count.to_string()]);
    }
    if !summary.complete {
        table.add_row(["(ended ones beyond 200,000 are not counted)", ""]);
    }
    finished(&table)
}

/// What a doctor saw: a line a check, and what to do where something is wrong.
pub(super) fn checks(report: &DoctorReport) -> String {
    let mut text = String::new();
    for check in &report.checks {
        let status = match check.status {
            CheckStatus::Ok => "ok  ",
            CheckStatus::Warn => "WARN",
            CheckStatus::Fail => "FAIL",
        };
        text.push_str(&format!("{status} {:<12} {}\n", check.code, check.evidence));
        if !check.workflow_ids.is_empty() {
            text.push_str(&format!("     {}\n", check.workflow_ids.join(", ")));
        }
        if let Some(fix) = &check.fix {
            text.push_str(&format!("     {fix}\n"));
        }
    }
    if report.fixed > 0 {
        text.push_str(&format!("{} rows were mended\n", report.fixed));
    }
    text
}

/// Why a task is where it is.
pub(super) fn findings(explanation: &Explanation) -> String {
    let task = &explanation.task;
    let mut text = format!("task {} is {}\n", task.name, task.state);
    for finding in &explanation.findings {
        text.push_str("- ");
        text.push_str(&finding.message);
        if !finding.tasks.is_empty() {
            let names: Vec<&str> = finding
                .tasks
                .iter()
                .map(crate::workflow::TaskName::as_str)
                .collect();
            text.push_str(": ");
            text.push_str(&names.join(", "));
        }
        text.push('\n');
    }
    text
}

/// The tasks of a workflow, each with its state and its output or error.
pub(super) fn tasks(tasks: &[TaskView]) -> String {
    let mut table = table(&[
        "TASK",
        "STATE",
        "ATTEMPT",
        "QUEUE",
        "TIME",
        "OUTPUT OR ERROR",
    ]);
    for task in tasks {
        let result = task
            .error
            .as_deref()
            .or(task.output_ref.as_deref())
            .unwrap_or_default();
        table.add_row([
            task.name.to_string(),
            task.state.to_string(),
            format!("{} of {}", task.attempt_no, task.num_retries + 1),
            task.queue.to_string(),
            seconds(task.started_at, task.completed_at),
            cell(result),
        ]);
    }
    finished(&table)
}

/// Workflows, as a listing.
pub(super) fn workflows(rows: &[WorkflowSummary]) -> String {
    let header = [
        "ID", "NAME", "STATE", "DONE", "FAILED", "RUNNING", "TOTAL", "CREATED",
    ];
    let mut table = table(&header);
    for row in rows {
        table.add_row([
            row.workflow_id.clone(),
            cell(&row.name),
            row.workflow_state.to_string(),
            (row.completed_tasks + row.skipped_tasks).to_string(),
            row.failed_tasks.to_string(),
            row.running_tasks.to_string(),
            row.total_tasks.to_string(),
            row.created_at.to_string(),
        ]);
    }
    finished(&table)
}

/// One workflow, a line per fact.
pub(super) fn workflow(workflow: &WorkflowView) -> String {
    let tasks = &workflow.tasks;
    let counts = [
        ("pending", tasks.pending),
        ("ready", tasks.ready),
        ("running", tasks.running),
        ("completed", tasks.completed),
        ("failed", tasks.failed),
        ("upstream_failed", tasks.upstream_failed),
        ("skipped", tasks.skipped),
        ("cancelled", tasks.cancelled),
    ];
    let counts: Vec<String> = counts
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(state, count)| format!("{count} {state}"))
        .collect();
    let mut lines = vec![
        format!("id:       {}", workflow.workflow_id),
        format!("name:     {}", workflow.name),
        format!("state:    {}", workflow.workflow_state),
        format!("tasks:    {} ({})", tasks.total, counts.join(", ")),
        format!("created:  {}", workflow.created_at),
        format!("updated:  {}", workflow.updated_at),
    ];
    lines.extend(
        workflow
            .error
            .as_ref()
            .map(|error| format!("error:    {}", cell(error))),
    );
    lines.extend(
        workflow
            .labels
            .iter()
            .map(|(key, value)| format!("label:    {key}={value}")),
    );
    lines.into_iter().map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_one_bounded_line() {
        assert_eq!(cell("a\nb\tc"), "a b c");
        let long = cell(&"é".repeat(100));
        assert_eq!(long.chars().count(), CELL_CHARS_MAX);
        assert!(long.ends_with('…'));
    }
}
