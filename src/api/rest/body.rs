//! Bodies of requests.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use serde::de::DeserializeOwned;

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

    /// The body as JSON, or the value's own default if there is no body.
    pub(super) fn json_or_default<T: DeserializeOwned + Default>(&self) -> Result<T, Refusal> {
        if self.bytes.is_empty() {
            return Ok(T::default());
        }
        self.json()
    }
}
