//! What an error of a service means at the ports.
//!
//! Status and error code decide, never a text. Texts of the library hold addresses, bodies and
//! headers, so none of them is passed on: only the innermost cause of a failed connection is.

use azure_core::StatusCode;
use azure_core::error::ErrorKind;

use super::super::{Error, Result};
use super::transport::Transport;

/// From how large a difference of clocks on the service refuses signatures.
const CLOCK_AHEAD_S_MAX: i64 = 15 * 60;

/// The service asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    Blob,
    Queue,
    Table,
}

impl Service {
    const fn name(self) -> &'static str {
        match self {
            Self::Blob => "blob",
            Self::Queue => "queue",
            Self::Table => "table",
        }
    }

    /// The built-in role that allows everything jobq does with the service.
    const fn role(self) -> &'static str {
        match self {
            Self::Blob => "Storage Blob Data Contributor",
            Self::Queue => "Storage Queue Data Contributor",
            Self::Table => "Storage Table Data Contributor",
        }
    }
}

/// Turns errors of one call into the ports' errors.
pub(super) struct Translate<'a> {
    pub(super) service: Service,
    pub(super) what: String,
    pub(super) transport: &'a Transport,
}

/// The status and the error code of an answer, if there was one.
pub(super) fn answer(error: &azure_core::Error) -> Option<(u16, &str)> {
    match error.kind() {
        ErrorKind::HttpResponse { status, error_code } => Some((
            u16::from(*status),
            error_code.as_deref().unwrap_or_default(),
        )),
        _ => None,
    }
}

impl Translate<'_> {
    pub(super) fn error(&self, error: &azure_core::Error) -> Error {
        let Some((status, code)) = answer(error) else {
            return self.without_answer(error);
        };
        let what = self.what.clone();
        match (status, code) {
            (_, "LeaseAlreadyPresent" | "LeaseIdMissing" | "LeaseLost")
            | (_, "LeaseIdMismatchWithLeaseOperation" | "LeaseIdMismatchWithBlobOperation")
            | (_, "LeaseNotPresentWithLeaseOperation" | "LeaseNotPresentWithBlobOperation")
            | (_, "LeaseIsBrokenAndCannotBeRenewed" | "LeaseIsBreakingAndCannotBeAcquired")
            | (_, "LeaseIsBreakingAndCannotBeChanged") => Error::LeaseHeld { what },
            (_, "ContainerBeingDeleted" | "QueueBeingDeleted" | "TableBeingDeleted") => {
                self.unavailable("it is being deleted", None)
            }
            (404, _) => Error::NotFound { what },
            (409, _) => Error::AlreadyExists { what },
            (412, _) => Error::PreconditionFailed { what },
            (401 | 403, _) => self.refused(code),
            (429, _) | (503, "ServerBusy" | "") => Error::Throttled {
                retry_after: self.transport.retry_after(),
            },
            (408 | 500..=599, _) => self.unavailable(&said(status, code), None),
            _ => Error::Invalid {
                message: format!(
                    "{what}: the {} service {}",
                    self.service.name(),
                    said(status, code)
                ),
            },
        }
    }

    /// There was no answer: the call may or may not have arrived.
    fn without_answer(&self, error: &azure_core::Error) -> Error {
        match error.kind() {
            ErrorKind::Credential => Error::Unauthorized {
                message: format!(
                    "no token for {}: no identity signed in ({}); check the AZURE_* variables, the \
                     managed identity, or run `az login`",
                    self.what,
                    cause(error)
                ),
            },
            ErrorKind::DataConversion => Error::Corrupt {
                what: self.what.clone(),
                message: format!(
                    "the {} service's answer cannot be read",
                    self.service.name()
                ),
            },
            _ => self.unavailable("the service cannot be reached", Some(cause(error))),
        }
    }

    fn refused(&self, code: &str) -> Error {
        let ahead = self.transport.clock_ahead_s().unwrap_or(0);
        let reason = if ahead.abs() >= CLOCK_AHEAD_S_MAX {
            let side = if ahead > 0 { "behind" } else { "ahead of" };
            format!(
                "this machine's clock is {} min {side} the service's, and signatures are refused \
                 from 15 min on; set the clock",
                ahead.abs() / 60
            )
        } else if self.transport.signs_by_key() {
            "the key was refused; check that it is this account's present key, and that the \
             account's network rules let this machine in"
                .to_owned()
        } else if code == "AuthenticationFailed" || code == "InvalidAuthenticationInfo" {
            "the signature or token was refused; check that it belongs to this account and has \
             not expired"
                .to_owned()
        } else {
            format!(
                "the permission is missing; assign the role \"{}\" on the account, or use a \
                 signature that allows it ({code})",
                self.service.role()
            )
        };
        Error::Unauthorized {
            message: format!("{}: {reason}", self.what),
        }
    }

    pub(super) fn unavailable(&self, reason: &str, cause: Option<String>) -> Error {
        let because = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
        Error::Unavailable {
            message: format!("{}: {reason}{because}", self.what),
            source: None,
        }
    }

    /// As [`error`](Self::error), for a whole result.
    pub(super) fn result<T>(&self, result: azure_core::Result<T>) -> Result<T> {
        result.map_err(|error| self.error(&error))
    }
}

fn said(status: u16, code: &str) -> String {
    match code {
        "" => format!("answered {status}"),
        code => format!("answered {status} {code}"),
    }
}

/// The innermost cause. The layers above it repeat the address.
fn cause(error: &azure_core::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let text = innermost.to_string();
    if text.contains("://") || text.contains("sig=") {
        return "the request failed".to_owned();
    }
    text.chars().take(200).collect()
}

/// Whether a failed call certainly had no effect: it was refused for being too much, or no
/// connection came about.
pub(super) fn had_no_effect(error: &azure_core::Error) -> bool {
    if let Some((status, code)) = answer(error) {
        return status == 429 || (status == StatusCode::ServiceUnavailable && code == "ServerBusy");
    }
    let mut source = Some(error as &dyn std::error::Error);
    while let Some(found) = source {
        if let Some(found) = found.downcast_ref::<reqwest::Error>() {
            return found.is_connect();
        }
        source = found.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::storage::Retry;

    fn translated(status: u16, code: &str) -> Error {
        let transport = Transport::new(Clock::system(), false).unwrap();
        let translate = Translate {
            service: Service::Blob,
            what: "blob a/b".to_owned(),
            transport: &transport,
        };
        let status = StatusCode::try_from(status).unwrap();
        let code = Some(code.to_owned()).filter(|code| !code.is_empty());
        translate.error(&ErrorKind::http_response(status, code).into_error())
    }

    #[test]
    fn each_answer_has_one_meaning() {
        for (status, code, kind) in [
            (404, "BlobNotFound", "not_found"),
            (404, "", "not_found"),
            (409, "BlobAlreadyExists", "already_exists"),
            (409, "LeaseAlreadyPresent", "lease_held"),
            (409, "ContainerBeingDeleted", "unavailable"),
            (412, "ConditionNotMet", "precondition_failed"),
            (412, "LeaseIdMissing", "lease_held"),
            (412, "LeaseLost", "lease_held"),
            (403, "AuthenticationFailed", "unauthorized"),
            (403, "AuthorizationPermissionMismatch", "unauthorized"),
            (401, "", "unauthorized"),
            (429, "", "throttled"),
            (503, "ServerBusy", "throttled"),
            (500, "OperationTimedOut", "unavailable"),
            (503, "Whatever", "unavailable"),
            (400, "InvalidHeaderValue", "invalid"),
        ] {
            assert_eq!(translated(status, code).kind(), kind, "{status} {code}");
        }
    }

    #[test]
    fn a_missing_permission_names_the_role() {
        let text = translated(403, "AuthorizationPermissionMismatch").to_string();
        assert!(text.contains("Storage Blob Data Contributor"), "{text}");
    }

    #[test]
    fn overload_may_be_repeated_and_refusals_may_not() {
        assert_ne!(translated(503, "ServerBusy").retry(), Retry::Never);
        assert_eq!(
            translated(403, "AuthenticationFailed").retry(),
            Retry::Never
        );
    }

    #[test]
    fn an_overload_has_no_effect_and_a_timeout_may_have() {
        let of = |status, code: &str| {
            let status = StatusCode::try_from(status).unwrap();
            ErrorKind::http_response(status, Some(code.to_owned())).into_error()
        };
        assert!(had_no_effect(&of(503, "ServerBusy")));
        assert!(had_no_effect(&of(429, "")));
        assert!(!had_no_effect(&of(500, "OperationTimedOut")));
        assert!(!had_no_effect(&of(503, "")));
        assert!(!had_no_effect(&azure_core::Error::message(
            ErrorKind::Io,
            "closed"
        )));
    }
}
