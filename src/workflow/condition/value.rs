//! The values of conditions, and Python's meaning of truth, equality, order and membership.
//!
//! Values borrow from the condition and its inputs, so reading a large output copies nothing.
//! Comparing recurses as deep as the shallower value nests: literals are bounded by the parser,
//! outputs by the JSON reader (128 levels).

use std::cmp::Ordering;
use std::rc::Rc;

use serde_json::{Map, Value as Json};

/// A value while a condition is evaluated.
#[derive(Debug, Clone)]
pub(super) enum Value<'a> {
    None,
    Bool(bool),
    Int(i128),
    /// Never NaN: neither JSON nor the literals have one.
    Float(f64),
    Text(&'a str),
    List(Items<'a>),
    Dict(&'a Map<String, Json>),
}

/// The items of a list: of an output, or written in the condition.
#[derive(Debug, Clone)]
pub(super) enum Items<'a> {
    Output(&'a [Json]),
    Written(Rc<[Value<'a>]>),
}

/// Two values an operator does not take; the caller knows the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TypeMismatch {
    pub(super) left: &'static str,
    pub(super) right: &'static str,
}

impl<'a> Items<'a> {
    fn len(&self) -> usize {
        match self {
            Self::Output(items) => items.len(),
            Self::Written(items) => items.len(),
        }
    }

    fn get(&self, index: usize) -> Option<Value<'a>> {
        match self {
            Self::Output(items) => items.get(index).map(Value::of),
            Self::Written(items) => items.get(index).cloned(),
        }
    }

    fn iter(&self) -> impl Iterator<Item = Value<'a>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}

impl<'a> Value<'a> {
    /// The view of a JSON value. Whole numbers within 64 bits are exact; JSON's larger ones were
    /// read as floats.
    pub(super) fn of(json: &'a Json) -> Self {
        match json {
            Json::Null => Self::None,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => match (number.as_i128(), number.as_f64()) {
                (Some(int), _) => Self::Int(int),
                (None, Some(float)) => Self::Float(float),
                (None, None) => Self::None,
            },
            Json::String(text) => Self::Text(text),
            Json::Array(items) => Self::List(Items::Output(items)),
            Json::Object(fields) => Self::Dict(fields),
        }
    }

    /// The name of the type in error texts, which is Python's.
    pub(super) const fn type_name(&self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::Text(_) => "str",
            Self::List(_) => "list",
            Self::Dict(_) => "dict",
        }
    }

    /// Whether it counts as true.
    pub(super) fn is_true(&self) -> bool {
        match self {
            Self::None => false,
            Self::Bool(value) => *value,
            Self::Int(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::List(items) => items.len() > 0,
            Self::Dict(fields) => !fields.is_empty(),
        }
    }

    /// `self == other`; defined for all values.
    pub(super) fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) => true,
            (Self::Text(left), Self::Text(right)) => left == right,
            (Self::List(left), Self::List(right)) => {
                left.len() == right.len()
                    && left.iter().zip(right.iter()).all(|(l, r)| l.equals(&r))
            }
            (Self::Dict(left), Self::Dict(right)) => {
                left.len() == right.len()
                    && left.iter().all(|(key, value)| {
                        right
                            .get(key)
                            .is_some_and(|other| Self::of(value).equals(&Self::of(other)))
                    })
            }
            _ => self.compare_numbers(other) == Some(Ordering::Equal),
        }
    }

    /// The order of two numbers, two texts or two lists. Nothing else has one.
    pub(super) fn order(&self, other: &Self) -> Result<Ordering, TypeMismatch> {
        match (self, other) {
            (Self::Text(left), Self::Text(right)) => Ok(left.cmp(right)),
            (Self::List(left), Self::List(right)) => {
                // Equal items need no order: `[None, 1] < [None, 2]` holds.
                let difference = left.iter().zip(right.iter()).find(|(l, r)| !l.equals(r));
                match difference {
                    Some((left, right)) => left.order(&right),
                    None => Ok(left.len().cmp(&right.len())),
                }
            }
            _ => self
                .compare_numbers(other)
                .ok_or_else(|| self.mismatch(other)),
        }
    }

    /// `item in self`.
    pub(super) fn contains(&self, item: &Self) -> Result<bool, TypeMismatch> {
        match (self, item) {
            (Self::List(items), _) => Ok(items.iter().any(|own| own.equals(item))),
            (Self::Text(text), Self::Text(part)) => Ok(text.contains(part)),
            (Self::Dict(fields), Self::Text(key)) => Ok(fields.contains_key(*key)),
            // No other key can be there, but Python refuses even to look for these two.
            (Self::Dict(_), Self::List(_) | Self::Dict(_)) => Err(item.mismatch(self)),
            (Self::Dict(_), _) => Ok(false),
            _ => Err(item.mismatch(self)),
        }
    }

    const fn mismatch(&self, right: &Self) -> TypeMismatch {
        TypeMismatch {
            left: self.type_name(),
            right: right.type_name(),
        }
    }

    /// The order of two numbers (`True` is 1, `False` is 0); none if one of them is no number.
    fn compare_numbers(&self, other: &Self) -> Option<Ordering> {
        match (self.as_number()?, other.as_number()?) {
            (Number::Int(left), Number::Int(right)) => Some(left.cmp(&right)),
            (Number::Float(left), Number::Float(right)) => left.partial_cmp(&right),
            (Number::Int(left), Number::Float(right)) => Some(compare_exactly(left, right)),
            (Number::Float(left), Number::Int(right)) => {
                Some(compare_exactly(right, left).reverse())
            }
        }
    }

    fn as_number(&self) -> Option<Number> {
        match self {
            Self::Bool(value) => Some(Number::Int(i128::from(*value))),
            Self::Int(value) => Some(Number::Int(*value)),
            Self::Float(value) => Some(Number::Float(*value)),
            _ => None,
        }
    }
}

#[derive(Clone, Copy)]
enum Number {
    Int(i128),
    Float(f64),
}

/// Compares as if both had infinite precision: 2**53 + 1 is not 2.0**53.
fn compare_exactly(int: i128, float: f64) -> Ordering {
    /// 2**127, the first float beyond every `i128`.
    const BEYOND: f64 = 170_141_183_460_469_231_731_687_303_715_884_105_728.0;
    if float >= BEYOND {
        return Ordering::Less;
    }
    if float < -BEYOND {
        return Ordering::Greater;
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "within the range of i128, just checked, and the fraction is compared below"
    )]
    let whole = float.trunc() as i128;
    int.cmp(&whole).then_with(|| {
        let fraction = float - float.trunc();
        0.0_f64.partial_cmp(&fraction).unwrap_or(Ordering::Equal)
    })
}
