//! Errors as gRPC has them: a status with the details of `google.rpc`.

use std::collections::HashMap;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::control::Error;

/// The domain of our codes.
const DOMAIN: &str = "jobq";

const fn code_of(error: &Error) -> Code {
    match error.code().as_bytes() {
        b"invalid_definition" | b"invalid_argument" | b"invalid_page_token" => {
            Code::InvalidArgument
        }
        b"workflow_not_found" | b"task_not_found" | b"no_output" | b"no_coordinator" => {
            Code::NotFound
        }
        b"different_definition" => Code::AlreadyExists,
        b"already_terminal" | b"not_terminal" | b"nothing_to_retry" => Code::FailedPrecondition,
        b"conflict" => Code::Aborted,
        b"too_large" => Code::OutOfRange,
        b"throttled" => Code::ResourceExhausted,
        b"unavailable" => Code::Unavailable,
        _ => Code::Internal,
    }
}

/// The status of a failed use case.
pub(super) fn status(error: &Error) -> Status {
    let mut details = ErrorDetails::with_error_info(error.code(), DOMAIN, HashMap::new());
    if let Some(pause) = error.retry_after() {
        details.set_retry_info(Some(pause));
    }
    match error {
        Error::InvalidDefinition(problems) => {
            for problem in &problems.0 {
                let field = format!("definition{}", problem.pointer);
                details.add_bad_request_violation(field, problem.to_string());
            }
        }
        Error::InvalidArgument { field, reason } => {
            details.add_bad_request_violation(*field, reason.clone());
        }
        _ => {}
    }
    Status::with_error_details(code_of(error), error.to_string(), details)
}

/// The status of a request with a field that is not valid.
pub(super) fn invalid(field: &str, reason: impl Into<String>) -> Status {
    let reason = reason.into();
    let text = format!("{field}: {reason}");
    let mut details = ErrorDetails::with_error_info("invalid_argument", DOMAIN, HashMap::new());
    details.add_bad_request_violation(field, reason);
    Status::with_error_details(Code::InvalidArgument, text, details)
}
