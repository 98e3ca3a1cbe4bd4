//! Computes the value of an expression.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::EvaluationError;
use super::ast::{
    Aggregate, AggregateKind, Comparator, Expression, Link, Literal, Path, Root, Step,
};
use super::value::{Items, TypeMismatch, Value};

/// Whether the expression is true of the inputs.
pub(super) fn evaluate(
    expression: &Expression,
    inputs: &BTreeMap<&str, Json>,
) -> Result<bool, EvaluationError> {
    let scope = Scope { inputs, each: None };
    scope.value(expression).map(|value| value.is_true())
}

/// What names stand for.
#[derive(Clone, Copy)]
struct Scope<'a> {
    inputs: &'a BTreeMap<&'a str, Json>,
    /// The input the aggregate around stands at.
    each: Option<&'a Json>,
}

impl<'a> Scope<'a> {
    fn value(self, expression: &'a Expression) -> Result<Value<'a>, EvaluationError> {
        Ok(match expression {
            Expression::Literal(literal) => constant(literal),
            Expression::List(items) => Value::List(self.items(items)?),
            Expression::Path(path) => self.path(path),
            Expression::Not(operand) => Value::Bool(!self.value(operand)?.is_true()),
            Expression::And(operands) => self.first_with(false, operands)?,
            Expression::Or(operands) => self.first_with(true, operands)?,
            Expression::Comparison { first, rest } => Value::Bool(self.comparison(first, rest)?),
            Expression::Aggregate(aggregate) => self.aggregate(aggregate)?,
        })
    }

    fn items(self, items: &'a [Expression]) -> Result<Items<'a>, EvaluationError> {
        let items: Result<_, _> = items.iter().map(|item| self.value(item)).collect();
        Ok(Items::Written(items?))
    }

    fn path(self, path: &'a Path) -> Value<'a> {
        let root = match &path.root {
            Root::Input(name) => self.inputs.get(name.as_str()),
            Root::Each => self.each,
        };
        path.steps
            .iter()
            .fold(root, |value, step| enter(value?, step))
            .map_or(Value::None, Value::of)
    }

    /// The first operand whose truth is `decisive`, or else the last; later ones are not looked
    /// at, so `inputs.a.n != None and inputs.a.n > 1` is safe.
    fn first_with(
        self,
        decisive: bool,
        operands: &'a [Expression],
    ) -> Result<Value<'a>, EvaluationError> {
        let mut value = Value::None;
        for operand in operands {
            value = self.value(operand)?;
            if value.is_true() == decisive {
                break;
            }
        }
        Ok(value)
    }

    fn comparison(self, first: &'a Expression, rest: &'a [Link]) -> Result<bool, EvaluationError> {
        let mut left = self.value(first)?;
        for link in rest {
            let right = self.value(&link.operand)?;
            let holds = compare(link.comparator, &left, &right).map_err(|types| {
                EvaluationError(format!(
                    "'{}' at character {} does not work between {} and {}",
                    link.comparator, link.position, types.left, types.right
                ))
            })?;
            if !holds {
                return Ok(false);
            }
            left = right;
        }
        Ok(true)
    }

    fn aggregate(self, aggregate: &'a Aggregate) -> Result<Value<'a>, EvaluationError> {
        let (mut matching, mut holding) = (0_i128, 0_i128);
        for (name, input) in self.inputs {
            if !aggregate.glob.matches(name) {
                continue;
            }
            let scope = Self {
                each: Some(input),
                ..self
            };
            let value = scope
                .value(&aggregate.each)
                .map_err(|error| EvaluationError(format!("for inputs[{name:?}]: {error}")))?;
            matching += 1;
            holding += i128::from(value.is_true());
        }
        Ok(match aggregate.kind {
            AggregateKind::All => Value::Bool(holding == matching),
            AggregateKind::Any => Value::Bool(holding > 0),
            AggregateKind::Count => Value::Int(holding),
            AggregateKind::AlmostAll(exceptions) => Value::Bool(matching - holding <= exceptions),
        })
    }
}

fn constant(literal: &Literal) -> Value<'_> {
    match literal {
        Literal::None => Value::None,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Int(value) => Value::Int(*value),
        Literal::Float(value) => Value::Float(*value),
        Literal::Text(text) => Value::Text(text),
    }
}

fn enter<'a>(value: &'a Json, step: &Step) -> Option<&'a Json> {
    match (value, step) {
        (Json::Object(fields), Step::Field(name)) => fields.get(name),
        (Json::Array(items), Step::Index(index)) if *index < 0 => {
            let from_end = usize::try_from(index.unsigned_abs()).ok()?;
            items.get(items.len().checked_sub(from_end)?)
        }
        (Json::Array(items), Step::Index(index)) => items.get(usize::try_from(*index).ok()?),
        _ => None,
    }
}

fn compare(
    comparator: Comparator,
    left: &Value<'_>,
    right: &Value<'_>,
) -> Result<bool, TypeMismatch> {
    match comparator {
        Comparator::Equal => Ok(left.equals(right)),
        Comparator::NotEqual => Ok(!left.equals(right)),
        Comparator::Less => left.order(right).map(Ordering::is_lt),
        Comparator::LessOrEqual => left.order(right).map(Ordering::is_le),
        Comparator::Greater => left.order(right).map(Ordering::is_gt),
        Comparator::GreaterOrEqual => left.order(right).map(Ordering::is_ge),
        Comparator::In => right.contains(left),
        Comparator::NotIn => right.contains(left).map(|contains| !contains),
    }
}
