//! Finds the line and column a problem's pointer leads to.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::document::{Kind, Mark, Node};
use super::problem::{Problem, ProblemCode};

/// What a definition was read from.
pub(super) enum Source<'a> {
    /// A tree that knows its places.
    Yaml(&'a Node<'a>),
    /// JSON text, looked through once more.
    Json(&'a str),
}

impl Source<'_> {
    /// Gives every problem its line and column.
    pub(super) fn place(&self, problems: &mut [Problem]) {
        match self {
            Self::Yaml(root) => {
                for problem in problems {
                    let mark = mark_of(root, problem);
                    problem.line = Some(mark.line as usize);
                    problem.column = Some(mark.column as usize);
                }
            }
            Self::Json(text) => place_in_json(text, problems),
        }
    }
}

/// The position just past `text`, in lines and characters from 1.
pub(super) fn end_of(text: &str) -> (usize, usize) {
    let line_start = text.rfind('\n').map_or(0, |newline| newline + 1);
    let line = 1 + text.bytes().filter(|&byte| byte == b'\n').count();
    (line, 1 + text[line_start..].chars().count())
}

/// Whether the key itself is at fault rather than its value.
const fn is_about_key(problem: &Problem) -> bool {
    matches!(
        problem.code,
        ProblemCode::UnknownField | ProblemCode::DuplicateKey
    )
}

fn segments(pointer: &str) -> Vec<String> {
    let unescape = |segment: &str| segment.replace("~1", "/").replace("~0", "~");
    pointer.split('/').skip(1).map(unescape).collect()
}

fn mark_of(root: &Node<'_>, problem: &Problem) -> Mark {
    let segments = segments(&problem.pointer);
    let (mut node, mut mark) = (root, root.mark);
    for (level, segment) in segments.iter().enumerate() {
        let is_last = level + 1 == segments.len();
        let next = match &node.kind {
            Kind::List(items) => segment
                .parse()
                .ok()
                .and_then(|index: usize| items.get(index)),
            // Of a key that stands twice, the later one is at fault.
            Kind::Map(entries) if is_last && is_about_key(problem) => {
                let entry = entries.iter().rfind(|entry| entry.key == *segment);
                return entry.map_or(mark, |entry| entry.key_mark);
            }
            Kind::Map(entries) => entries
                .iter()
                .find(|entry| entry.key == *segment)
                .map(|entry| &entry.value),
            _ => None,
        };
        let Some(next) = next else { break };
        (node, mark) = (next, next.mark);
    }
    mark
}

/// All pointers are followed in one walk that opens only the lists and maps on their way.
fn place_in_json(text: &str, problems: &mut [Problem]) {
    let wanted: Vec<Wanted> = problems
        .iter()
        .enumerate()
        .map(|(slot, problem)| Wanted {
            segments: segments(&problem.pointer),
            is_about_key: is_about_key(problem),
            slot,
        })
        .collect();
    let mut walk = Walk {
        text,
        offsets: vec![0; problems.len()],
    };
    if let Ok(root) = serde_json::from_str::<&RawValue>(text) {
        walk.descend(root, &wanted.iter().collect::<Vec<_>>(), 0);
    }
    let mut order: Vec<usize> = (0..problems.len()).collect();
    order.sort_by_key(|&slot| walk.offsets[slot]);
    let (mut line, mut line_start, mut seen) = (1, 0, 0);
    for slot in order {
        let offset = walk.offsets[slot];
        for (newline, _) in text[seen..offset].match_indices('\n') {
            line += 1;
            line_start = seen + newline + 1;
        }
        seen = offset;
        problems[slot].line = Some(line);
        problems[slot].column = Some(1 + text[line_start..offset].chars().count());
    }
}

/// A pointer to be followed.
struct Wanted {
    segments: Vec<String>,
    is_about_key: bool,
    slot: usize,
}

struct Walk<'a> {
    text: &'a str,
    offsets: Vec<usize>,
}

impl<'a> Walk<'a> {
    /// `part` borrows from the text, so its address tells its offset.
    fn offset_of(&self, part: &str) -> usize {
        (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize)
    }

    /// Recursion ends with the pointers, which the reader made no deeper than a definition may be.
    fn descend(&mut self, raw: &'a RawValue, wanted: &[&Wanted], level: usize) {
        let start = self.offset_of(raw.get());
        let mut by_segment: HashMap<&str, Vec<&Wanted>> = HashMap::new();
        for want in wanted {
            self.offsets[want.slot] = start;
            if let Some(segment) = want.segments.get(level) {
                by_segment.entry(segment).or_default().push(want);
            }
        }
        if by_segment.is_empty() {
            return;
        }
        if raw.get().starts_with('[') {
            let Ok(Items(items)) = serde_json::from_str(raw.get()) else {
                return;
            };
            for (segment, wanted) in by_segment {
                let index: Option<usize> = segment.parse().ok();
                if let Some(item) = index.and_then(|index| items.get(index)) {
                    self.descend(item, &wanted, level + 1);
                }
            }
            return;
        }
        let Ok(Entries(entries)) = serde_json::from_str(raw.get()) else {
            return;
        };
        let mut before = start + 1;
        let mut followed: HashSet<&str> = HashSet::new();
        for (Key(key), value) in &entries {
            let value_start = self.offset_of(value.get());
            if let Some((&segment, wanted)) = by_segment.get_key_value(key.as_ref()) {
                let (keys, values): (Vec<&Wanted>, Vec<&Wanted>) = wanted
                    .iter()
                    .partition(|want| want.is_about_key && want.segments.len() == level + 1);
                let gap = &self.text[before..value_start];
                let key_start = before + gap.find('"').unwrap_or(0);
                for want in keys {
                    self.offsets[want.slot] = key_start;
                }
                if followed.insert(segment) {
                    self.descend(value, &values, level + 1);
                }
            }
            before = value_start + value.get().len();
        }
    }
}

#[derive(Deserialize)]
struct Items<'a>(#[serde(borrow)] Vec<&'a RawValue>);

#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// The entries of a map in the order of the text, with keys that stand twice.
struct Entries<'a>(Vec<(Key<'a>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Entries<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Entries<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}
