//! Bodies of requests.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use serde::de::DeserializeOwned;
use serde::{Deserialize as _, Deserializer};
use serde_json::Number;

use super::problem::{Problem, Refusal};

/// A body as it came, with its kind.
pub(super) struct Body {
    /// The media type, without parameters, in lower case; empty if the request names none.
    pub(super) kind: String,
    pub(super) bytes: Bytes,
}

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        let kind = kind_of(request.headers());
        let bytes = Bytes::from_request(request, state).await;
        let bytes = bytes.map_err(|rejection| unreadable(&rejection))?;
        Ok(Self { kind, bytes })
    }
}

fn unreadable(rejection: &BytesRejection) -> Refusal {
    let status = rejection.status();
    if status == StatusCode::PAYLOAD_TOO_LARGE {
        let detail = "the body is too large; send less, or split it";
        return Problem::new(status, "too_large", detail);
    }
    Problem::new(status, "bad_request", rejection.body_text())
}

fn kind_of(headers: &HeaderMap) -> String {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default();
    kind.trim().to_ascii_lowercase()
}

impl Body {
    pub(super) fn is_json(&self) -> bool {
        self.kind == "application/json" || self.kind.ends_with("+json")
    }

    pub(super) fn is_yaml(&self) -> bool {
        matches!(
            self.kind.as_str(),
            "application/yaml" | "application/x-yaml" | "text/yaml" | "text/x-yaml"
        )
    }

    /// Refuses what is not JSON by its own word.
    pub(super) fn unsupported(&self, expected: &str) -> Refusal {
        let detail = format!("the body is {:?}; send {expected}", self.kind);
        Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media_type",
            detail,
        )
    }

    /// The body as JSON.
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        if !self.is_json() {
            return Err(self.unsupported("application/json"));
        }
        serde_json::from_slice(&self.bytes).map_err(|error| {
            Problem::new(StatusCode::BAD_REQUEST, "malformed_body", error.to_string())
        })
    }

    /// The body as JSON, or the value's own default if there is no body, or it is null.
    pub(super) fn json_or_default<T: DeserializeOwned + Default>(&self) -> Result<T, Refusal> {
        if self.bytes.is_empty() {
            return Ok(T::default());
        }
        Ok(self.json::<Option<T>>()?.unwrap_or_default())
    }
}

/// Whole numbers beyond it have neighbours that floating point cannot tell apart.
const WHOLE_MAX: f64 = 9_007_199_254_740_991.0;

/// Reads a whole number. `2.0` is one, too: to JSON Schema, and to writers that know only one kind of number.
pub(super) fn whole<'de, T: TryFrom<u64>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    to_whole(&Number::deserialize(from)?)
}

/// As [`whole`], or null.
pub(super) fn whole_or_none<'de, T: TryFrom<u64>, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    let number = Option::<Number>::deserialize(from)?;
    number.map(|number| to_whole(&number)).transpose()
}

fn to_whole<T: TryFrom<u64>, E: serde::de::Error>(number: &Number) -> Result<T, E> {
    let real = || number.as_f64().filter(|real| is_whole(*real));
    let whole = number.as_u64().or_else(|| real().map(|real| real as u64));
    let fitting = whole.and_then(|whole| T::try_from(whole).ok());
    fitting.ok_or_else(|| E::custom(format!("{number} is no whole number in range")))
}

fn is_whole(real: f64) -> bool {
    real.fract() == 0.0 && (0.0..=WHOLE_MAX).contains(&real)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<u32> {
        whole(&mut serde_json::Deserializer::from_str(text)).ok()
    }

    #[test]
    fn whole_numbers_may_be_written_with_a_point() {
        for (text, number) in [("0", 0), ("2", 2), ("2.0", 2), ("1e3", 1000), ("-0.0", 0)] {
            assert_eq!(read(text), Some(number), "{text}");
        }
        for text in [
            "2.5",
            "-1",
            "4294967296",
            "4294967296.0",
            "1e300",
            "\"2\"",
            "null",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
