//! What no backend takes: every backend refuses these calls with the same errors, before it does
//! anything else.
//!
//! The rules are those of Azure Storage, so that what runs on one machine runs in the cloud. Queue
//! names may also follow the wider rules of Service Bus.

use std::time::Duration;

use super::{EntityKey, Error, Properties, Result, Value};
use crate::limits;

fn refuse(message: String) -> Result<()> {
    Err(Error::Invalid { message })
}

/// Lower-case letters, digits and single dashes, 3 to 63 of them.
pub(crate) fn container(name: &str) -> Result<()> {
    let letters = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let dashes = name.starts_with('-') || name.ends_with('-') || name.contains("--");
    if (3..=63).contains(&name.len()) && name.bytes().all(letters) && !dashes {
        return Ok(());
    }
    refuse(format!(
        "{name:?} is no container name: 3 to 63 lower-case letters, digits and single dashes"
    ))
}

/// Any text without control characters.
pub(crate) fn blob(name: &str) -> Result<()> {
    let chars = name.chars().count();
    if (1..=limits::BLOB_NAME_CHARS_MAX).contains(&chars) && !name.chars().any(char::is_control) {
        return Ok(());
    }
    refuse(format!(
        "{name:?} is no blob name: 1 to {} characters, no control characters",
        limits::BLOB_NAME_CHARS_MAX
    ))
}

/// At most [`limits::BLOB_BYTES_MAX`].
pub(crate) fn blob_size(name: &str, bytes: usize) -> Result<()> {
    at_most(|| format!("blob {name}"), bytes, limits::BLOB_BYTES_MAX)
}

/// Letters, digits, dots, dashes, underscores and slashes, up to 260 of them.
pub(crate) fn queue(name: &str) -> Result<()> {
    let letters = |b: u8| b.is_ascii_alphanumeric() || b"._-/".contains(&b);
    if (1..=260).contains(&name.len()) && name.bytes().all(letters) {
        return Ok(());
    }
    refuse(format!(
        "{name:?} is no queue name: 1 to 260 letters, digits, dots, dashes, underscores, slashes"
    ))
}

/// Letters and digits, 3 to 63 of them, the first a letter.
pub(crate) fn table(name: &str) -> Result<()> {
    let first = name.starts_with(|c: char| c.is_ascii_alphabetic());
    if (3..=63).contains(&name.len()) && first && name.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return Ok(());
    }
    refuse(format!(
        "{name:?} is no table name: 3 to 63 letters and digits, the first a letter"
    ))
}

/// Neither key is too long or holds a character that a table key cannot.
pub(crate) fn key(key: &EntityKey) -> Result<()> {
    for part in [&key.partition, &key.row] {
        let wrong = |c: char| c.is_control() || "/\\#?".contains(c);
        if part.len() > limits::ENTITY_KEY_BYTES_MAX || part.chars().any(wrong) {
            return refuse(format!(
                "{part:?} is no table key: at most {} bytes, no control characters, no / \\ # ?",
                limits::ENTITY_KEY_BYTES_MAX
            ));
        }
    }
    Ok(())
}

/// Few enough properties, with names that are their own and texts that fit.
pub(crate) fn properties(properties: &Properties) -> Result<()> {
    at_most(
        || "the number of properties of a row".to_owned(),
        properties.len(),
        limits::PROPERTIES_MAX,
    )?;
    for (name, value) in properties {
        let own = ["PartitionKey", "RowKey", "Timestamp"].contains(&name.as_str());
        if own || name.is_empty() || name.len() > 255 || name.chars().any(char::is_control) {
            return refuse(format!("a row cannot have a property named {name:?}"));
        }
        if let Value::String(text) = value {
            let units = text.encode_utf16().count();
            if units > limits::PROPERTY_UNITS_MAX {
                return Err(Error::TooLarge {
                    what: format!("property {name}"),
                    bytes: units * 2,
                    limit: limits::PROPERTY_UNITS_MAX * 2,
                });
            }
        }
    }
    Ok(())
}

/// A page of at least one and at most [`limits::PAGE_MAX`].
pub(crate) fn page(limit: usize) -> Result<()> {
    within("the size of a page", limit, limits::PAGE_MAX)
}

/// A peek of at least one and at most [`limits::PEEK_MAX`].
pub(crate) fn peek(max: usize) -> Result<()> {
    within("the size of a peek", max, limits::PEEK_MAX)
}

fn within(what: &str, number: usize, max: usize) -> Result<()> {
    if (1..=max).contains(&number) {
        return Ok(());
    }
    refuse(format!("{what} is {number}; 1 to {max} are possible"))
}

/// A receive of at least one message, hidden for one second to seven days.
pub(crate) fn receive(max: usize, visibility: Duration) -> Result<()> {
    if max == 0 {
        return refuse("a receive of no messages".to_owned());
    }
    if visibility < Duration::from_secs(1) {
        return refuse(format!(
            "a visibility timeout of {visibility:?}; at least 1 s"
        ));
    }
    hidden(visibility)
}

/// A delay or extension of at most seven days.
pub(crate) fn hidden(duration: Duration) -> Result<()> {
    if duration <= limits::VISIBILITY_TIMEOUT_MAX {
        return Ok(());
    }
    refuse(format!(
        "a message cannot be hidden for {duration:?}; at most seven days"
    ))
}

/// A message whose text fits and whose delay is possible.
pub(crate) fn message(queue: &str, bytes: usize, limit: usize, delay: Duration) -> Result<()> {
    hidden(delay)?;
    at_most(|| format!("a message for queue {queue}"), bytes, limit)
}

/// 15 to 60 s.
pub(crate) fn lease(duration: Duration) -> Result<()> {
    let (shortest, longest) = limits::LEASE_DURATION_RANGE;
    if (shortest..=longest).contains(&duration) {
        return Ok(());
    }
    refuse(format!(
        "a lease of {duration:?}; {shortest:?} to {longest:?} are possible"
    ))
}

fn at_most(what: impl FnOnce() -> String, bytes: usize, limit: usize) -> Result<()> {
    if bytes <= limit {
        return Ok(());
    }
    Err(Error::TooLarge {
        what: what(),
        bytes,
        limit,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn container_names_follow_azure() {
        for good in ["abc", "my-project-workflows", "a1b", &"x".repeat(63)] {
            assert!(container(good).is_ok(), "{good}");
        }
        for bad in [
            "ab",
            "-abc",
            "abc-",
            "a--b",
            "Abc",
            "a_b",
            "",
            &"x".repeat(64),
        ] {
            assert!(container(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn blob_names_are_bounded_and_printable() {
        assert!(blob("wf/träin 1.json").is_ok());
        assert!(blob(&"ü".repeat(limits::BLOB_NAME_CHARS_MAX)).is_ok());
        assert!(blob(&"ü".repeat(limits::BLOB_NAME_CHARS_MAX + 1)).is_err());
        assert!(blob("").is_err());
        assert!(blob("a\nb").is_err());
    }

    #[test]
    fn blobs_end_at_the_limit() {
        assert!(blob_size("b", limits::BLOB_BYTES_MAX).is_ok());
        assert!(matches!(
            blob_size("b", limits::BLOB_BYTES_MAX + 1),
            Err(Error::TooLarge { .. })
        ));
    }

    #[test]
    fn queue_names_take_both_services_rules() {
        assert!(queue("default-failed").is_ok());
        assert!(queue("Team/gpu_large.v2").is_ok());
        assert!(queue("").is_err());
        assert!(queue("a b").is_err());
        assert!(queue(&"q".repeat(261)).is_err());
    }

    #[test]
    fn rows_end_at_the_limits() {
        let text = |units: usize| {
            Properties::from([("text".to_owned(), Value::String("x".repeat(units)))])
        };
        assert!(properties(&text(limits::PROPERTY_UNITS_MAX)).is_ok());
        assert!(properties(&text(limits::PROPERTY_UNITS_MAX + 1)).is_err());
        let many = |n: usize| {
            (0..n)
                .map(|i| (format!("p{i}"), Value::Bool(true)))
                .collect()
        };
        assert!(properties(&many(limits::PROPERTIES_MAX)).is_ok());
        assert!(properties(&many(limits::PROPERTIES_MAX + 1)).is_err());
        let long = |n: usize| EntityKey {
            partition: "p".to_owned(),
            row: "r".repeat(n),
        };
        assert!(key(&long(limits::ENTITY_KEY_BYTES_MAX)).is_ok());
        assert!(key(&long(limits::ENTITY_KEY_BYTES_MAX + 1)).is_err());
    }
}
