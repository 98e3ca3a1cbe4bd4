//! JSON text to a tree.
//!
//! Only what a definition is made of is opened: a hundred thousand tasks are read in one pass,
//! their `kwargs` stay text, and whatever does not belong there is skipped, however large.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::document::{Entry, Kind, Mark, Node};
use super::problem::{Problem, ProblemCode};
use crate::limits::{DEFINITION_DEPTH_MAX, DEFINITION_NODES_MAX, MESSAGE_BYTES_MAX, TASKS_MAX};

/// Why a text is not a JSON tree.
pub(super) struct JsonError {
    pub(super) problem: Problem,
    /// Whether the same text may be YAML. Text that merely ends too early may not: both
    /// languages want the same closing brackets.
    pub(super) may_be_yaml: bool,
}

/// Reads a definition's text.
pub(super) fn parse(text: &str) -> Result<Node<'_>, JsonError> {
    let budget = Budget::new(DEFINITION_NODES_MAX);
    read(text, Shape::Workflow, &budget).map_err(|error| {
        let exceeded = budget.exceeded.take();
        let (code, message) = match exceeded {
            Some(limit) => (ProblemCode::LimitExceeded, limit),
            None => (ProblemCode::Syntax, without_position(&error)),
        };
        let line_text = text.lines().nth(error.line().saturating_sub(1));
        let column = column_of(line_text.unwrap_or(""), error.column());
        JsonError {
            problem: Problem::of_document(code, message).at((error.line().max(1), column)),
            may_be_yaml: code == ProblemCode::Syntax && !error.is_eof(),
        }
    })
}

/// Reads one task's `kwargs`, all of it.
///
/// # Errors
/// The kind of problem, and its message.
pub(super) fn parse_kwargs(raw: &RawValue) -> Result<Node<'_>, (ProblemCode, String)> {
    // Each node takes a byte of the message at least, so more of them never fit one.
    let budget = Budget::new(MESSAGE_BYTES_MAX);
    let depth = KWARGS_DEPTH;
    read(raw.get(), Shape::Whole { depth }, &budget).map_err(|error| match budget.exceeded.take() {
        Some(limit) => (ProblemCode::LimitExceeded, limit),
        None => (ProblemCode::InvalidValue, without_position(&error)),
    })
}

/// How deep `kwargs` lies in a definition: document, tasks, task.
const KWARGS_DEPTH: usize = 3;

fn read<'a>(text: &'a str, shape: Shape, budget: &Budget) -> serde_json::Result<Node<'a>> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let node = Seed { shape, budget }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(node)
}

/// The parser counts bytes, people count characters.
fn column_of(line: &str, byte_column: usize) -> usize {
    let characters = line
        .char_indices()
        .take_while(|(at, _)| at + 1 < byte_column);
    1 + characters.count()
}

fn without_position(error: &serde_json::Error) -> String {
    let message = error.to_string();
    match message.rfind(" at line ") {
        Some(end) => message[..end].to_owned(),
        None => message,
    }
}

/// What is still allowed, and what went beyond it.
struct Budget {
    nodes_left: Cell<usize>,
    nodes_max: usize,
    exceeded: Cell<Option<String>>,
}

impl Budget {
    const fn new(nodes_max: usize) -> Self {
        Self {
            nodes_left: Cell::new(nodes_max),
            nodes_max,
            exceeded: Cell::new(None),
        }
    }

    fn exceed<E: serde::de::Error>(&self, message: String) -> E {
        self.exceeded.set(Some(message));
        E::custom("limit exceeded")
    }

    fn spend<E: serde::de::Error>(&self) -> Result<(), E> {
        match self.nodes_left.get().checked_sub(1) {
            Some(left) => {
                self.nodes_left.set(left);
                Ok(())
            }
            None => Err(self.exceed(format!("more than {} values", self.nodes_max))),
        }
    }
}

/// What is expected at a place, and so how much of it is opened.
#[derive(Clone, Copy)]
enum Shape {
    Workflow,
    Tasks,
    Task,
    /// A list or map of scalars: `depends_on`, `labels`.
    Flat,
    /// A scalar; a list or map is skipped and only known as such.
    Scalar,
    /// Kept as text.
    Raw,
    /// Opened to the bottom.
    Whole {
        depth: usize,
    },
}

impl Shape {
    fn of_field(self, key: &str) -> Self {
        match (self, key) {
            (Self::Workflow, "tasks") => Self::Tasks,
            (Self::Workflow, "labels") | (Self::Task, "depends_on") => Self::Flat,
            (Self::Task, "kwargs") => Self::Raw,
            (Self::Whole { depth }, _) => Self::Whole { depth: depth + 1 },
            _ => Self::Scalar,
        }
    }

    const fn of_item(self) -> Self {
        match self {
            Self::Tasks => Self::Task,
            Self::Whole { depth } => Self::Whole { depth: depth + 1 },
            _ => Self::Scalar,
        }
    }

    const fn opens_list(self) -> bool {
        matches!(self, Self::Tasks | Self::Flat | Self::Whole { .. })
    }

    const fn opens_map(self) -> bool {
        matches!(
            self,
            Self::Workflow | Self::Task | Self::Flat | Self::Whole { .. }
        )
    }
}

#[derive(Clone, Copy)]
struct Seed<'b> {
    shape: Shape,
    budget: &'b Budget,
}

impl Seed<'_> {
    fn check_depth<E: serde::de::Error>(self) -> Result<(), E> {
        match self.shape {
            Shape::Whole { depth } if depth >= DEFINITION_DEPTH_MAX => Err(self.budget.exceed(
                format!("lists and maps are nested more than {DEFINITION_DEPTH_MAX} deep"),
            )),
            _ => Ok(()),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Node<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node<'de>, D::Error> {
        self.budget.spend()?;
        if matches!(self.shape, Shape::Raw) {
            let raw = <&RawValue>::deserialize(deserializer)?;
            return Ok(Node::unplaced(Kind::Raw(raw)));
        }
        deserializer.deserialize_any(self).map(Node::unplaced)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Kind<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Kind::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Kind::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Kind::Whole(Cow::Owned(value.to_string())))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Kind::Whole(Cow::Owned(value.to_string())))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Kind::Float(value))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Kind::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Kind::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        self.check_depth()?;
        let mut items = Vec::new();
        if !self.shape.opens_list() {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(Kind::List(Rc::new(items)));
        }
        let item = Seed {
            shape: self.shape.of_item(),
            ..self
        };
        while let Some(node) = list.next_element_seed(item)? {
            if matches!(self.shape, Shape::Tasks) && items.len() == TASKS_MAX {
                return Err(self.budget.exceed(format!("more than {TASKS_MAX} tasks")));
            }
            items.push(node);
        }
        Ok(Kind::List(Rc::new(items)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        self.check_depth()?;
        let mut entries = Vec::new();
        if !self.shape.opens_map() {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(Kind::Map(Rc::new(entries)));
        }
        while let Some(key) = map.next_key_seed(KeySeed)? {
            let value = map.next_value_seed(Seed {
                shape: self.shape.of_field(&key),
                ..self
            })?;
            entries.push(Entry {
                key,
                key_mark: Mark::default(),
                value,
            });
        }
        Ok(Kind::Map(Rc::new(entries)))
    }
}

/// A key that borrows from the text where it can; the reader of plain `Cow` never does.
struct KeySeed;

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for KeySeed {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}
