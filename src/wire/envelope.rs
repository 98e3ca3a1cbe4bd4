//! The envelope around every task and completion message, and what all messages share: the bound
//! on their size, the base64 some clients wrap them in, the verdict on what cannot be read.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use md5::{Digest as _, Md5};
use serde::{Deserialize, Serialize};

use crate::limits::{MESSAGE_BYTES_MAX, POISON_REASON_BYTES_MAX, TRACEPARENT_BYTES_MAX};

/// The newest envelope version, the one written. Version 0 had no `reply_requested`.
const VERSION: u32 = 1;

/// A message nobody can act on. It is logged, counted and put aside, never retried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unreadable message: {reason}")]
pub struct Poison {
    reason: String,
}

impl Poison {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: bounded_text(reason.into(), POISON_REASON_BYTES_MAX),
        }
    }

    /// What is wrong with it, for a person; at most `POISON_REASON_BYTES_MAX` bytes.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// A message that exceeds `MESSAGE_BYTES_MAX` even without what may be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the message would have {bytes} bytes, at most {MESSAGE_BYTES_MAX} fit a queue")]
pub struct TooLarge {
    /// Its size after XML escaping.
    pub bytes: usize,
}

/// A message ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// The id in the envelope; queues that drop doubles compare it.
    pub id: String,
    /// The text to send, at most `MESSAGE_BYTES_MAX` bytes after XML escaping.
    pub text: String,
}

/// The outer layer of a message. Unknown keys are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Envelope<'a> {
    /// 0 or 1.
    #[serde(default)]
    version: u32,
    /// The payload: a JSON object as text.
    #[serde(borrow)]
    pub kwargs: Cow<'a, str>,
    /// How often a plain task may be repeated; workflow tasks say 0.
    #[serde(default)]
    pub num_retries: u32,
    /// Identifies the message.
    #[serde(borrow, default)]
    pub id: Cow<'a, str>,
}

impl<'a> Envelope<'a> {
    /// Reads an envelope of a known version. `text` is the JSON itself; see [`plain_text`].
    ///
    /// # Errors
    /// When the text is not JSON, not an envelope, or of a version this program does not know.
    pub fn decode(text: &'a str) -> Result<Self, Poison> {
        let envelope: Self = parse_object("envelope", text)?;
        check_version(envelope.version)?;
        Ok(envelope)
    }
}

/// Parses the text of a JSON object. Derived readers would take an array of the fields too; no
/// format of ours means that.
pub(super) fn parse_object<'a, T: Deserialize<'a>>(what: &str, text: &'a str) -> Result<T, Poison> {
    if !text.trim_start().starts_with('{') {
        return Err(Poison::new(format!("{what}: not a JSON object")));
    }
    serde_json::from_str(text).map_err(|error| Poison::new(format!("{what}: {error}")))
}

/// Refuses envelopes that a later version of the format wrote.
pub(super) fn check_version(version: u32) -> Result<(), Poison> {
    if version > VERSION {
        return Err(Poison::new(format!("unknown envelope version {version}")));
    }
    Ok(())
}

/// Writes an envelope of the current version around `kwargs`. Without an `id` it gets the md5 of
/// the envelope so far, so that the same payload always has the same id.
///
/// # Errors
/// When the message exceeds `MESSAGE_BYTES_MAX` after XML escaping.
pub fn seal(kwargs: &str, num_retries: u32, id: Option<&str>) -> Result<Encoded, TooLarge> {
    #[derive(Serialize)]
    struct Unsealed<'a> {
        version: u32,
        reply_requested: bool,
        kwargs: &'a str,
        num_retries: u32,
    }
    let unsealed = Unsealed {
        version: VERSION,
        reply_requested: false,
        kwargs,
        num_retries,
    };
    let mut text = to_json(&unsealed);
    let id = id.map_or_else(|| hex::encode(Md5::digest(text.as_bytes())), str::to_owned);
    text.pop();
    text.push_str(",\"id\":");
    text.push_str(&to_json(&id));
    text.push('}');
    let text = xml_safe(text);
    let bytes = xml_escaped_len(&text);
    if bytes > MESSAGE_BYTES_MAX {
        return Err(TooLarge { bytes });
    }
    Ok(Encoded { id, text })
}

/// JSON text of a value that has no map with keys other than strings and no failing `Serialize`.
pub(super) fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("message parts are strings, numbers and maps of strings")
}

/// How long a text is once the queue protocol has escaped it as XML character data.
#[must_use]
pub fn xml_escaped_len(text: &str) -> usize {
    text.bytes()
        .map(|byte| match byte {
            b'&' => "&amp;".len(),
            b'<' | b'>' => "&lt;".len(),
            _ => 1,
        })
        .sum()
}

/// JSON escapes the control characters that XML forbids, but leaves two other code points XML
/// forbids as they are. They can only stand inside strings, where an escape means the same.
fn xml_safe(text: String) -> String {
    if text.contains(['\u{fffe}', '\u{ffff}']) {
        text.replace('\u{fffe}', "\\ufffe")
            .replace('\u{ffff}', "\\uffff")
    } else {
        text
    }
}

/// The text of a message: the message itself if it looks like a JSON object, else what it holds as
/// base64.
///
/// # Errors
/// When it is neither a JSON object nor base64 of UTF-8 text.
pub fn plain_text(message: &str) -> Result<Cow<'_, str>, Poison> {
    let trimmed = message.trim();
    if trimmed.starts_with('{') {
        return Ok(Cow::Borrowed(trimmed));
    }
    let bytes = BASE64
        .decode(trimmed)
        .map_err(|_| Poison::new("neither a JSON object nor base64"))?;
    String::from_utf8(bytes)
        .map(Cow::Owned)
        .map_err(|_| Poison::new("base64 of something that is not UTF-8"))
}

/// A trace parent that may be passed on; anything else is dropped, because tracing never decides
/// whether a task runs or a completion counts.
pub(super) fn traceparent(text: String) -> Option<String> {
    let fits = text.len() <= TRACEPARENT_BYTES_MAX && text.bytes().all(|b| b.is_ascii_graphic());
    fits.then_some(text)
}

/// `text`, cut at a character so that it has at most `bytes_max` (at least 3) bytes; a cut is
/// shown by an ellipsis.
#[must_use]
pub fn bounded_text(mut text: String, bytes_max: usize) -> String {
    const ELLIPSIS: &str = "…";
    if text.len() > bytes_max {
        let mut end = bytes_max.saturating_sub(ELLIPSIS.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str(ELLIPSIS);
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_versions_and_unknown_keys_are_accepted() {
        for text in [
            r#"{"version":0,"kwargs":"{}","num_retries":1,"id":"x"}"#,
            r#"{"version":1,"reply_requested":false,"kwargs":"{}","num_retries":1,"id":"x"}"#,
            r#"{"kwargs":"{}","num_retries":1,"id":"x","priority":{"a":[1]}}"#,
        ] {
            let envelope = Envelope::decode(text).unwrap();
            assert_eq!(
                (&*envelope.kwargs, envelope.num_retries, &*envelope.id),
                ("{}", 1, "x")
            );
        }
    }

    #[test]
    fn what_is_no_envelope_is_poison() {
        for text in [
            "",
            "null",
            "[]",
            r#"[1,"{}",0,"x"]"#,
            "{}",
            r#"{"version":2,"kwargs":"{}","id":"x"}"#,
            r#"{"version":1,"kwargs":{},"id":"x"}"#,
            r#"{"version":1,"kwargs":"{}","num_retries":-1,"id":"x"}"#,
            r#"{"version":1,"kwargs":"{}","#,
        ] {
            assert!(Envelope::decode(text).is_err(), "{text}");
        }
    }

    #[test]
    fn base64_is_unwrapped_and_json_left_alone() {
        assert_eq!(plain_text(" {\"a\":1}\n").unwrap(), "{\"a\":1}");
        assert_eq!(plain_text("eyJhIjoxfQ==\n").unwrap(), "{\"a\":1}");
        for bad in ["", "hello world", "/////w==", "eyJhIjoxfQ"] {
            let plain = plain_text(bad);
            assert!(
                plain.is_err() || plain.is_ok_and(|text| text.is_empty()),
                "{bad}"
            );
        }
    }

    #[test]
    fn one_byte_past_the_limit_is_too_large() {
        let overhead = xml_escaped_len(&seal("", 0, Some("x")).unwrap().text);
        let room = MESSAGE_BYTES_MAX - overhead;
        assert!(seal(&"a".repeat(room), 0, Some("x")).is_ok());
        let error = seal(&"a".repeat(room + 1), 0, Some("x")).unwrap_err();
        assert_eq!(error.bytes, MESSAGE_BYTES_MAX + 1);
    }

    #[test]
    fn escaping_counts_towards_the_size() {
        assert_eq!(xml_escaped_len("a<b>&\"'é"), 1 + 4 + 1 + 4 + 5 + 1 + 1 + 2);
    }

    #[test]
    fn code_points_that_xml_forbids_never_reach_the_queue() {
        let sealed = seal(
            "{\"a\":\"\u{0}\u{fffe}\u{ffff}\u{1f}\"}",
            0,
            Some("\u{ffff}"),
        )
        .unwrap();
        let allowed = |c: char| c >= ' ' && c != '\u{fffe}' && c != '\u{ffff}';
        assert!(sealed.text.chars().all(allowed), "{}", sealed.text);
        let envelope = Envelope::decode(&sealed.text).unwrap();
        assert_eq!(envelope.kwargs, "{\"a\":\"\u{0}\u{fffe}\u{ffff}\u{1f}\"}");
    }

    #[test]
    fn the_same_payload_gets_the_same_id() {
        let first = seal("{\"a\":1}", 0, None).unwrap();
        assert_eq!(first, seal("{\"a\":1}", 0, None).unwrap());
        assert_ne!(first.id, seal("{\"a\":2}", 0, None).unwrap().id);
        assert_eq!(first.id.len(), 32);
    }

    #[test]
    fn a_trace_parent_no_program_would_send_is_dropped() {
        let longest = "0".repeat(TRACEPARENT_BYTES_MAX);
        assert!(traceparent(longest.clone()).is_some());
        for bad in [
            longest + "0",
            "a b".to_owned(),
            "a\0".to_owned(),
            "é".to_owned(),
        ] {
            assert_eq!(traceparent(bad), None);
        }
    }

    #[test]
    fn reasons_are_bounded() {
        let poison = Poison::new("é".repeat(POISON_REASON_BYTES_MAX));
        assert!(poison.reason().len() <= POISON_REASON_BYTES_MAX);
        assert!(poison.reason().ends_with('…'));
    }

    proptest! {
        #[test]
        fn sealed_text_comes_back(kwargs in "\\PC{0,200}|(?s).{0,50}", id in "(?s).{0,40}", num_retries: u32) {
            let sealed = seal(&kwargs, num_retries, Some(&id)).unwrap();
            let envelope = Envelope::decode(&sealed.text).unwrap();
            prop_assert_eq!(&*envelope.kwargs, &kwargs);
            prop_assert_eq!(&*envelope.id, &id);
            prop_assert_eq!(envelope.num_retries, num_retries);
        }

        #[test]
        fn arbitrary_text_never_panics(text in "(?s).{0,300}") {
            if let Ok(plain) = plain_text(&text) {
                let _ = Envelope::decode(&plain);
            }
        }
    }
}
