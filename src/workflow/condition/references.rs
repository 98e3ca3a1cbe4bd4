//! Which inputs a condition reads.

use std::collections::HashSet;

use super::ast::{Expression, Path, Root};
use super::glob::Glob;

/// One mention of inputs.
#[derive(Debug, Clone, Copy)]
enum Reference<'a> {
    Input(&'a str),
    Matching(&'a Glob),
}

/// Checks that at least one input is read and that each is one of `dependencies`.
pub(super) fn check(expression: &Expression, dependencies: &[&str]) -> Result<(), Vec<String>> {
    let references = collect(expression);
    if references.is_empty() {
        return Err(vec![
            "the condition reads no input, so its value never changes: read the output of a \
             dependency, as in inputs.task.field"
                .to_owned(),
        ]);
    }
    let dependencies: HashSet<&str> = dependencies.iter().copied().collect();
    let mut named = HashSet::new();
    let problems: Vec<String> = references
        .iter()
        .filter_map(|reference| match reference {
            Reference::Input(name) => Some(*name),
            Reference::Matching(_) => None,
        })
        .filter(|name| !dependencies.contains(name) && named.insert(*name))
        .map(|name| {
            format!("the condition reads inputs[{name:?}], which is not in depends_on: add it there, or correct the name")
        })
        .collect();
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}

/// Whether the input `name` is read.
pub(super) fn reads(expression: &Expression, name: &str) -> bool {
    collect(expression).iter().any(|reference| match reference {
        Reference::Input(input) => *input == name,
        Reference::Matching(glob) => glob.matches(name),
    })
}

fn collect(expression: &Expression) -> Vec<Reference<'_>> {
    let mut references = Vec::new();
    visit(expression, &mut references);
    references
}

fn visit<'a>(expression: &'a Expression, references: &mut Vec<Reference<'a>>) {
    match expression {
        // What the aggregate around it stands at was noted with the aggregate.
        Expression::Literal(_)
        | Expression::Path(Path {
            root: Root::Each, ..
        }) => {}
        Expression::Path(Path {
            root: Root::Input(name),
            ..
        }) => references.push(Reference::Input(name)),
        Expression::Not(operand) => visit(operand, references),
        Expression::List(operands) | Expression::And(operands) | Expression::Or(operands) => {
            for operand in operands {
                visit(operand, references);
            }
        }
        Expression::Comparison { first, rest } => {
            visit(first, references);
            for link in rest {
                visit(&link.operand, references);
            }
        }
        Expression::Aggregate(aggregate) => {
            references.push(Reference::Matching(&aggregate.glob));
            visit(&aggregate.each, references);
        }
    }
}
