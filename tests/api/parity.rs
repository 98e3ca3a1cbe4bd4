//! Each use case gives the same by REST, by gRPC, and by the command line on the storage and through the
//! server.

use jobq::api::grpc::v1;
use reqwest::Method;
use serde_json::{Value, json};

use crate::server::Server;

const FLOW: &str = "name: flow\nlabels: {team: nlp}\ntasks:\n\
    \x20 - {name: good, kwargs: {cmd: \"jobq task set-output '{\\\"n\\\": 1}'\"}}\n\
    \x20 - {name: bad, kwargs: {cmd: exit 3}}\n\
    \x20 - {name: child, depends_on: [bad]}\n";

/// The command line, on the storage and through the server.
struct Cli<'a>(&'a Server, bool);

impl Cli<'_> {
    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.text(args)).unwrap()
    }

    fn text(&self, args: &[&str]) -> String {
        let url = self.0.url("");
        let mut args = args.to_vec();
        if self.1 {
            args.extend(["--server", &url]);
        }
        self.0.site.stdout(&args)
    }
}

/// A server with `w1` failed and `w2` completed.
async fn server() -> Server {
    let server = Server::start(&["--worker", "default"]);
    server.submit("w1", FLOW).await;
    server.until("w1", "failed").await;
    server
        .submit(
            "w2",
            "name: one\ntasks: [{name: a, kwargs: {cmd: \"true\"}}]\n",
        )
        .await;
    server.until("w2", "completed").await;
    // Listings follow within two seconds.
    let give_up_at = std::time::Instant::now() + crate::support::patience();
    while server
        .get("/v1/workflows?state=failed,completed")
        .await
        .json()["workflows"]
        .as_array()
        .unwrap()
        .len()
        < 2
    {
        assert!(std::time::Instant::now() < give_up_at);
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    server
}

fn of<'v>(values: &'v Value, field: &str) -> Vec<&'v Value> {
    values
        .as_array()
        .unwrap()
        .iter()
        .map(|value| &value[field])
        .collect()
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one look at each use case, in a row")]
async fn reads_agree() {
    let server = server().await;
    let mut grpc = crate::grpc::client(&server).await;
    let rest = async |path: &str| server.get(&format!("/v1/{path}")).await;
    let workflow = rest("workflows/w1").await.json();
    let tasks = rest("workflows/w1/tasks").await.json()["tasks"].clone();
    let listed = rest("workflows").await.json()["workflows"].clone();
    let output = rest("workflows/w1/tasks/good/output").await.text;
    let definition = rest("workflows/w1/definition").await.text;
    let explanation = rest("workflows/w1/tasks/bad/explain").await.json();
    let graph = rest("workflows/w1/graph?format=dot").await.text;
    let summary = rest("summary").await.json();
    for through_server in [false, true] {
        let cli = Cli(&server, through_server);
        assert_eq!(cli.json(&["status", "w1", "-o", "json"]), workflow);
        assert_eq!(cli.json(&["tasks", "w1", "-o", "json"]), tasks);
        assert_eq!(cli.json(&["list", "-o", "json"]), listed);
        assert_eq!(cli.text(&["output", "w1", "good"]).trim(), output);
        assert_eq!(cli.text(&["definition", "w1"]).trim(), definition);
        assert_eq!(
            cli.json(&["explain", "w1", "bad", "-o", "json"]),
            explanation
        );
        assert_eq!(cli.text(&["graph", "w1"]), graph);
        assert_eq!(cli.json(&["summary", "-o", "json"]), summary);
    }

    let id = || "w1".to_owned();
    let found = grpc.get_workflow(v1::GetWorkflowRequest { workflow_id: id() });
    let found = found.await.unwrap().into_inner();
    assert_eq!(found.name, workflow["name"]);
    assert_eq!(found.error, workflow["error"]);
    assert_eq!(found.labels["team"], workflow["labels"]["team"]);
    assert_eq!(found.workflow_state(), v1::WorkflowState::Failed);
    let request = v1::ListTasksRequest {
        workflow_id: id(),
        ..Default::default()
    };
    let found = grpc.list_tasks(request).await.unwrap().into_inner().tasks;
    for (field, of_task) in [
        (
            "name",
            found
                .iter()
                .map(|task| json!(task.name))
                .collect::<Vec<_>>(),
        ),
        (
            "attempt_no",
            found.iter().map(|task| json!(task.attempt_no)).collect(),
        ),
        (
            "queue",
            found.iter().map(|task| json!(task.queue)).collect(),
        ),
        (
            "depends_on",
            found.iter().map(|task| json!(task.depends_on)).collect(),
        ),
    ] {
        assert_eq!(
            of(&tasks, field),
            of_task.iter().collect::<Vec<_>>(),
            "{field}"
        );
    }
    let request = v1::GetTaskOutputRequest {
        workflow_id: id(),
        task: "good".to_owned(),
    };
    let found = grpc.get_task_output(request).await.unwrap().into_inner();
    assert_eq!(found.json, output.as_bytes());
    let request = v1::GetDefinitionRequest { workflow_id: id() };
    assert_eq!(
        grpc.get_definition(request)
            .await
            .unwrap()
            .into_inner()
            .json,
        definition
    );
    let request = v1::ExplainTaskRequest {
        workflow_id: id(),
        task: "bad".to_owned(),
    };
    let found = grpc
        .explain_task(request)
        .await
        .unwrap()
        .into_inner()
        .findings;
    let codes: Vec<_> = found.iter().map(|finding| json!(finding.code)).collect();
    assert_eq!(
        of(&explanation["findings"], "code"),
        codes.iter().collect::<Vec<_>>()
    );
    let request = v1::GetGraphRequest {
        workflow_id: id(),
        format: v1::GraphFormat::Dot.into(),
        ..Default::default()
    };
    assert_eq!(
        grpc.get_graph(request).await.unwrap().into_inner().text,
        graph
    );
    let found = grpc
        .get_summary(v1::GetSummaryRequest {})
        .await
        .unwrap()
        .into_inner();
    assert_eq!(json!(found.workflows), summary["workflows"]);
    let found = grpc.list_workflows(v1::ListWorkflowsRequest::default());
    let found = found.await.unwrap().into_inner().workflows;
    let ids: Vec<_> = found
        .iter()
        .map(|workflow| json!(workflow.workflow_id))
        .collect();
    assert_eq!(of(&listed, "workflow_id"), ids.iter().collect::<Vec<_>>());
}

#[tokio::test]
async fn a_doctor_says_the_same_everywhere_and_fails_by_its_exit_code() {
    let mut server = server().await;
    let report = server.get("/v1/doctor").await.json();
    assert_eq!(report["status"], "ok", "{report}");
    let codes = |report: &Value| {
        let checks = report["checks"].as_array().unwrap().iter();
        let each = checks.map(|check| (check["code"].clone(), check["status"].clone()));
        each.collect::<Vec<_>>()
    };
    for through_server in [false, true] {
        let found = Cli(&server, through_server).json(&["doctor", "-o", "json"]);
        assert_eq!(codes(&found), codes(&report));
    }
    let mut grpc = crate::grpc::client(&server).await;
    let found = grpc
        .run_doctor(v1::RunDoctorRequest::default())
        .await
        .unwrap()
        .into_inner();
    assert_eq!(found.status(), v1::CheckStatus::Ok);
    assert_eq!(found.checks.len(), codes(&report).len());
    let fixed = server
        .send(Method::POST, "/v1/doctor/fix", &[], "")
        .await
        .json();
    assert_eq!(fixed["fixed"], 0);

    server.running.terminate();
    let output = server.site.output(&["doctor"]);
    assert_eq!(output.status.code(), Some(1));
    let text = crate::support::text(&output.stdout);
    assert!(text.contains("FAIL leader"), "{text}");
}

#[tokio::test]
async fn a_retry_asked_and_done_agrees() {
    let server = server().await;
    let expected = json!({"tasks": ["bad", "child"], "dry_run": true});
    let asked = server
        .post("/v1/workflows/w1/retry", &json!({"dry_run": true}))
        .await;
    assert_eq!((asked.status, asked.json()), (200, expected.clone()));
    let mut grpc = crate::grpc::client(&server).await;
    let request = v1::RetryWorkflowRequest {
        workflow_id: "w1".to_owned(),
        dry_run: true,
        ..Default::default()
    };
    let found = grpc.retry_workflow(request).await.unwrap().into_inner();
    assert_eq!(
        (found.tasks, found.dry_run),
        (vec!["bad".to_owned(), "child".to_owned()], true)
    );
    for through_server in [false, true] {
        let cli = Cli(&server, through_server);
        assert_eq!(
            cli.json(&["retry", "w1", "--dry-run", "-o", "json"]),
            expected
        );
        // It fails again each time.
        assert_eq!(cli.text(&["retry", "w1"]), "bad\nchild\n");
        let again = async || server.get("/v1/workflows/w1/tasks/bad").await.json();
        let lives = if through_server { 2 } else { 1 };
        server.until("w1", "failed").await;
        assert_eq!(again().await["retry_no"], lives);
    }
}

#[tokio::test]
async fn what_is_deleted_or_purged_is_gone_everywhere() {
    let server = server().await;
    let mut grpc = crate::grpc::client(&server).await;
    let purge = json!({"older_than_s": 0, "dry_run": true});
    let asked = server.post("/v1/purge", &purge).await.json();
    let mut ids = asked["workflow_ids"].as_array().unwrap().clone();
    ids.sort_by_key(ToString::to_string);
    assert_eq!(ids, [json!("w1"), json!("w2")]);
    for through_server in [false, true] {
        let args = ["purge", "--older-than", "0", "--dry-run", "-o", "json"];
        assert_eq!(Cli(&server, through_server).json(&args), asked);
    }
    let request = v1::PurgeWorkflowsRequest {
        dry_run: true,
        ..Default::default()
    };
    let found = grpc.purge_workflows(request).await.unwrap().into_inner();
    assert_eq!(json!(found.workflow_ids), asked["workflow_ids"]);

    let request = v1::DeleteWorkflowRequest {
        workflow_id: "w1".to_owned(),
        force: false,
    };
    grpc.delete_workflow(request).await.unwrap();
    assert_eq!(server.get("/v1/workflows/w1").await.status, 404);
    let gone = server
        .send(Method::DELETE, "/v1/workflows/w2", &[], "")
        .await;
    assert_eq!(gone.status, 204);
    assert_eq!(Cli(&server, true).json(&["list", "-o", "json"]), json!([]));
}

#[tokio::test]
async fn submits_and_cancels_by_every_way_are_one() {
    let server = Server::start(&[]);
    let mut grpc = crate::grpc::client(&server).await;
    let yaml = "name: one\ntasks: [{name: a}]\n";
    server.submit("w1", yaml).await;
    let request = v1::SubmitWorkflowRequest {
        workflow_id: "w1".to_owned(),
        definition: yaml.to_owned(),
        ..Default::default()
    };
    assert!(
        !grpc
            .submit_workflow(request)
            .await
            .unwrap()
            .into_inner()
            .created
    );
    let file = server.site.definition("one.yaml", yaml);
    for through_server in [false, true] {
        let submitted = Cli(&server, through_server).text(&["submit", "--id", "w1", &file]);
        assert_eq!(submitted, "w1\n");
    }
    // No worker takes the task, so each is still there to be cancelled.
    for id in ["w2", "w3", "w4"] {
        server.submit(id, yaml).await;
    }
    let answer = server
        .send(Method::POST, "/v1/workflows/w1/cancel", &[], "")
        .await;
    assert_eq!(answer.status, 202);
    let request = v1::CancelWorkflowRequest {
        workflow_id: "w2".to_owned(),
    };
    grpc.cancel_workflow(request).await.unwrap();
    Cli(&server, false).text(&["cancel", "w3"]);
    Cli(&server, true).text(&["cancel", "w4"]);
    for id in ["w1", "w2", "w3", "w4"] {
        let asked = async || server.get(&format!("/v1/workflows/{id}")).await.json();
        let give_up_at = std::time::Instant::now() + crate::support::patience();
        while asked().await["cancel_requested"] != true {
            assert!(
                std::time::Instant::now() < give_up_at,
                "{id} is not cancelled"
            );
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
}

#[tokio::test]
async fn a_server_and_a_storage_are_not_asked_together() {
    let server = Server::start(&[]);
    let url = server.url("");
    let output = server
        .site
        .output(&["list", "--server", &url, "--storage", "sqlite:./x"]);
    assert_eq!(output.status.code(), Some(2));
    let unreachable = server
        .site
        .output(&["list", "--server", "http://127.0.0.1:1"]);
    assert_eq!(unreachable.status.code(), Some(1));
    let stderr = crate::support::text(&unreachable.stderr);
    assert!(stderr.contains("cannot reach the server"), "{stderr}");
}
