//! From a runtime to nodes and edges.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::workflow::runtime::{Runtime, TaskIndex};
use crate::workflow::{TaskState, WorkflowId, WorkflowState};

/// Names that a group's node shows; it counts the others.
const NAMES_MAX: usize = 3;

/// A workflow as nodes and edges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Graph {
    /// The workflow.
    #[schema(value_type = String)]
    pub workflow_id: WorkflowId,
    /// Its state.
    pub workflow_state: WorkflowState,
    /// The nodes, layer by layer.
    pub nodes: Vec<Node>,
    /// The edges, from what is waited for to what waits.
    pub edges: Vec<Edge>,
}

/// A task, or tasks that look alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Node {
    /// Names the node within the graph.
    pub id: String,
    /// For people: the task's name, or the first of the group's.
    pub label: String,
    /// One past the layer of the deepest parent; 0 for what waits for nothing.
    pub layer: usize,
    /// How many tasks it stands for.
    pub tasks: usize,
    /// How many of them are in each state; states of none are left out.
    #[schema(value_type = BTreeMap<String, usize>)]
    pub states: BTreeMap<TaskState, usize>,
}

/// A dependency, or dependencies between groups.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct Edge {
    /// The node that is waited for.
    pub from: String,
    /// The node that waits.
    pub to: String,
}

pub(super) fn graph(runtime: &Runtime, collapse_from: Option<usize>) -> Graph {
    let layers = layers(runtime);
    let groups = groups(runtime, &layers, collapse_from);
    let mut node_of = HashMap::new();
    let mut nodes: Vec<Node> = Vec::with_capacity(groups.len());
    for (position, group) in groups.iter().enumerate() {
        let id = format!("n{position}");
        for &index in group {
            node_of.insert(index, id.clone());
        }
        nodes.push(node(runtime, id, layers[&group[0]], group));
    }
    let mut edges = BTreeSet::new();
    for (index, to) in &node_of {
        for parent in runtime.task(*index).parents() {
            edges.insert(Edge {
                from: node_of[parent].clone(),
                to: to.clone(),
            });
        }
    }
    nodes.sort_by_key(|node| node.layer);
    Graph {
        workflow_id: runtime.header().workflow_id.clone(),
        workflow_state: runtime.state(),
        nodes,
        edges: edges.into_iter().collect(),
    }
}

fn indexes(runtime: &Runtime) -> impl Iterator<Item = TaskIndex> + '_ {
    let tasks = runtime.tasks().iter();
    tasks.filter_map(|task| runtime.find(task.name().as_str()))
}

/// The layer of each task, in one pass in the order of the dependencies.
fn layers(runtime: &Runtime) -> HashMap<TaskIndex, usize> {
    let mut layers = HashMap::new();
    let mut waiting: HashMap<TaskIndex, usize> = indexes(runtime)
        .map(|index| (index, runtime.task(index).parents().len()))
        .collect();
    let mut free: Vec<TaskIndex> = indexes(runtime)
        .filter(|index| waiting[index] == 0)
        .collect();
    while let Some(index) = free.pop() {
        let parents = runtime.task(index).parents().iter();
        let deepest = parents.map(|parent| layers[parent] + 1).max();
        layers.insert(index, deepest.unwrap_or(0));
        for &child in runtime.task(index).children() {
            let left = waiting.entry(child).or_default();
            *left -= 1;
            if *left == 0 {
                free.push(child);
            }
        }
    }
    layers
}

/// The tasks of each node, in the order of the definition.
fn groups(
    runtime: &Runtime,
    layers: &HashMap<TaskIndex, usize>,
    collapse_from: Option<usize>,
) -> Vec<Vec<TaskIndex>> {
    let sorted = |tasks: &[TaskIndex]| {
        let mut tasks = tasks.to_vec();
        tasks.sort_unstable();
        tasks
    };
    let mut alike: HashMap<_, Vec<TaskIndex>> = HashMap::new();
    for index in indexes(runtime) {
        let task = runtime.task(index);
        let key = (
            layers[&index],
            sorted(task.parents()),
            sorted(task.children()),
        );
        alike.entry(key).or_default().push(index);
    }
    let large =
        |group: &Vec<TaskIndex>| collapse_from.is_some_and(|from| group.len() >= from.max(2));
    let (collapsed, single): (Vec<_>, Vec<_>) = alike.into_values().partition(large);
    let mut groups = collapsed;
    groups.extend(single.into_iter().flatten().map(|index| vec![index]));
    groups.sort_unstable();
    groups
}

fn node(runtime: &Runtime, id: String, layer: usize, group: &[TaskIndex]) -> Node {
    let names = group
        .iter()
        .map(|&index| runtime.task(index).name().as_str());
    let mut label: Vec<&str> = names.take(NAMES_MAX).collect();
    let more = format!("and {} more", group.len().saturating_sub(NAMES_MAX));
    if group.len() > NAMES_MAX {
        label.push(&more);
    }
    let mut states = BTreeMap::new();
    for &index in group {
        *states.entry(runtime.task(index).state()).or_default() += 1;
    }
    Node {
        id,
        label: label.join(", "),
        layer,
        tasks: group.len(),
        states,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workflow::testkit::{after, dispatch_all, started, task, workflow};

    fn fan(leaves: usize) -> Runtime {
        let names: Vec<String> = (0..leaves).map(|n| format!("leaf-{n}")).collect();
        let mut tasks = vec![task("root")];
        tasks.extend(names.iter().map(|name| after(name, &["root"])));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        tasks.push(after("join", &names));
        started(&workflow(tasks))
    }

    #[test]
    fn layers_follow_the_longest_path() {
        let runtime = started(&workflow(vec![
            task("a"),
            after("b", &["a"]),
            after("c", &["a", "b"]),
        ]));
        let graph = graph(&runtime, None);
        let layers: Vec<_> = graph
            .nodes
            .iter()
            .map(|node| (node.label.as_str(), node.layer))
            .collect();
        assert_eq!(layers, [("a", 0), ("b", 1), ("c", 2)]);
        assert_eq!(graph.edges.len(), 3);
    }

    #[test]
    fn alike_tasks_are_one_node_with_counts() {
        let mut runtime = fan(5_000);
        dispatch_all(&mut runtime);
        let collapsed = graph(&runtime, Some(10));
        assert_eq!((collapsed.nodes.len(), collapsed.edges.len()), (3, 2));
        let fan = &collapsed.nodes[1];
        assert_eq!((fan.tasks, fan.layer), (5_000, 1));
        assert_eq!(fan.label, "leaf-0, leaf-1, leaf-2, and 4997 more");
        assert_eq!(fan.states, BTreeMap::from([(TaskState::Pending, 5_000)]));
        assert_eq!(graph(&fan_of_three(), Some(10)).nodes.len(), 5);
    }

    fn fan_of_three() -> Runtime {
        fan(3)
    }
}
