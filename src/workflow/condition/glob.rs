//! Patterns over task names, with the meaning of Python's `fnmatch`.
//!
//! `*` is any run of characters (also `/`), `?` one character, `[abc0-9]` one of these and
//! `[!abc]` one that is none of these. A `]` right after the opening is a member; a `[` that is
//! never closed is itself. There are no braces and no escapes: `[*]` is a plain star.
//!
//! This is code of our own because the glob crates match bytes, not characters (`?` is not `é`
//! there), know braces and escapes, or promise no bound on their time.

/// A pattern, ready to match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Glob {
    text: String,
    items: Vec<Item>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    Run,
    One,
    Exactly(char),
    /// One character within one of the ranges, or within none of them.
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

impl Glob {
    /// The pattern of a text. Every text is one.
    pub(super) fn new(text: &str) -> Self {
        let chars: Vec<char> = text.chars().collect();
        let mut items = Vec::new();
        let mut at = 0;
        while let Some(&first) = chars.get(at) {
            at += 1;
            match first {
                // A run after a run adds nothing but time.
                '*' if items.last() == Some(&Item::Run) => {}
                '*' => items.push(Item::Run),
                '?' => items.push(Item::One),
                '[' => match class(&chars[at..]) {
                    Some((item, length)) => {
                        items.push(item);
                        at += length;
                    }
                    None => items.push(Item::Exactly('[')),
                },
                other => items.push(Item::Exactly(other)),
            }
        }
        let text = text.to_owned();
        Self { text, items }
    }

    /// The text of the pattern.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the pattern is nothing but a plain name.
    pub(super) fn is_plain(&self) -> bool {
        self.items
            .iter()
            .all(|item| matches!(item, Item::Exactly(_)))
    }

    /// Whether the whole of `name` matches.
    ///
    /// Takes at most the product of the two lengths: if the rest does not fit, only the last run
    /// is made longer, because whatever an earlier run could gain, the last one can as well.
    pub(super) fn matches(&self, name: &str) -> bool {
        let mut rest = name.chars();
        let mut item = 0;
        // The item after the last run, and the text that is left once it takes one more.
        let mut retry = None;
        loop {
            if self.items.get(item) == Some(&Item::Run) {
                item += 1;
                retry = Some((item, rest.clone()));
                continue;
            }
            match (self.items.get(item), rest.next()) {
                (None, None) => return true,
                (Some(expected), Some(found)) if expected.accepts(found) => item += 1,
                // The name is used up, so a longer run leaves even less for the rest.
                (Some(_), None) => return false,
                (_, Some(_)) => {
                    let Some((after_run, mut longer)) = retry.take() else {
                        return false;
                    };
                    longer.next();
                    rest = longer.clone();
                    item = after_run;
                    retry = Some((after_run, longer));
                }
            }
        }
    }
}

impl Item {
    fn accepts(&self, found: char) -> bool {
        match self {
            Self::Run | Self::One => true,
            Self::Exactly(expected) => *expected == found,
            Self::Class { negated, ranges } => {
                let within = ranges
                    .iter()
                    .any(|&(from, to)| (from..=to).contains(&found));
                within != *negated
            }
        }
    }
}

/// The class whose opening `[` stands before `rest`, and the characters it takes of `rest`; none
/// if it is never closed.
fn class(rest: &[char]) -> Option<(Item, usize)> {
    let negated = rest.first() == Some(&'!');
    let start = usize::from(negated);
    // The first member may be a `]`, so the search for the end begins behind it.
    let end = rest
        .iter()
        .skip(start + 1)
        .position(|&c| c == ']')
        .map(|distance| start + 1 + distance)?;
    let mut ranges = Vec::new();
    let mut at = start;
    while at < end {
        if at + 2 < end && rest[at + 1] == '-' {
            // A range that runs backwards is empty, as in Python.
            ranges.push((rest[at], rest[at + 2]));
            at += 3;
        } else {
            ranges.push((rest[at], rest[at]));
            at += 1;
        }
    }
    Some((Item::Class { negated, ranges }, end + 1))
}
