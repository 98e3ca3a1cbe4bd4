//! What can only be said of tasks together: names, dependencies, policies, conditions, cycles.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::fields::similar;
use super::graph::{Cycle, Graph};
use super::problem::ProblemCode::{
    self, DuplicateDependency, DuplicateTask, InvalidCondition, InvalidValue, SelfDependency,
    UnknownDependency,
};
use super::read::DraftTask;
use super::report::{Place, Report, quoted};
use crate::workflow::DepPolicy;
use crate::workflow::condition::Condition;

/// Tasks of a workflow up to which a similar name is looked for when a dependency is unknown.
const SIMILAR_TASKS_MAX: usize = 1_000;

/// Tasks of a cycle that are spelt out; people who see ten know where to look.
const CYCLE_TASKS_SHOWN: usize = 10;

/// Checks the tasks against each other, and returns who waits for whom.
pub(super) fn tasks(tasks: &[DraftTask<'_>], report: &mut Report) -> Graph {
    let list = Place::ROOT.key("tasks");
    let mut index_of: HashMap<&str, u32> = HashMap::with_capacity(tasks.len());
    let mut graph = Graph::with_capacity(tasks.len());
    let mut first_of_name = vec![true; tasks.len()];
    for ((task, number), is_first) in tasks.iter().zip(0_u32..).zip(&mut first_of_name) {
        let Some(name) = task.name else { continue };
        match index_of.entry(name) {
            Entry::Vacant(vacant) => _ = vacant.insert(number),
            Entry::Occupied(_) => *is_first = false,
        }
    }
    let mut checker = Checker {
        tasks,
        index_of,
        last_seen_by: vec![usize::MAX; tasks.len()],
    };
    for (index, task) in tasks.iter().enumerate() {
        let item = list.index(index).of_task(task.name);
        if let (Some(name), false) = (task.name, first_of_name[index]) {
            report.add(DuplicateTask, &item.key("name"), || {
                let first = checker.index_of.get(name).copied().unwrap_or(0);
                format!(
                    "this name is taken by task number {}; choose another",
                    first + 1
                )
            });
        }
        graph.push(checker.dependencies(index, &item, report).into_iter());
        check_policy(task, &item, report);
        check_condition(task, &item, report);
    }
    let mut cycles = Report::default();
    for cycle in graph.cycles() {
        add_cycle(&cycle, tasks, &mut cycles);
    }
    report.absorb(cycles);
    graph
}

struct Checker<'t, 'n> {
    tasks: &'t [DraftTask<'n>],
    index_of: HashMap<&'n str, u32>,
    /// For each task, the last one that was found to depend on it.
    last_seen_by: Vec<usize>,
}

impl Checker<'_, '_> {
    /// The dependencies of a task as numbers.
    fn dependencies(
        &mut self,
        index: usize,
        item: &Place<'_>,
        report: &mut Report,
    ) -> Vec<Option<u32>> {
        let task = &self.tasks[index];
        let list = item.key("depends_on");
        let mut numbers = Vec::with_capacity(task.depends_on.len());
        for (position, dependency) in task.depends_on.iter().enumerate() {
            let at = list.index(position);
            let Some(dependency) = *dependency else {
                numbers.push(None);
                continue;
            };
            let number = self.index_of.get(dependency).copied();
            numbers.push(number);
            let Some(parent) = number.map(|number| number as usize) else {
                report.add(UnknownDependency, &at, || self.unknown(dependency));
                continue;
            };
            if task.name == Some(dependency) {
                report.add(SelfDependency, &at, || {
                    "a task cannot wait for itself; remove this dependency".to_owned()
                });
            }
            if self.last_seen_by[parent] == index {
                report.add(DuplicateDependency, &at, || {
                    format!(
                        "the dependency {} is listed twice; keep one",
                        quoted(dependency)
                    )
                });
            }
            self.last_seen_by[parent] = index;
        }
        numbers
    }

    fn unknown(&self, dependency: &str) -> String {
        let name = quoted(dependency);
        let names = self.tasks.iter().filter_map(|task| task.name);
        let hint = match similar(dependency, names.take(SIMILAR_TASKS_MAX)) {
            Some(similar) => format!("did you mean {}?", quoted(similar)),
            None => "add that task or remove the dependency".to_owned(),
        };
        format!("the dependency {name} is not the name of a task; {hint}")
    }
}

fn check_policy(task: &DraftTask<'_>, item: &Place<'_>, report: &mut Report) {
    let count = task.depends_on.len();
    if let DepPolicy::AtLeast(needed) = task.dep_policy
        && needed as usize > count
    {
        report.add(InvalidValue, &item.key("dep_policy"), || {
            format!("`dep_policy` asks for {needed} dependencies, but there are {count}")
        });
    }
}

fn check_condition(task: &DraftTask<'_>, item: &Place<'_>, report: &mut Report) {
    let Some(text) = task.condition else { return };
    let place = item.key("condition");
    let mut add = |code: ProblemCode, message: String| report.add(code, &place, || message);
    if task.depends_on.is_empty() {
        let message = "a `condition` needs `depends_on`: it reads the outputs of dependencies";
        add(InvalidCondition, message.to_owned());
        return;
    }
    match Condition::parse(text) {
        Err(error) => add(InvalidCondition, format!("`condition`: {error}")),
        Ok(condition) => {
            let dependencies: Vec<&str> = task.depends_on.iter().copied().flatten().collect();
            for message in condition
                .check_references(&dependencies)
                .err()
                .unwrap_or_default()
            {
                add(InvalidCondition, format!("`condition`: {message}"));
            }
        }
    }
}

fn add_cycle(cycle: &Cycle, tasks: &[DraftTask<'_>], report: &mut Report) {
    let first = cycle.tasks[0];
    let list = Place::ROOT.key("tasks");
    let task = list.index(first).of_task(tasks[first].name);
    let depends_on = task.key("depends_on");
    report.add(
        ProblemCode::Cycle,
        &depends_on.index(cycle.dependency),
        || {
            let name = |&index: &usize| tasks[index].name.unwrap_or("?").to_owned();
            let mut path: Vec<String> = cycle
                .tasks
                .iter()
                .take(CYCLE_TASKS_SHOWN)
                .map(name)
                .collect();
            if cycle.tasks.len() > CYCLE_TASKS_SHOWN {
                path.push(format!(
                    "... {} more ...",
                    cycle.tasks.len() - CYCLE_TASKS_SHOWN
                ));
            }
            path.push(name(&first));
            format!(
                "tasks wait for each other: {}; remove one of these",
                path.join(" -> ")
            )
        },
    );
}
