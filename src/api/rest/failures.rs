//! The failures that each kind of operation may answer with, for its documentation.

use utoipa::IntoResponses;

use super::problem::Problem;

/// Of reads.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "documents answers")]
pub(super) enum ReadFailures {
    /// Something in the request is not valid
    #[response(status = 400, content_type = "application/problem+json")]
    Invalid(Problem),
    /// There is no such workflow, task or output
    #[response(status = 404, content_type = "application/problem+json")]
    NotFound(Problem),
    /// The storage is throttling; retry after the time in retry-after
    #[response(status = 429, content_type = "application/problem+json")]
    Throttled(Problem),
    /// The server failed
    #[response(status = 500, content_type = "application/problem+json")]
    Failed(Problem),
    /// The storage cannot be reached; retry after the time in retry-after
    #[response(status = 503, content_type = "application/problem+json")]
    Unavailable(Problem),
}

/// Of submits.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "documents answers")]
pub(super) enum SubmitFailures {
    /// The request cannot be read, or something beside the definition is not valid
    #[response(status = 400, content_type = "application/problem+json")]
    Invalid(Problem),
    /// The id is taken by a workflow with another definition
    #[response(status = 409, content_type = "application/problem+json")]
    Taken(Problem),
    /// The body is too large
    #[response(status = 413, content_type = "application/problem+json")]
    TooLarge(Problem),
    /// The body is of another media type
    #[response(status = 415, content_type = "application/problem+json")]
    Unsupported(Problem),
    /// The definition is not valid; `errors` has everything that is wrong with it
    #[response(status = 422, content_type = "application/problem+json")]
    InvalidDefinition(Problem),
    /// The storage is throttling; retry after the time in retry-after
    #[response(status = 429, content_type = "application/problem+json")]
    Throttled(Problem),
    /// The server failed
    #[response(status = 500, content_type = "application/problem+json")]
    Failed(Problem),
    /// The storage cannot be reached; retry after the time in retry-after
    #[response(status = 503, content_type = "application/problem+json")]
    Unavailable(Problem),
}

/// Of changes of a workflow.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "documents answers")]
pub(super) enum ChangeFailures {
    /// Something in the request is not valid
    #[response(status = 400, content_type = "application/problem+json")]
    Invalid(Problem),
    /// There is no such workflow or task
    #[response(status = 404, content_type = "application/problem+json")]
    NotFound(Problem),
    /// Its state does not allow it
    #[response(status = 409, content_type = "application/problem+json")]
    Conflict(Problem),
    /// It has ended, so there is nothing to cancel any more
    #[response(status = 410, content_type = "application/problem+json")]
    Ended(Problem),
    /// It has another version than the one in if-match
    #[response(status = 412, content_type = "application/problem+json")]
    OtherVersion(Problem),
    /// The body is too large
    #[response(status = 413, content_type = "application/problem+json")]
    TooLarge(Problem),
    /// The body is of another media type
    #[response(status = 415, content_type = "application/problem+json")]
    Unsupported(Problem),
    /// The storage is throttling; retry after the time in retry-after
    #[response(status = 429, content_type = "application/problem+json")]
    Throttled(Problem),
    /// The server failed
    #[response(status = 500, content_type = "application/problem+json")]
    Failed(Problem),
    /// The storage cannot be reached; retry after the time in retry-after
    #[response(status = 503, content_type = "application/problem+json")]
    Unavailable(Problem),
}
