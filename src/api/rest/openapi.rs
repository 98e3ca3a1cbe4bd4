//! The API's description.

use utoipa::OpenApi;

use super::{admin, tasks, watch, workflows};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "jobq",
        description = "A control plane for DAG workflows over job queues. Errors are RFC 9457 problems with stable codes."
    ),
    tags(
        (name = "workflows", description = "Submit, list, read, cancel, retry and delete workflows"),
        (name = "tasks", description = "Read tasks, their outputs, and why they are where they are"),
        (name = "operations", description = "Health, counts and cleaning up"),
    ),
    components(schemas(
        super::problem::Problem,
        super::described::DefinitionForm,
        super::described::TaskForm,
        super::described::TerminalState,
        super::described::GraphFormat,
        super::described::LabelParam,
        crate::control::ListOrder,
        crate::control::WatchEvent,
    )),
    paths(
        workflows::submit,
        workflows::submit_batch,
        workflows::list,
        workflows::get,
        workflows::definition,
        workflows::graph,
        workflows::cancel,
        workflows::retry,
        workflows::delete,
        watch::watch,
        tasks::list,
        tasks::get,
        tasks::output,
        tasks::explain,
        admin::purge,
        admin::summary,
        admin::coordinator,
        admin::doctor,
        admin::doctor_fix,
        admin::metrics,
        admin::healthz,
        admin::readyz,
    )
)]
struct Document;

/// The description, as served at `/openapi.json` and committed in `openapi/`.
#[must_use]
pub fn document() -> utoipa::openapi::OpenApi {
    Document::openapi()
}
