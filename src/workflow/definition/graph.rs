//! The dependencies of a workflow as numbers, and the search for cycles. Linear in tasks and
//! dependencies, and without recursion: a chain of all tasks is an honest workflow.

use std::collections::VecDeque;

/// Stands for a dependency that is no task's name.
const NOWHERE: u32 = u32::MAX;

/// For each task the tasks it waits for, in the order given.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// Where the parents of each task start in `targets`; one more at the end.
    starts: Vec<usize>,
    targets: Vec<u32>,
}

/// A cycle: each task waits for the next, and the last for the first.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cycle {
    /// The tasks; the first is the one that comes first in the definition.
    pub(super) tasks: Vec<usize>,
    /// Which of the first task's dependencies leads on.
    pub(super) dependency: usize,
}

impl Graph {
    pub(super) fn with_capacity(tasks: usize) -> Self {
        let mut starts = Vec::with_capacity(tasks + 1);
        starts.push(0);
        Self {
            starts,
            targets: Vec::new(),
        }
    }

    /// Adds the next task with its dependencies, none for those that lead nowhere.
    pub(super) fn push(&mut self, parents: impl Iterator<Item = Option<u32>>) {
        self.targets
            .extend(parents.map(|parent| parent.unwrap_or(NOWHERE)));
        self.starts.push(self.targets.len());
    }

    /// The tasks that a task waits for.
    pub(super) fn parents(&self, task: usize) -> impl Iterator<Item = usize> + '_ {
        let known = |target: &&u32| **target != NOWHERE;
        let range = self.starts[task]..self.starts[task + 1];
        self.targets[range]
            .iter()
            .filter(known)
            .map(|&target| target as usize)
    }

    const fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// One cycle of each group of tasks that wait for each other, by their first tasks.
    pub(super) fn cycles(&self) -> Vec<Cycle> {
        let mut cycles: Vec<Cycle> = self
            .components()
            .into_iter()
            .filter_map(|component| self.cycle_within(&component))
            .collect();
        cycles.sort_by_key(|cycle| cycle.tasks[0]);
        cycles
    }

    /// The groups of two or more tasks that can all reach each other (Tarjan's algorithm, with
    /// its recursion laid out as a stack of half-seen tasks).
    fn components(&self) -> Vec<Vec<usize>> {
        const UNSEEN: usize = usize::MAX;
        const DONE: usize = usize::MAX - 1;
        let mut low = vec![UNSEEN; self.len()];
        let mut components = Vec::new();
        let (mut path, mut waiting, mut next) = (Vec::new(), Vec::new(), 0);
        for root in 0..self.len() {
            if low[root] != UNSEEN {
                continue;
            }
            path.push((root, self.starts[root], next));
            while let Some((task, edge, order)) = path.pop() {
                if low[task] == UNSEEN {
                    low[task] = order;
                    next += 1;
                    waiting.push(task);
                }
                if edge < self.starts[task + 1] {
                    path.push((task, edge + 1, order));
                    let target = self.targets[edge];
                    if target == NOWHERE {
                        continue;
                    }
                    let target = target as usize;
                    if low[target] == UNSEEN {
                        path.push((target, self.starts[target], next));
                    } else if low[target] != DONE {
                        low[task] = low[task].min(low[target]);
                    }
                    continue;
                }
                if low[task] == order {
                    let start = waiting
                        .iter()
                        .rposition(|&other| other == task)
                        .unwrap_or(0);
                    let component = waiting.split_off(start);
                    for &member in &component {
                        low[member] = DONE;
                    }
                    if component.len() > 1 {
                        components.push(component);
                    }
                } else if let Some(&(parent, ..)) = path.last() {
                    low[parent] = low[parent].min(low[task]);
                }
            }
        }
        components
    }

    /// The shortest cycle through the first task of a group, by breadth-first search.
    fn cycle_within(&self, component: &[usize]) -> Option<Cycle> {
        let first = *component.iter().min()?;
        let members: std::collections::HashSet<usize> = component.iter().copied().collect();
        let mut came_from = std::collections::HashMap::new();
        let mut queue = VecDeque::from([first]);
        while let Some(task) = queue.pop_front() {
            for parent in self.parents(task) {
                if parent == first && task != first {
                    let mut tasks = vec![task];
                    let mut at = task;
                    while let Some(&before) = came_from.get(&at) {
                        tasks.push(before);
                        at = before;
                    }
                    tasks.reverse();
                    let own = &self.targets[self.starts[first]..self.starts[first + 1]];
                    let second = tasks[1];
                    let dependency = own.iter().position(|&target| target as usize == second)?;
                    return Some(Cycle { tasks, dependency });
                }
                let is_new = members.contains(&parent)
                    && parent != first
                    && !came_from.contains_key(&parent);
                if is_new {
                    came_from.insert(parent, task);
                    queue.push_back(parent);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(parents: &[&[u32]]) -> Graph {
        let mut graph = Graph::with_capacity(parents.len());
        for list in parents {
            graph.push(list.iter().map(|&parent| Some(parent)));
        }
        graph
    }

    #[test]
    fn a_graph_without_cycles_has_none() {
        assert_eq!(graph(&[]).cycles(), []);
        assert_eq!(graph(&[&[], &[0], &[0, 1], &[2, 0]]).cycles(), []);
        assert_eq!(graph(&[&[1], &[2], &[]]).cycles(), []);
    }

    #[test]
    fn each_group_gives_its_shortest_cycle_through_its_first_task() {
        // 0 -> 1 -> 2 -> 0 with the short cut 1 -> 0; 3 <-> 4; 5 merely hangs on both.
        let cycles = graph(&[&[5, 1], &[2, 0], &[0], &[4], &[3], &[]]).cycles();
        let expected = [
            Cycle {
                tasks: vec![0, 1],
                dependency: 1,
            },
            Cycle {
                tasks: vec![3, 4],
                dependency: 0,
            },
        ];
        assert_eq!(cycles, expected);
    }

    #[test]
    fn a_dependency_on_itself_is_no_cycle_of_several() {
        assert_eq!(graph(&[&[0], &[0, 1]]).cycles(), []);
    }

    #[test]
    fn a_cycle_of_all_tasks_needs_no_deep_stack() {
        let count = 200_000_u32;
        let mut graph = Graph::with_capacity(count as usize);
        for task in 0..count {
            graph.push(std::iter::once(Some((task + 1) % count)));
        }
        let cycles = graph.cycles();
        assert_eq!(cycles.len(), 1);
        assert_eq!(cycles[0].tasks.len(), count as usize);
    }
}
