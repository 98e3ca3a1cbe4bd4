//! Submitting workflows.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use futures::stream;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tracing::{Instrument as _, Span, field};
use utoipa::ToSchema;

use super::{Control, Error, Result};
use crate::limits::{IDEMPOTENCY_KEY_BYTES_MAX, LABEL_BYTES_MAX, LABELS_MAX, SUBMIT_BATCH_MAX};
use crate::store::Submitted;
use crate::telemetry::trace;
use crate::workflow::definition::Definition;
use crate::workflow::runtime::Runtime;
use crate::workflow::{WorkflowId, fan_in};

/// Submits of one batch that are under way at the same time.
const BATCH_AT_ONCE: usize = 8;

/// What to submit.
#[derive(Debug, Clone)]
pub struct SubmitRequest {
    /// The workflow.
    pub definition: Definition,
    /// Its id; a fresh one unless given. With an id, repeating a submit is safe.
    pub id: Option<WorkflowId>,
    /// Stands for an id: repeating a submit with the same key finds the same workflow.
    pub idempotency_key: Option<String>,
    /// Labels beside those of the definition; stronger where both have one.
    pub labels: BTreeMap<String, String>,
    /// Rewrites tasks with more dependencies than this into sequential batches.
    pub max_fan_in: Option<usize>,
    /// The W3C trace context of the caller.
    pub traceparent: Option<String>,
}

impl SubmitRequest {
    /// Submits a definition under a fresh id, as it is.
    #[must_use]
    pub const fn new(definition: Definition) -> Self {
        Self {
            definition,
            id: None,
            idempotency_key: None,
            labels: BTreeMap::new(),
            max_fan_in: None,
            traceparent: None,
        }
    }
}

/// What became of a submit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SubmitResult {
    /// The workflow's id.
    #[schema(value_type = String)]
    pub workflow_id: WorkflowId,
    /// Whether it is new; otherwise it was there already, with the same definition.
    pub created: bool,
}

/// What a definition would become.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ValidateResult {
    /// The workflow's name.
    pub name: String,
    /// How many tasks it would have, those of a rewritten fan-in included.
    pub tasks: usize,
}

impl Control {
    /// Checks what a submit would check, and stores nothing.
    ///
    /// # Errors
    /// As [`submit`](Self::submit), the store's own left out.
    pub fn validate(&self, request: SubmitRequest) -> Result<ValidateResult> {
        let definition = prepared(request)?.0;
        Ok(ValidateResult {
            tasks: definition.tasks.len(),
            name: definition.name,
        })
    }

    /// Makes a workflow durable and has it started. After `Ok` it will run, whatever dies.
    ///
    /// # Errors
    /// [`Error::InvalidDefinition`] if it cannot be rewritten as asked; [`Error::InvalidArgument`]
    /// for impossible labels or an impossible key; the store's own, among them that the id is taken
    /// by a different definition.
    pub async fn submit(&self, request: SubmitRequest) -> Result<SubmitResult> {
        let span = tracing::info_span!(
            target: trace::TARGET,
            "submit",
            workflow_id = field::Empty,
            tasks = field::Empty
        );
        // Within a request's span, that one is the parent and the caller's its own.
        if trace::traceparent_of(&Span::current()).is_none() {
            trace::follow(&span, request.traceparent.as_deref());
        }
        self.submit_traced(request).instrument(span).await
    }

    async fn submit_traced(&self, request: SubmitRequest) -> Result<SubmitResult> {
        let span = Span::current();
        let traceparent = trace::traceparent_of(&span).or_else(|| request.traceparent.clone());
        let (definition, id) = prepared(request)?;
        let id = id.unwrap_or_else(|| {
            WorkflowId::parse(&self.clock.new_id()).expect("a fresh id is 32 hex digits")
        });
        span.record("workflow_id", id.as_str());
        span.record("tasks", definition.tasks.len());
        let mut runtime = Runtime::new(id.clone(), &definition, self.clock.now());
        runtime.set_definition_sha256(definition.sha256());
        runtime.set_traceparent(traceparent);
        let submitted = self.store.submit(&runtime).await?;
        self.nudge(&id);
        Ok(SubmitResult {
            workflow_id: id,
            created: submitted == Submitted::Created,
        })
    }

    /// Submits up to [`SUBMIT_BATCH_MAX`] workflows; the answers stand in the order of the requests. One that
    /// is refused does not keep the others back.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for too many; then nothing was submitted.
    pub async fn submit_batch(
        &self,
        requests: Vec<SubmitRequest>,
    ) -> Result<Vec<Result<SubmitResult>>> {
        if requests.len() > SUBMIT_BATCH_MAX {
            let reason = format!("{} workflows; at most {SUBMIT_BATCH_MAX}", requests.len());
            return Err(Error::invalid("workflows", reason));
        }
        let submits = requests.into_iter().map(|request| self.submit(request));
        Ok(stream::iter(submits)
            .buffered(BATCH_AT_ONCE)
            .collect()
            .await)
    }
}

/// The definition to submit and its id, if it has one by now.
fn prepared(request: SubmitRequest) -> Result<(Definition, Option<WorkflowId>)> {
    let mut definition = match request.max_fan_in {
        None => request.definition,
        Some(max_fan_in) => fan_in::limit_fan_in(request.definition, max_fan_in)
            .map_err(Error::InvalidDefinition)?,
    };
    definition.labels.extend(request.labels);
    check_labels(&definition.labels)?;
    let id = match (request.id, request.idempotency_key) {
        (Some(_), Some(_)) => {
            let reason = "give an id or an idempotency key, not both";
            return Err(Error::invalid("idempotency_key", reason));
        }
        (id, None) => id,
        (None, Some(key)) => Some(id_of(&key)?),
    };
    Ok((definition, id))
}

fn check_labels(labels: &BTreeMap<String, String>) -> Result<()> {
    if labels.len() > LABELS_MAX {
        let reason = format!("{} labels; at most {LABELS_MAX}", labels.len());
        return Err(Error::invalid("labels", reason));
    }
    for (key, value) in labels {
        let fits = |text: &str| text.len() <= LABEL_BYTES_MAX && !text.contains(char::is_control);
        if key.is_empty() || !fits(key) || !fits(value) {
            let reason = format!(
                "{key:?}: keys have 1 to {LABEL_BYTES_MAX} bytes, values at most as many, and neither \
                 has control characters"
            );
            return Err(Error::invalid("labels", reason));
        }
    }
    Ok(())
}

/// The id that an idempotency key stands for: a digest, so that any text is a key.
fn id_of(key: &str) -> Result<WorkflowId> {
    if key.is_empty() || key.len() > IDEMPOTENCY_KEY_BYTES_MAX {
        let reason = format!("1 to {IDEMPOTENCY_KEY_BYTES_MAX} bytes, not {}", key.len());
        return Err(Error::invalid("idempotency_key", reason));
    }
    let digest = hex::encode(Sha256::digest(format!("idempotency-key:{key}")));
    let id = WorkflowId::parse(&format!("k{}", &digest[..31]));
    id.map_err(|error| Error::invalid("idempotency_key", error.to_string()))
}
