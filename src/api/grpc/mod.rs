//! The gRPC API `jobq.v1`, with health, reflection and gRPC-web. Its documentation is in
//! `proto/jobq/v1`.

mod convert;
mod service;
mod status;

use std::time::Instant;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use tonic::service::Routes;
use tonic_web::GrpcWebLayer;

use super::Api;
use crate::limits::DEFINITION_BYTES_MAX;

/// The messages, clients and server traits that the protos describe.
#[allow(
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    clippy::doc_markdown,
    clippy::needless_pass_by_value,
    clippy::semicolon_if_nothing_returned,
    clippy::uninlined_format_args,
    clippy::use_self,
    clippy::or_fun_call,
    clippy::too_many_lines,
    reason = "generated from the protos"
)]
pub mod v1 {
    tonic::include_proto!("jobq.v1");
}

/// The protos as a serialized descriptor set, source comments included.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/jobq.v1.bin"));

/// The services, as routes beside the others.
///
/// # Panics
/// If the descriptors built into this program are broken.
pub(super) async fn router(api: Api) -> Router {
    let workflows = v1::workflows_server::WorkflowsServer::new(api)
        .max_decoding_message_size(DEFINITION_BYTES_MAX);
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter
        .set_serving::<v1::workflows_server::WorkflowsServer<Api>>()
        .await;
    let described = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let reflection = described().build_v1().expect("our descriptors are whole");
    // Clients that only know the older name of the same service.
    let older = described()
        .build_v1alpha()
        .expect("our descriptors are whole");
    let routes = Routes::new(workflows)
        .add_service(health)
        .add_service(reflection)
        .add_service(older);
    // What is at no path of either API is for REST to tell.
    routes
        .into_axum_router()
        .reset_fallback()
        .layer(GrpcWebLayer::new())
}

/// Counts requests by service; REST's are counted where their ids are.
pub(super) async fn count(State(api): State<Api>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    // What is at no path of ours has no bound.
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or_else(|| "none".to_owned(), |matched| matched.as_str().to_owned());
    let response = next.run(request).await;
    let status = response.status().as_u16();
    api.metrics.http(&route, "POST", status, started.elapsed());
    response
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use prost_types::{FileDescriptorProto, FileDescriptorSet};

    use super::DESCRIPTORS;
    use super::v1::{TaskState as WireTaskState, WorkflowState as WireWorkflowState};
    use crate::workflow::{TaskState, WorkflowState};

    fn our_files() -> Vec<FileDescriptorProto> {
        let files = FileDescriptorSet::decode(DESCRIPTORS).unwrap().file;
        files
            .into_iter()
            .filter(|file| file.package() == "jobq.v1")
            .collect()
    }

    /// Everything in a file has a place in its source info; what is documented has a comment.
    fn undocumented(file: &FileDescriptorProto) -> Vec<Vec<i32>> {
        // Paths of declarations: services, methods, messages, fields, enums, values.
        let is_declaration = |path: &[i32]| matches!(path, [4..=6, _] | [4..=6, _, 2, _]);
        let info = file.source_code_info.as_ref().unwrap();
        let places = info
            .location
            .iter()
            .filter(|place| is_declaration(&place.path));
        let bare = places.filter(|place| place.leading_comments().trim().is_empty());
        bare.map(|place| place.path.clone()).collect()
    }

    #[test]
    fn every_declaration_of_the_protos_is_documented() {
        let files = our_files();
        assert!(!files.is_empty());
        for file in files {
            assert_eq!(
                undocumented(&file),
                Vec::<Vec<i32>>::new(),
                "{}",
                file.name()
            );
        }
    }

    #[test]
    fn the_states_of_the_protos_are_those_of_the_model() {
        for state in WorkflowState::ALL {
            let name = format!("WORKFLOW_STATE_{}", state.as_str().to_uppercase());
            assert!(WireWorkflowState::from_str_name(&name).is_some(), "{name}");
        }
        for state in TaskState::ALL {
            let name = format!("TASK_STATE_{}", state.as_str().to_uppercase());
            assert!(WireTaskState::from_str_name(&name).is_some(), "{name}");
        }
    }
}
