//! YAML text to a tree, from the events of the parser.
//!
//! The parser hands out events; what they may grow to is decided here. Aliases share what they
//! point to, and yet are counted as if they were written out, so a document that expands without
//! end stops at the limit and has cost no memory.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, Tag};

use super::document::{Entry, Kind, Mark, Node};
use super::problem::{Problem, ProblemCode};
use super::scalar::{self, Written};
use crate::limits::{DEFINITION_BYTES_MAX, DEFINITION_DEPTH_MAX, DEFINITION_NODES_MAX};

/// Reads a text that holds one YAML document.
///
/// # Errors
/// The first place where the text is not YAML, or too much of it.
pub(super) fn parse(text: &str) -> Result<Node<'_>, Problem> {
    let mut builder = Builder::default();
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| not_yaml(&error))?;
        builder.take(event, span)?;
    }
    let empty = Node {
        mark: Mark { line: 1, column: 1 },
        kind: Kind::Null,
    };
    Ok(builder.root.unwrap_or(empty))
}

fn not_yaml(error: &ScanError) -> Problem {
    // The scanner looks ahead, so it may meet a deep text before its events show the depth.
    if error.info() == "recursion limit exceeded" {
        return too_deep(mark(*error.marker()));
    }
    problem(
        ProblemCode::Syntax,
        mark(*error.marker()),
        format!("this is not YAML: {}", error.info()),
    )
}

fn too_deep(mark: Mark) -> Problem {
    let message = format!("lists and maps are nested more than {DEFINITION_DEPTH_MAX} deep");
    problem(ProblemCode::LimitExceeded, mark, message)
}

fn problem(code: ProblemCode, mark: Mark, message: impl Into<String>) -> Problem {
    Problem::of_document(code, message.into()).at((mark.line as usize, mark.column as usize))
}

fn mark(marker: Marker) -> Mark {
    let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    Mark {
        line: number(marker.line().max(1)),
        column: number(marker.col() + 1),
    }
}

/// What a part of the document would be, were its aliases written out.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    nodes: usize,
    bytes: usize,
}

/// A list or map whose end has not come yet.
struct Open<'a> {
    mark: Mark,
    anchor: usize,
    /// The size of the document before it.
    before: Size,
    /// Levels of lists and maps inside it.
    height: usize,
    inside: Inside<'a>,
}

enum Inside<'a> {
    List(Vec<Node<'a>>),
    Map {
        entries: Vec<Entry<'a>>,
        /// The values of its merge key.
        merged: Option<Node<'a>>,
        key: Option<Key<'a>>,
    },
}

struct Key<'a> {
    text: Cow<'a, str>,
    mark: Mark,
    is_merge: bool,
}

/// What an alias stands for.
struct Anchored<'a> {
    node: Node<'a>,
    size: Size,
    height: usize,
}

#[derive(Default)]
struct Builder<'a> {
    open: Vec<Open<'a>>,
    anchors: HashMap<usize, Anchored<'a>>,
    size: Size,
    root: Option<Node<'a>>,
}

impl<'a> Builder<'a> {
    fn take(&mut self, event: Event<'a>, span: Span) -> Result<(), Problem> {
        let mark = mark(span.start);
        match event {
            Event::DocumentStart(_) if self.root.is_some() => Err(problem(
                ProblemCode::Syntax,
                mark,
                "a second document starts here; a definition is one document",
            )),
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar(text, style, anchor, tag.as_deref(), mark)
            }
            Event::Alias(anchor) => self.alias(anchor, mark),
            Event::SequenceStart(anchor, tag) => {
                check_tag(tag.as_deref(), "seq", mark)?;
                self.start(anchor, Inside::List(Vec::new()), mark)
            }
            Event::MappingStart(anchor, tag) => {
                check_tag(tag.as_deref(), "map", mark)?;
                let inside = Inside::Map {
                    entries: Vec::new(),
                    merged: None,
                    key: None,
                };
                self.start(anchor, inside, mark)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            _ => Ok(()),
        }
    }

    fn scalar(
        &mut self,
        text: Cow<'a, str>,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        mark: Mark,
    ) -> Result<(), Problem> {
        let size = Size {
            nodes: 1,
            bytes: text.len(),
        };
        self.spend(size, mark)?;
        let written = match tag {
            Some(tag) if tag.is_yaml_core_schema() => Written::Tagged(&tag.suffix),
            Some(tag) if tag.handle.is_empty() && tag.suffix == "!" => Written::Quoted,
            Some(tag) => return Err(unknown_tag(tag, mark)),
            None if style == ScalarStyle::Plain => Written::Plain,
            None => Written::Quoted,
        };
        if self.expects_key() {
            let is_merge = written == Written::Plain && text == "<<";
            let kind = scalar::resolve(text.clone(), written);
            if matches!(kind, Ok(Kind::Null)) {
                return Err(bad_key("null", mark));
            }
            // Numbers and booleans are taken as they are spelt: JSON's keys are text.
            let node = Node {
                mark,
                kind: Kind::Text(text.clone()),
            };
            self.remember(anchor, &node, size, 0);
            return self.key(text, mark, is_merge);
        }
        let kind = scalar::resolve(text, written)
            .map_err(|message| problem(ProblemCode::InvalidValue, mark, message))?;
        let node = Node { mark, kind };
        self.remember(anchor, &node, size, 0);
        self.place(node, 0)
    }

    fn alias(&mut self, anchor: usize, mark: Mark) -> Result<(), Problem> {
        let Some(anchored) = self.anchors.get(&anchor) else {
            let message = "this alias stands inside the very value it points to";
            return Err(problem(ProblemCode::Syntax, mark, message));
        };
        let (size, height) = (anchored.size, anchored.height);
        if self.open.len() + height > DEFINITION_DEPTH_MAX {
            return Err(too_deep(mark));
        }
        let node = anchored.node.clone();
        self.spend(size, mark)?;
        if self.expects_key() {
            return match node.kind {
                Kind::Text(text) => self.key(text, mark, false),
                kind => Err(bad_key(kind.describe(), mark)),
            };
        }
        self.place(node, height)
    }

    fn start(&mut self, anchor: usize, inside: Inside<'a>, mark: Mark) -> Result<(), Problem> {
        if self.expects_key() {
            return Err(bad_key("a list or map", mark));
        }
        if self.open.len() >= DEFINITION_DEPTH_MAX {
            return Err(too_deep(mark));
        }
        let before = self.size;
        self.spend(Size { nodes: 1, bytes: 0 }, mark)?;
        self.open.push(Open {
            mark,
            anchor,
            before,
            height: 1,
            inside,
        });
        Ok(())
    }

    fn end(&mut self) -> Result<(), Problem> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let kind = match open.inside {
            Inside::List(items) => Kind::List(Rc::new(items)),
            Inside::Map {
                mut entries,
                merged,
                ..
            } => {
                if let Some(merged) = merged {
                    self.merge(&mut entries, &merged)?;
                }
                Kind::Map(Rc::new(entries))
            }
        };
        let node = Node {
            mark: open.mark,
            kind,
        };
        let size = Size {
            nodes: self.size.nodes - open.before.nodes,
            bytes: self.size.bytes - open.before.bytes,
        };
        self.remember(open.anchor, &node, size, open.height);
        self.place(node, open.height)
    }

    /// Adds what `<<` brings along: keys that are not there yet, the first map winning. The alias
    /// was already paid for, with at least the entries that are copied here.
    fn merge(&self, entries: &mut Vec<Entry<'a>>, merged: &Node<'a>) -> Result<(), Problem> {
        let maps = match &merged.kind {
            Kind::List(maps) => maps.as_slice(),
            _ => std::slice::from_ref(merged),
        };
        let mut present: HashSet<Cow<'a, str>> =
            entries.iter().map(|entry| entry.key.clone()).collect();
        for map in maps {
            let Kind::Map(inherited) = &map.kind else {
                let message = format!(
                    "`<<` takes a map or a list of maps, not {}",
                    map.kind.describe()
                );
                return Err(problem(ProblemCode::WrongType, map.mark, message));
            };
            for entry in inherited.iter() {
                if present.insert(entry.key.clone()) {
                    entries.push(entry.clone());
                }
            }
        }
        Ok(())
    }

    fn expects_key(&self) -> bool {
        matches!(
            self.open.last(),
            Some(Open {
                inside: Inside::Map { key: None, .. },
                ..
            })
        )
    }

    fn key(&mut self, text: Cow<'a, str>, mark: Mark, is_merge: bool) -> Result<(), Problem> {
        if let Some(Open {
            inside: Inside::Map { key, merged, .. },
            ..
        }) = self.open.last_mut()
        {
            if is_merge && merged.is_some() {
                let message = "`<<` stands twice in this map; give it a list of maps instead";
                return Err(problem(ProblemCode::DuplicateKey, mark, message));
            }
            *key = Some(Key {
                text,
                mark,
                is_merge,
            });
        }
        Ok(())
    }

    /// Puts a finished value where it belongs.
    fn place(&mut self, node: Node<'a>, height: usize) -> Result<(), Problem> {
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        open.height = open.height.max(height + 1);
        match &mut open.inside {
            Inside::List(items) => items.push(node),
            Inside::Map {
                entries,
                merged,
                key,
            } => match key.take() {
                Some(key) if key.is_merge => *merged = Some(node),
                Some(key) => entries.push(Entry {
                    key: key.text,
                    key_mark: key.mark,
                    value: node,
                }),
                None => return Err(bad_key(node.kind.describe(), node.mark)),
            },
        }
        Ok(())
    }

    fn remember(&mut self, anchor: usize, node: &Node<'a>, size: Size, height: usize) {
        if anchor > 0 {
            let node = node.clone();
            self.anchors.insert(anchor, Anchored { node, size, height });
        }
    }

    fn spend(&mut self, size: Size, mark: Mark) -> Result<(), Problem> {
        self.size.nodes += size.nodes;
        self.size.bytes += size.bytes;
        if self.size.nodes > DEFINITION_NODES_MAX {
            let message = format!("more than {DEFINITION_NODES_MAX} values, counting aliases");
            return Err(problem(ProblemCode::LimitExceeded, mark, message));
        }
        if self.size.bytes > DEFINITION_BYTES_MAX {
            let message = format!("more than {DEFINITION_BYTES_MAX} bytes, counting aliases");
            return Err(problem(ProblemCode::LimitExceeded, mark, message));
        }
        Ok(())
    }
}

fn check_tag(tag: Option<&Tag>, expected: &str, mark: Mark) -> Result<(), Problem> {
    match tag {
        Some(tag) if !(tag.is_yaml_core_schema() && tag.suffix == expected) => {
            Err(unknown_tag(tag, mark))
        }
        _ => Ok(()),
    }
}

fn unknown_tag(tag: &Tag, mark: Mark) -> Problem {
    let name: String = tag.to_string().chars().take(80).collect();
    let message = format!("the tag `{name}` means nothing here; leave it out");
    problem(ProblemCode::InvalidValue, mark, message)
}

fn bad_key(what: &str, mark: Mark) -> Problem {
    let message = format!("a key must be text, not {what}");
    problem(ProblemCode::WrongType, mark, message)
}
