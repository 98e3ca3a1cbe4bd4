//! The shape of the rewrite, and what it must keep whatever the graph. The fixture of the wire
//! format is replayed in `tests/fixtures_definition.rs`.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn definition(yaml_tasks: &[&str]) -> Definition {
    let text = format!("name: w\ntasks:\n- {}\n", yaml_tasks.join("\n- "));
    Definition::from_text(text.as_bytes()).unwrap_or_else(|problems| panic!("{problems}\n{text}"))
}

/// The dependencies of each task.
fn edges(definition: &Definition) -> BTreeMap<&str, Vec<&str>> {
    definition
        .tasks
        .iter()
        .map(|task| {
            (
                task.name.as_str(),
                task.depends_on.iter().map(TaskName::as_str).collect(),
            )
        })
        .collect()
}

#[test]
fn narrow_workflows_stay_as_they_are() {
    let before = definition(&["{name: a}", "{name: b}", "{name: t, depends_on: [a, b]}"]);
    let after = limit_fan_in(before.clone(), 2).unwrap();
    assert_eq!(after.to_json(), before.to_json());
}

#[test]
fn a_bound_below_two_is_refused() {
    for bound in [0, 1] {
        let problems = limit_fan_in(definition(&["{name: a}"]), bound).unwrap_err();
        assert_eq!(problems.0[0].code, ProblemCode::InvalidValue);
    }
}

/// c waits for e, and is listed before it: batches of two in that order would let e wait for c.
#[test]
fn batches_follow_the_graph_rather_than_the_list() {
    let after = limit_fan_in(
        definition(&[
            "{name: a}",
            "{name: c, depends_on: [e]}",
            "{name: d}",
            "{name: e}",
            "{name: t, depends_on: [a, c, d, e]}",
        ]),
        2,
    )
    .unwrap();
    let edges = edges(&after);
    assert_eq!(edges["__merge_t_0"], ["a", "d"]);
    assert_eq!(edges["__merge_t_1"], ["e", "c", "__merge_t_0"]);
    assert_eq!(edges["e"], ["__merge_t_0"]);
    assert_eq!(edges["c"], ["e", "__merge_t_0"]);
    assert_eq!(edges["t"], ["__merge_t_1"]);
}

#[test]
fn targets_that_no_merge_can_stand_for_keep_their_dependencies() {
    let after = limit_fan_in(
        definition(&[
            "{name: a}",
            "{name: b}",
            "{name: c}",
            "{name: any, depends_on: [a, b, c], dep_policy: any}",
            "{name: two, depends_on: [a, b, c], dep_policy: 2}",
            "{name: settled, depends_on: [a, b, c], dep_policy: all_settled}",
            "{name: reads, depends_on: [a, b, c], condition: inputs.a.x > 1}",
        ]),
        2,
    )
    .unwrap();
    assert_eq!(after.tasks.len(), 7);
    assert!(edges(&after).values().all(|parents| parents.len() != 1));
}

#[test]
fn members_whose_meaning_would_change_are_not_held_back() {
    let after = limit_fan_in(
        definition(&[
            "{name: r}",
            "{name: s}",
            "{name: a, depends_on: [r]}",
            "{name: b, depends_on: [r]}",
            "{name: any, depends_on: [r, s], dep_policy: any}",
            "{name: globs, depends_on: [r], condition: any(inputs.*.x)}",
            "{name: more, depends_on: [r]}",
            "{name: full, depends_on: [r, s]}",
            "{name: t, depends_on: [a, b, any, globs, more, full]}",
        ]),
        2,
    )
    .unwrap();
    let edges = edges(&after);
    assert_eq!(edges["any"], ["r", "s"]);
    assert_eq!(edges["globs"], ["r"]);
    assert_eq!(edges["more"], ["r", "__merge_t_1"]);
    assert_eq!(edges["full"], ["r", "s", "__merge_t_1"]);
}

#[test]
fn a_name_without_room_for_its_merges_is_refused() {
    let name = "x".repeat(250);
    let target = format!("{{name: {name}, depends_on: [a, b, c]}}");
    let definition = definition(&["{name: a}", "{name: b}", "{name: c}", &target]);
    let problems = limit_fan_in(definition, 2).unwrap_err();
    assert_eq!(problems.0[0].code, ProblemCode::InvalidName);
    assert_eq!(problems.0[0].pointer, "/tasks/3/name");
}

#[test]
fn more_tasks_than_a_workflow_may_have_are_refused() {
    let mut tasks: Vec<String> = (0..TASKS_MAX - 1)
        .map(|n| format!(r#"{{"name":"{n}"}}"#))
        .collect();
    let parents: Vec<String> = (0..TASKS_MAX - 1).map(|n| format!("\"{n}\"")).collect();
    tasks.push(format!(
        r#"{{"name":"t","depends_on":[{}]}}"#,
        parents.join(",")
    ));
    let text = format!(r#"{{"name":"w","tasks":[{}]}}"#, tasks.join(","));
    let definition = Definition::from_json(&text).unwrap();
    let problems = limit_fan_in(definition, 1_000).unwrap_err();
    assert_eq!(problems.0[0].code, ProblemCode::LimitExceeded);
}

/// All tasks that each task waits for, directly or not; panics where there is a cycle.
fn ancestors(definition: &Definition) -> BTreeMap<&str, BTreeSet<&str>> {
    let edges = edges(definition);
    let mut ancestors: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    while ancestors.len() < edges.len() {
        let before = ancestors.len();
        for (task, parents) in &edges {
            if ancestors.contains_key(task) || !parents.iter().all(|p| ancestors.contains_key(p)) {
                continue;
            }
            let mut all: BTreeSet<&str> = parents.iter().copied().collect();
            all.extend(
                parents
                    .iter()
                    .flat_map(|parent| ancestors[parent].iter().copied()),
            );
            ancestors.insert(task, all);
        }
        assert!(ancestors.len() > before, "a cycle among {edges:?}");
    }
    ancestors
}

/// Random graphs, listed in random order, with several wide tasks that share parents.
fn graph() -> impl Strategy<Value = (Definition, usize)> {
    let task = (
        vec(any::<prop::sample::Index>(), 0..14),
        0..10_u8,
        any::<u32>(),
    );
    (vec(task, 2..24), 2..5_usize).prop_map(|(tasks, max_fan_in)| {
        let mut listed: Vec<(u32, String)> = Vec::new();
        for (number, (parents, kind, order)) in tasks.into_iter().enumerate() {
            let parents: BTreeSet<String> = parents
                .iter()
                .filter(|_| number > 0)
                .map(|parent| format!("t{}", parent.index(number)))
                .collect();
            let parents: Vec<String> = parents.into_iter().collect();
            let extra = match kind {
                0 => ", dep_policy: any",
                1 => ", dep_policy: all_settled",
                2 if !parents.is_empty() => ", condition: 'count(inputs.*.x) > 1'",
                _ => "",
            };
            let parents = parents.join(", ");
            listed.push((
                order,
                format!("{{name: t{number}, depends_on: [{parents}]{extra}}}"),
            ));
        }
        listed.sort();
        let lines: Vec<&str> = listed.iter().map(|(_, line)| line.as_str()).collect();
        (definition(&lines), max_fan_in)
    })
}

proptest! {
    #[test]
    fn the_rewrite_keeps_the_order_of_tasks_and_the_bound((before, max_fan_in) in graph()) {
        let after = limit_fan_in(before.clone(), max_fan_in).unwrap();

        let names: HashSet<&str> = after.tasks.iter().map(|task| task.name.as_str()).collect();
        prop_assert_eq!(names.len(), after.tasks.len());
        let (old, new) = (ancestors(&before), ancestors(&after));
        for (task, expected) in &old {
            prop_assert!(new[task].is_superset(expected), "{task} no longer waits for all");
        }
        for task in &after.tasks {
            let is_kept = task.dep_policy != DepPolicy::All || task.condition.is_some();
            let bound = if task.name.starts_with("__merge_") || !is_kept { max_fan_in + 1 } else { usize::MAX };
            prop_assert!(task.depends_on.len() <= bound, "{} waits for {:?}", task.name, task.depends_on);
            let unique: HashSet<&TaskName> = task.depends_on.iter().collect();
            prop_assert_eq!(unique.len(), task.depends_on.len());
        }
    }

    #[test]
    fn tasks_with_policies_and_conditions_are_untouched_where_they_could_tell((before, max_fan_in) in graph()) {
        let after = limit_fan_in(before.clone(), max_fan_in).unwrap();
        for (old, new) in before.tasks.iter().zip(&after.tasks) {
            prop_assert_eq!(&old.name, &new.name);
            let could_tell = old.dep_policy != DepPolicy::All || old.condition.is_some();
            if could_tell && !old.depends_on.is_empty() {
                prop_assert_eq!(&old.depends_on, &new.depends_on);
            }
        }
    }
}
