//! Query parameters, read one by one so that each wrong one is named.

use std::collections::BTreeMap;
use std::str::FromStr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::problem::{Problem, Refusal};
use crate::clock::Timestamp;
use crate::workflow::{TaskState, WorkflowId, WorkflowState};

/// Parameters one request may have.
const PARAMS_MAX: usize = 100;

/// The query parameters of a request.
pub(super) struct Params(Vec<(String, String)>);

impl<S: Sync> FromRequestParts<S> for Params {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let query = parts.uri.query().unwrap_or_default();
        let pairs = url::form_urlencoded::parse(query.as_bytes());
        let pairs: Vec<_> = pairs.into_owned().take(PARAMS_MAX + 1).collect();
        if pairs.len() > PARAMS_MAX {
            return Err(Problem::invalid(
                "query",
                format!("more than {PARAMS_MAX} parameters"),
            ));
        }
        Ok(Self(pairs))
    }
}

impl Params {
    /// Refuses parameters that are not among these, so that a misspelt filter filters nothing by
    /// mistake.
    pub(super) fn known(self, names: &[&str]) -> Result<Self, Refusal> {
        match self
            .0
            .iter()
            .find(|(name, _)| !names.contains(&name.as_str()))
        {
            None => Ok(self),
            Some((name, _)) => {
                let reason = format!("there is no such parameter; there are {}", names.join(", "));
                Err(Problem::invalid(name, reason))
            }
        }
    }

    /// The texts given for a parameter, in their order; one text may hold several, with commas.
    pub(super) fn all(&self, name: &str) -> Vec<&str> {
        let given = self.0.iter().filter(|(found, _)| found == name);
        given.flat_map(|(_, value)| value.split(',')).collect()
    }

    /// A parameter that stands once at the most, as it is.
    pub(super) fn word(&self, name: &str) -> Result<Option<String>, Refusal> {
        let mut given = self.0.iter().filter(|(found, _)| found == name);
        let first = given.next().map(|(_, value)| value.clone());
        match given.next() {
            None => Ok(first),
            Some(_) => Err(Problem::invalid(name, "it is given twice")),
        }
    }

    /// Text that stands once at the most; none is as good as empty.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, Refusal> {
        Ok(self.word(name)?.filter(|text| !text.is_empty()))
    }

    /// A parameter as a value.
    pub(super) fn parsed<T: FromStr>(&self, name: &str, what: &str) -> Result<Option<T>, Refusal> {
        let Some(text) = self.word(name)? else {
            return Ok(None);
        };
        let parsed = text.parse().map(Some);
        parsed.map_err(|_| Problem::invalid(name, format!("{text:?} is not {what}")))
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, Refusal> {
        Ok(self.parsed(name, "true or false")?.unwrap_or(false))
    }

    pub(super) fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, Refusal> {
        self.parsed(name, "a whole number")
    }

    pub(super) fn time(&self, name: &str) -> Result<Option<Timestamp>, Refusal> {
        self.parsed(name, "a time with an offset, such as 2026-01-02T03:04:05Z")
    }

    pub(super) fn workflow_states(&self, name: &str) -> Result<Vec<WorkflowState>, Refusal> {
        let states = self.all(name).into_iter();
        let words = WorkflowState::ALL.iter().map(|state| state.as_str());
        let words: Vec<_> = words.collect();
        let parsed = states
            .map(|word| WorkflowState::from_word(word).ok_or_else(|| no_word(name, word, &words)));
        parsed.collect()
    }

    pub(super) fn task_states(&self, name: &str) -> Result<Vec<TaskState>, Refusal> {
        let states = self.all(name).into_iter();
        let words: Vec<_> = TaskState::ALL.iter().map(|state| state.as_str()).collect();
        let parsed = states
            .map(|word| TaskState::from_word(word).ok_or_else(|| no_word(name, word, &words)));
        parsed.collect()
    }

    /// Labels, each as `key=value`.
    pub(super) fn labels(&self, name: &str) -> Result<BTreeMap<String, String>, Refusal> {
        let given = self.0.iter().filter(|(found, _)| found == name);
        let parsed = given.map(|(_, text)| match text.split_once('=') {
            Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
            _ => Err(Problem::invalid(name, format!("{text:?} is not key=value"))),
        });
        parsed.collect()
    }
}

fn no_word(name: &str, word: &str, words: &[&str]) -> Refusal {
    Problem::invalid(name, format!("{word:?} is none of {}", words.join(", ")))
}

/// A workflow's id from a path.
pub(super) fn workflow_id(text: &str) -> Result<WorkflowId, Refusal> {
    WorkflowId::parse(text).map_err(|error| Problem::invalid("workflow_id", error))
}
