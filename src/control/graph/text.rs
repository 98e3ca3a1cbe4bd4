//! A graph as text for programs that draw.

use std::fmt::Write as _;

use super::{Graph, Node};
use crate::workflow::TaskState;

/// How a graph is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum GraphFormat {
    /// Nodes and edges as data.
    #[default]
    Json,
    /// For Graphviz.
    Dot,
    /// For Mermaid.
    Mermaid,
}

/// What a node shows of its states: the word for one task, counts for a group.
fn states(node: &Node) -> String {
    let counted = node.states.iter().map(|(state, count)| match node.tasks {
        1 => state.to_string(),
        _ => format!("{count} {state}"),
    });
    counted.collect::<Vec<_>>().join(", ")
}

/// The state that a node is coloured by: the most urgent one that any of its tasks is in.
fn leading(node: &Node) -> TaskState {
    let urgency = [
        TaskState::Failed,
        TaskState::UpstreamFailed,
        TaskState::Cancelled,
        TaskState::Running,
        TaskState::Ready,
        TaskState::Pending,
        TaskState::Completed,
    ];
    let mut urgency = urgency.into_iter();
    let found = urgency.find(|state| node.states.contains_key(state));
    found.unwrap_or(TaskState::Skipped)
}

fn colour(state: TaskState) -> &'static str {
    match state {
        TaskState::Failed => "#f4b6b6",
        TaskState::UpstreamFailed => "#f4d6b6",
        TaskState::Cancelled => "#d9d9d9",
        TaskState::Running => "#b6d4f4",
        TaskState::Ready => "#e0ecf8",
        TaskState::Pending => "#ffffff",
        TaskState::Completed => "#bfe5bf",
        TaskState::Skipped => "#e8e8d0",
    }
}

impl Graph {
    /// For Graphviz.
    #[must_use]
    pub fn to_dot(&self) -> String {
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        let mut dot = format!("digraph \"{}\" {{\n", quoted(&self.workflow_id));
        dot.push_str("  rankdir=LR;\n  node [shape=box, style=\"rounded,filled\"];\n");
        for node in &self.nodes {
            let (label, states) = (quoted(&node.label), states(node));
            let fill = colour(leading(node));
            let id = &node.id;
            writeln!(
                dot,
                "  {id} [label=\"{label}\\n{states}\", fillcolor=\"{fill}\"];"
            )
            .ok();
        }
        for edge in &self.edges {
            writeln!(dot, "  {} -> {};", edge.from, edge.to).ok();
        }
        dot.push_str("}\n");
        dot
    }

    /// For Mermaid.
    #[must_use]
    pub fn to_mermaid(&self) -> String {
        // Within quotes only these three end or change a label; Mermaid takes entities for them.
        let quoted = |text: &str| {
            let text = text.replace('#', "#35;").replace('"', "#quot;");
            text.replace('<', "#lt;").replace('`', "#96;")
        };
        let mut mermaid = "flowchart LR\n".to_owned();
        for node in &self.nodes {
            let (id, label, states) = (&node.id, quoted(&node.label), states(node));
            let fill = colour(leading(node));
            writeln!(mermaid, "  {id}[\"{label}<br/>{states}\"]").ok();
            writeln!(mermaid, "  style {id} fill:{fill}").ok();
        }
        for edge in &self.edges {
            writeln!(mermaid, "  {} --> {}", edge.from, edge.to).ok();
        }
        mermaid
    }
}

#[cfg(test)]
mod tests {
    use super::super::build::graph;
    use crate::workflow::testkit::{after, started, task, workflow};

    #[test]
    fn names_cannot_break_out_of_their_labels() {
        let name = "a\"];\\x<b>#`";
        let runtime = started(&workflow(vec![task(name), after("b", &[name])]));
        let graph = graph(&runtime, None);
        let dot = graph.to_dot();
        assert!(dot.contains(r#"n0 [label="a\"];\\x<b>#`\nready""#), "{dot}");
        assert!(dot.contains("n0 -> n1;"), "{dot}");
        let mermaid = graph.to_mermaid();
        let label = r#"n0["a#quot;];\x#lt;b>#35;#96;<br/>ready"]"#;
        assert!(mermaid.contains(label), "{mermaid}");
        assert!(mermaid.contains("n0 --> n1"), "{mermaid}");
    }
}
