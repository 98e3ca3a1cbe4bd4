//! How filters decide, for the backends that evaluate them in this process.

use std::cmp::Ordering;

use super::{Compare, EntityKey, Filter, Operator, Properties, Value};

impl Filter {
    /// Whether a row is among those the filter asks for.
    pub(crate) fn matches(&self, key: &EntityKey, properties: &Properties) -> bool {
        match self {
            Self::Everything => true,
            Self::Compare(compare) => compare.matches(key, properties),
            Self::And(all) => all.iter().all(|filter| filter.matches(key, properties)),
            Self::Or(any) => any.iter().any(|filter| filter.matches(key, properties)),
        }
    }

    /// Bounds, both inclusive, on a key that every matching row keeps to. They may be wider than
    /// the filter: what lies within still has to be matched.
    pub(crate) fn bounds(&self, key: Key) -> Bounds<'_> {
        match self {
            Self::Compare(compare) => compare.bounds(key),
            Self::And(all) => all.iter().fold(Bounds::default(), |bounds, filter| {
                bounds.intersect(filter.bounds(key))
            }),
            Self::Everything | Self::Or(_) => Bounds::default(),
        }
    }

    /// The value that a property of every matching row must equal, if there is one.
    pub(crate) fn required(&self, property: &str) -> Option<&Value> {
        match self {
            Self::Compare(compare) => (compare.operator == Operator::Eq
                && compare.property == property)
                .then_some(&compare.value),
            Self::And(all) => all.iter().find_map(|filter| filter.required(property)),
            Self::Everything | Self::Or(_) => None,
        }
    }
}

/// One of the two parts of a row's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Partition,
    Row,
}

impl Key {
    /// The name by which filters compare it.
    const fn name(self) -> &'static str {
        match self {
            Self::Partition => "PartitionKey",
            Self::Row => "RowKey",
        }
    }
}

/// The least and the greatest text a key can be; `None` where there is no bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Bounds<'a> {
    pub(crate) least: Option<&'a str>,
    pub(crate) greatest: Option<&'a str>,
}

impl Bounds<'_> {
    fn intersect(self, other: Self) -> Self {
        Self {
            // `None` is the smallest option: right for the lower bound, wrong for the upper one.
            least: self.least.max(other.least),
            greatest: match (self.greatest, other.greatest) {
                (Some(one), Some(another)) => Some(one.min(another)),
                (one, another) => one.or(another),
            },
        }
    }
}

impl Compare {
    fn matches(&self, key: &EntityKey, properties: &Properties) -> bool {
        let ordering = match (self.property.as_str(), &self.value) {
            ("PartitionKey", Value::String(text)) => Some(key.partition.cmp(text)),
            ("RowKey", Value::String(text)) => Some(key.row.cmp(text)),
            (name, value) => properties.get(name).and_then(|found| compare(found, value)),
        };
        ordering.is_some_and(|ordering| self.operator.accepts(ordering))
    }

    fn bounds(&self, key: Key) -> Bounds<'_> {
        let Value::String(text) = &self.value else {
            return Bounds::default();
        };
        if self.property != key.name() {
            return Bounds::default();
        }
        let text = Some(text.as_str());
        let (least, greatest) = match self.operator {
            Operator::Eq => (text, text),
            Operator::Gt | Operator::Ge => (text, None),
            Operator::Lt | Operator::Le => (None, text),
            Operator::Ne => (None, None),
        };
        Bounds { least, greatest }
    }
}

impl Operator {
    const fn accepts(self, ordering: Ordering) -> bool {
        match self {
            Self::Eq => ordering.is_eq(),
            Self::Ne => ordering.is_ne(),
            Self::Lt => ordering.is_lt(),
            Self::Le => ordering.is_le(),
            Self::Gt => ordering.is_gt(),
            Self::Ge => ordering.is_ge(),
        }
    }
}

/// How two values of one type compare; values of different types do not.
fn compare(one: &Value, another: &Value) -> Option<Ordering> {
    match (one, another) {
        (Value::String(one), Value::String(another)) => Some(one.cmp(another)),
        (Value::Bool(one), Value::Bool(another)) => Some(one.cmp(another)),
        (Value::Int32(one), Value::Int32(another)) => Some(one.cmp(another)),
        (Value::DateTime(one), Value::DateTime(another)) => Some(one.cmp(another)),
        (Value::String(_) | Value::Bool(_) | Value::Int32(_) | Value::DateTime(_), _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(operator: Operator, text: &str) -> Filter {
        Filter::compare("RowKey", operator, Value::String(text.to_owned()))
    }

    #[test]
    fn bounds_tighten_in_a_conjunction() {
        let filter = Filter::And(vec![
            row(Operator::Ge, "b"),
            row(Operator::Gt, "c"),
            row(Operator::Le, "y"),
            row(Operator::Lt, "x"),
            Filter::eq("state", Value::Bool(true)),
        ]);
        let bounds = filter.bounds(Key::Row);
        assert_eq!((bounds.least, bounds.greatest), (Some("c"), Some("x")));
        assert_eq!(filter.bounds(Key::Partition), Bounds::default());
    }

    #[test]
    fn an_alternative_bounds_nothing() {
        let filter = Filter::Or(vec![row(Operator::Eq, "b"), row(Operator::Eq, "d")]);
        assert_eq!(filter.bounds(Key::Row), Bounds::default());
    }

    #[test]
    fn an_empty_or_matches_nothing_and_an_empty_and_everything() {
        let key = EntityKey {
            partition: "p".to_owned(),
            row: "r".to_owned(),
        };
        assert!(!Filter::Or(vec![]).matches(&key, &Properties::new()));
        assert!(Filter::And(vec![]).matches(&key, &Properties::new()));
    }
}
