//! Collects problems while a definition is read, without ever holding more than are shown.

use super::locate::Source;
use super::problem::{Problem, ProblemCode, Problems};
use crate::limits::PROBLEMS_MAX;

/// Bytes of a key that still becomes part of a pointer; longer ones are never ours, and the
/// pointer then stops at the map that holds them.
const POINTER_KEY_BYTES_MAX: usize = 256;

/// Characters of the user's text repeated in a message.
const QUOTED_CHARS_MAX: usize = 80;

/// A place in the document, as a chain of steps that costs nothing until it is printed.
#[derive(Clone, Copy)]
pub(super) struct Place<'p> {
    parent: Option<&'p Self>,
    step: Step<'p>,
    task: Option<&'p str>,
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Key(&'p str),
    Index(usize),
}

impl<'p> Place<'p> {
    /// The whole document.
    pub(super) const ROOT: Self = Self {
        parent: None,
        step: Step::Index(0),
        task: None,
    };

    /// A field of this map.
    pub(super) const fn key(&'p self, key: &'p str) -> Self {
        Self {
            parent: Some(self),
            step: Step::Key(key),
            task: self.task,
        }
    }

    /// An item of this list.
    pub(super) const fn index(&'p self, index: usize) -> Self {
        Self {
            parent: Some(self),
            step: Step::Index(index),
            task: self.task,
        }
    }

    /// The same place, belonging to a task.
    pub(super) const fn of_task(mut self, task: Option<&'p str>) -> Self {
        self.task = task;
        self
    }

    /// Appends the JSON pointer; false where it had to stop early.
    fn write(&self, pointer: &mut String) -> bool {
        let Some(parent) = self.parent else {
            return true;
        };
        if !parent.write(pointer) {
            return false;
        }
        match self.step {
            Step::Key(key) if key.len() > POINTER_KEY_BYTES_MAX => return false,
            Step::Key(key) => {
                pointer.push('/');
                pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
            }
            Step::Index(index) => {
                pointer.push('/');
                pointer.push_str(&index.to_string());
            }
        }
        true
    }
}

/// The problems found so far.
#[derive(Debug, Default)]
pub(super) struct Report {
    problems: Vec<Problem>,
    left_out: usize,
}

impl Report {
    pub(super) fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    /// Adds a problem. Each pass over the document adds in document order, so that the ones
    /// left out are the last ones.
    pub(super) fn add(
        &mut self,
        code: ProblemCode,
        place: &Place<'_>,
        message: impl FnOnce() -> String,
    ) {
        if self.problems.len() >= PROBLEMS_MAX {
            self.left_out += 1;
            return;
        }
        let mut pointer = String::new();
        place.write(&mut pointer);
        let message = match place.task {
            Some(task) => format!("task {}: {}", quoted(task), message()),
            None => message(),
        };
        self.problems.push(Problem {
            pointer,
            task: place.task.map(shortened),
            ..Problem::of_document(code, message)
        });
    }

    /// Takes over the problems of another pass.
    pub(super) fn absorb(&mut self, other: Self) {
        self.problems.extend(other.problems);
        self.left_out += other.left_out;
    }

    /// The problems with their positions, in the order of the text.
    pub(super) fn finish(mut self, source: &Source<'_>) -> Problems {
        source.place(&mut self.problems);
        self.problems.sort_by_key(Problem::position);
        let more = self.left_out + self.problems.len().saturating_sub(PROBLEMS_MAX);
        self.problems.truncate(PROBLEMS_MAX);
        if more > 0 {
            let message = format!("and {more} more problems, not shown");
            let problem = Problem::of_document(ProblemCode::LimitExceeded, message);
            self.problems.push(problem);
        }
        Problems(self.problems)
    }
}

/// The user's text for a message: in quotes, and no longer than people read.
pub(super) fn quoted(text: &str) -> String {
    format!("{:?}", shortened(text))
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
