//! REST: statuses, problems, versions, bodies.

use reqwest::Method;
use serde_json::{Value, json};

use crate::server::Server;
use crate::support::{eventually, text};

const ONE: &str = "name: one\ntasks:\n  - {name: a, kwargs: {cmd: \"true\"}}\n";

/// Method, path, header, body, status and code; a dash stands for nothing.
const FAILURES: &str = "
GET    /nothing                           -             -       404 no_such_route
PUT    /v1/workflows                      -             -       405 method_not_allowed
GET    /v1/workflows/w2                   -             -       404 workflow_not_found
GET    /v1/workflows/_x                   -             -       400 invalid_argument
GET    /v1/workflows/w1/tasks/b           -             -       404 task_not_found
GET    /v1/workflows/w1/tasks/a/output    -             -       404 no_output
GET    /v1/workflows?limit=0              -             -       400 invalid_argument
GET    /v1/workflows?colour=red           -             -       400 invalid_argument
GET    /v1/workflows?page_token=zzz       -             -       400 invalid_page_token
GET    /v1/workflows/w1/graph?format=png  -             -       400 invalid_argument
POST   /v1/workflows                      application/json  broken  400 malformed_body
POST   /v1/workflows                      image/png         broken  415 unsupported_media_type
POST   /v1/workflows                      application/json  invalid 422 invalid_definition
POST   /v1/workflows                      application/json  other   409 different_definition
POST   /v1/workflows/w1/retry             application/json  large   413 too_large
POST   /v1/workflows/w1/retry             -             -       409 nothing_to_retry
DELETE /v1/workflows/w1                   -             -       409 not_terminal
";

fn body(name: &str) -> String {
    match name {
        "broken" => "{".to_owned(),
        "large" => "x".repeat(100_000),
        "invalid" => {
            json!({"definition": {"name": "x", "tasks": [{"name": "a", "depends_on": ["b"]}]}})
                .to_string()
        }
        "other" => {
            let definition = json!({"name": "x", "tasks": [{"name": "b"}]});
            json!({"workflow_id": "w1", "definition": definition}).to_string()
        }
        _ => String::new(),
    }
}

#[tokio::test]
async fn every_failure_is_a_problem_with_its_code_and_request_id() {
    let server = Server::start(&[]);
    server.submit("w1", ONE).await;
    for line in FAILURES.lines().filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [method, path, kind, named, status, code] = words[..] else {
            panic!("{line}");
        };
        let kind = [("content-type", kind)];
        let headers = if kind[0].1 == "-" { &[][..] } else { &kind };
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let answer = server.send(method, path, headers, &body(named)).await;
        assert_eq!(answer.status.to_string(), status, "{line}: {answer:?}");
        assert_eq!(
            answer.header("content-type"),
            "application/problem+json",
            "{line}"
        );
        let problem = answer.json();
        assert_eq!(problem["code"], code, "{line}");
        assert_eq!(problem["status"], answer.status, "{line}");
        assert_eq!(
            problem["instance"],
            path.split('?').next().unwrap(),
            "{line}"
        );
        assert_eq!(
            problem["request_id"],
            answer.header("x-request-id"),
            "{line}"
        );
    }
    let kind = [("content-type", "application/json")];
    let answer = server
        .send(Method::POST, "/v1/workflows", &kind, &body("invalid"))
        .await;
    let error = &answer.json()["errors"][0];
    assert_eq!(error["code"], "unknown_dependency");
    assert_eq!(error["pointer"], "/tasks/0/depends_on/0");
    let answer = server.send(Method::PUT, "/v1/workflows", &[], "").await;
    assert!(answer.header("allow").contains("POST"));
}

#[tokio::test]
async fn a_submit_is_created_once_by_id_and_by_key() {
    let server = Server::start(&[]);
    let body = json!({"definition": ONE, "workflow_id": "w1", "labels": {"team": "nlp"}});
    let first = server.post("/v1/workflows", &body).await;
    assert_eq!(
        (first.status, first.header("location")),
        (201, "/v1/workflows/w1")
    );
    let again = server.post("/v1/workflows", &body).await;
    assert_eq!(again.status, 200);
    assert_eq!(again.json(), json!({"workflow_id": "w1", "created": false}));

    let keyed = [
        ("content-type", "application/yaml"),
        ("idempotency-key", "k 1"),
    ];
    let one = server
        .send(Method::POST, "/v1/workflows", &keyed, ONE)
        .await;
    let two = server
        .send(Method::POST, "/v1/workflows", &keyed, ONE)
        .await;
    assert_eq!((one.status, two.status), (201, 200));
    assert_eq!(one.json()["workflow_id"], two.json()["workflow_id"]);

    let only = json!({"definition": ONE, "validate_only": true});
    let checked = server.post("/v1/workflows", &only).await;
    assert_eq!(
        (checked.status, checked.json()),
        (200, json!({"name": "one", "tasks": 1}))
    );
    let listed = server.get("/v1/workflows?label=team%3Dnlp").await.json();
    assert_eq!(listed["workflows"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_batch_tells_each_its_own() {
    let server = Server::start(&[]);
    let body = json!({"workflows": [
        {"definition": ONE, "workflow_id": "w1"},
        {"definition": "nonsense"},
        {"definition": ONE, "workflow_id": "w2"},
    ]});
    let results = server.post("/v1/workflow-batches", &body).await.json()["results"].clone();
    assert_eq!(results[0]["workflow_id"], "w1");
    assert_eq!(results[1]["problem"]["code"], "invalid_definition");
    assert_eq!(results[2]["workflow_id"], "w2");
}

#[tokio::test]
async fn an_unchanged_workflow_is_not_sent_again() {
    let server = Server::start(&[]);
    server.submit("w1", ONE).await;
    server.until("w1", "running").await;
    for path in ["", "/tasks", "/tasks/a", "/definition"] {
        let path = format!("/v1/workflows/w1{path}");
        let first = server.get(&path).await;
        let etag = first.header("etag");
        assert!(etag.starts_with('"'), "{path}: {first:?}");
        let same = [("if-none-match", etag)];
        let again = server.send(Method::GET, &path, &same, "").await;
        assert_eq!((again.status, again.text.as_str()), (304, ""), "{path}");
        let other = server
            .send(Method::GET, &path, &[("if-none-match", "\"x\"")], "")
            .await;
        assert_eq!(other.status, 200, "{path}");
    }
    let present = server.get("/v1/workflows/w1").await;
    let condition = [("if-match", present.header("etag"))];
    let other = [("if-match", "\"x\"")];
    let refused = server
        .send(Method::POST, "/v1/workflows/w1/cancel", &other, "")
        .await;
    assert_eq!(
        (refused.status, refused.json()["code"].clone()),
        (412, json!("version_mismatch"))
    );
    let cancelled = server
        .send(Method::POST, "/v1/workflows/w1/cancel", &condition, "")
        .await;
    assert_eq!(cancelled.status, 202, "{cancelled:?}");
}

#[tokio::test]
async fn a_task_name_with_slashes_is_one_part_of_a_path() {
    let server = Server::start(&["--worker", "default"]);
    let yaml = "name: one\ntasks:\n  - name: a/b c?d#é\n    kwargs: {cmd: \"jobq task set-output '[1, 2]'\"}\n";
    server.submit("w1", yaml).await;
    server.until("w1", "completed").await;
    let task = "/v1/workflows/w1/tasks/a%2Fb%20c%3Fd%23%C3%A9";
    assert_eq!(server.get(task).await.json()["name"], "a/b c?d#é");
    assert_eq!(server.get(&format!("{task}/output")).await.text, "[1, 2]");
    let gone = server
        .send(Method::POST, "/v1/workflows/w1/cancel", &[], "")
        .await;
    assert_eq!(
        (gone.status, gone.json()["code"].clone()),
        (410, json!("already_terminal"))
    );
}

#[tokio::test]
async fn a_request_keeps_a_plain_id_and_loses_any_other() {
    let server = Server::start(&[]);
    let kept = server
        .send(Method::GET, "/healthz", &[("x-request-id", "mine-1")], "")
        .await;
    assert_eq!(kept.header("x-request-id"), "mine-1");
    let lost = server
        .send(Method::GET, "/healthz", &[("x-request-id", "a b")], "")
        .await;
    assert_eq!(lost.header("x-request-id").len(), 32);
}

#[tokio::test]
async fn the_documentation_is_served_from_the_binary() {
    let server = Server::start(&[]);
    let served: Value = server.get("/openapi.json").await.json();
    assert_eq!(served["info"]["title"], "jobq");
    let page = server.get("/docs/").await;
    assert_eq!(page.status, 200);
    // Everything that the page loads is served here, too.
    for part in page.text.split(['"', '\'']) {
        let is_asset = part.ends_with(".js") || part.ends_with(".css");
        if is_asset {
            assert!(!part.contains("//"), "{part} is elsewhere");
            let name = part.trim_start_matches("./");
            assert_eq!(
                server.get(&format!("/docs/{name}")).await.status,
                200,
                "{part}"
            );
        }
    }
}

#[tokio::test]
async fn a_server_is_ready_as_leader_and_as_standby() {
    let leader = Server::start(&[]);
    let ready = leader.get("/readyz").await;
    assert_eq!(
        (ready.status, ready.json()["role"].clone()),
        (200, json!("leader"))
    );
    let standby = leader.site.spawn(&["serve", "--standby"]);
    let address = crate::server::address(&standby);
    eventually("it stands by", || standby.log().contains("standing by"));
    let url = format!("http://{address}/readyz");
    let ready = reqwest::get(url).await.unwrap().text().await.unwrap();
    let ready: Value = serde_json::from_str(&ready).unwrap();
    assert_eq!(ready["role"], "standby");
}

#[tokio::test]
async fn a_taken_port_and_a_stop_are_told_in_one_line() {
    let mut server = Server::start(&[]);
    let second = server
        .site
        .output(&["serve", "--standby", "--listen", &server.address]);
    assert_eq!(second.status.code(), Some(1));
    let stderr = text(&second.stderr);
    let line = stderr.lines().find(|line| line.starts_with("error: "));
    assert!(line.unwrap().contains("cannot listen on"), "{stderr}");
    assert_eq!(server.running.terminate(), Some(0));
}

#[tokio::test]
async fn metrics_tell_what_happened_without_naming_workflows() {
    let server = Server::start(&["--worker", "default"]);
    server.submit("secret-name", ONE).await;
    server.until("secret-name", "completed").await;
    server.get("/v1/workflows/other").await;
    let answer = server.get("/metrics").await;
    assert!(
        answer
            .header("content-type")
            .starts_with("application/openmetrics-text")
    );
    let value = |line: &str| {
        let found = answer.text.lines().find(|found| found.starts_with(line));
        let found = found.unwrap_or_else(|| panic!("{line} in {}", answer.text));
        found.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    assert!(value("jobq_completions_total{result=\"finished\"}") >= 1.0);
    assert!(value("jobq_pushes_total{result=\"ok\"}") >= 1.0);
    assert!((value("jobq_leader") - 1.0).abs() < f64::EPSILON);
    assert!(value("jobq_lease_remaining_seconds") > 20.0);
    assert!(value("jobq_flush_duration_seconds_count") >= 1.0);
    assert!(value("jobq_cycle_completions_sum") >= 1.0);
    assert!(value("jobq_storage_operations_total{operation=\"blob_put\",outcome=\"ok\"}") >= 2.0);
    let route = "jobq_http_requests_total{route=\"/v1/workflows/{workflow_id}/\",method=\"GET\",status=\"404\"}";
    let other = route.replace("}/", "}");
    let found = [route, &other]
        .iter()
        .any(|route| answer.text.contains(*route));
    assert!(found, "{}", answer.text);
    assert!(!answer.text.contains("secret-name"), "{}", answer.text);

    let mut grpc = crate::grpc::client(&server).await;
    let asked = grpc
        .get_summary(jobq::api::grpc::v1::GetSummaryRequest {})
        .await;
    asked.unwrap();
    let text = server.get("/metrics").await.text;
    let counted = text
        .lines()
        .any(|line| line.starts_with("jobq_http_requests_total{route=\"/jobq.v1.Workflows/"));
    assert!(counted, "{text}");
}
