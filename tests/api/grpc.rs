//! gRPC: the service, its errors, health, reflection and gRPC-web.

use jobq::api::grpc::v1;
use jobq::api::grpc::v1::workflows_client::WorkflowsClient;
use tonic::Code;
use tonic::transport::Channel;
use tonic_types::StatusExt as _;

use crate::server::Server;

const ONE: &str = "name: one\ntasks:\n  - {name: a, kwargs: {cmd: \"true\"}}\n";

pub(super) async fn client(server: &Server) -> WorkflowsClient<Channel> {
    WorkflowsClient::connect(server.url("")).await.unwrap()
}

fn submit(id: &str, definition: &str) -> v1::SubmitWorkflowRequest {
    v1::SubmitWorkflowRequest {
        workflow_id: id.to_owned(),
        definition: definition.to_owned(),
        ..v1::SubmitWorkflowRequest::default()
    }
}

#[tokio::test]
async fn a_workflow_is_submitted_and_watched_to_its_end() {
    let server = Server::start(&["--worker", "default"]);
    let mut client = client(&server).await;
    let created = client.submit_workflow(submit("w1", ONE)).await.unwrap();
    assert!(created.into_inner().created);
    let request = v1::WatchWorkflowRequest {
        workflow_id: "w1".to_owned(),
        ..v1::WatchWorkflowRequest::default()
    };
    let mut events = client.watch_workflow(request).await.unwrap().into_inner();
    let mut kinds = Vec::new();
    while let Some(event) = events.message().await.unwrap() {
        use v1::watch_workflow_response::Event;
        kinds.push(match event.event.unwrap() {
            Event::Snapshot(_) => "snapshot",
            Event::Changes(_) => "changes",
            Event::Gap(_) => "gap",
            Event::End(_) => "end",
        });
    }
    assert_eq!((kinds[0], *kinds.last().unwrap()), ("snapshot", "end"));
    let request = v1::GetWorkflowRequest {
        workflow_id: "w1".to_owned(),
    };
    let workflow = client.get_workflow(request).await.unwrap().into_inner();
    assert_eq!(workflow.workflow_state(), v1::WorkflowState::Completed);
}

#[tokio::test]
async fn errors_carry_the_code_and_everything_that_is_wrong() {
    let server = Server::start(&[]);
    let mut client = client(&server).await;
    let invalid = "name: x\ntasks:\n  - {name: a, depends_on: [b]}\n  - {name: a}\n";
    let status = client
        .submit_workflow(submit("", invalid))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    let details = status.get_error_details();
    assert_eq!(details.error_info().unwrap().reason, "invalid_definition");
    assert_eq!(details.bad_request().unwrap().field_violations.len(), 2);

    let request = v1::CancelWorkflowRequest {
        workflow_id: "none".to_owned(),
    };
    let status = client.cancel_workflow(request).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    let reason = status
        .get_error_details()
        .error_info()
        .unwrap()
        .reason
        .clone();
    assert_eq!(reason, "workflow_not_found");
}

#[tokio::test]
async fn lists_go_page_by_page() {
    let server = Server::start(&[]);
    let mut client = client(&server).await;
    for n in 0..5 {
        client
            .submit_workflow(submit(&format!("w{n}"), ONE))
            .await
            .unwrap();
    }
    let mut request = v1::ListWorkflowsRequest {
        limit: 2,
        order: v1::ListOrder::Id.into(),
        ..v1::ListWorkflowsRequest::default()
    };
    let mut ids = Vec::new();
    loop {
        let page = client
            .list_workflows(request.clone())
            .await
            .unwrap()
            .into_inner();
        ids.extend(
            page.workflows
                .into_iter()
                .map(|workflow| workflow.workflow_id),
        );
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            break;
        }
    }
    assert_eq!(ids, ["w0", "w1", "w2", "w3", "w4"]);
}

#[tokio::test]
async fn health_is_served_and_grpc_web_is_spoken_over_http_1() {
    let server = Server::start(&[]);
    let channel = Channel::from_shared(server.url(""))
        .unwrap()
        .connect()
        .await
        .unwrap();
    let mut health = tonic_health::pb::health_client::HealthClient::new(channel);
    let request = tonic_health::pb::HealthCheckRequest {
        service: "jobq.v1.Workflows".to_owned(),
    };
    let answer = health.check(request).await.unwrap().into_inner();
    assert_eq!(
        answer.status(),
        tonic_health::pb::health_check_response::ServingStatus::Serving
    );

    // An empty message in a frame of gRPC-web.
    let web = [
        ("content-type", "application/grpc-web+proto"),
        ("x-grpc-web", "1"),
    ];
    let path = "/jobq.v1.Workflows/GetSummary";
    let answer = server
        .send(reqwest::Method::POST, path, &web, "\0\0\0\0\0")
        .await;
    assert_eq!(answer.status, 200);
    assert!(
        answer
            .header("content-type")
            .starts_with("application/grpc-web")
    );
    assert!(answer.text.contains("grpc-status:0"), "{:?}", answer.text);
}
