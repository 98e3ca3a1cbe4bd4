//! Server, workers and clients as separate processes on one data directory.

use serde_json::Value;

use crate::support::{Site, eventually, text};

const EXAMPLES: [&str; 5] = ["diamond", "sweep", "flaky", "fan", "settled"];

fn state_of(site: &Site, id: &str) -> Value {
    site.json(&["status", id, "-o", "json"])["workflow_state"].clone()
}

#[test]
fn a_server_two_workers_and_a_client_finish_the_examples() {
    let site = Site::new();
    let _server = site.spawn(&["serve"]);
    let _workers = [
        site.spawn(&["worker", "default", "-n", "2"]),
        site.spawn(&["worker", "default"]),
    ];
    let files = EXAMPLES.map(|example| format!("examples/{example}.yaml"));
    let mut args = vec!["submit"];
    args.extend(files.iter().map(String::as_str));
    let ids: Vec<String> = site.stdout(&args).lines().map(str::to_owned).collect();
    assert_eq!(ids.len(), EXAMPLES.len());
    for (id, example) in ids.iter().zip(EXAMPLES) {
        eventually(example, || state_of(&site, id) == "completed");
    }
    // Listings follow the state.
    eventually("the index agrees", || {
        let rows = site.json(&["list", "-o", "json"]);
        rows.as_array()
            .unwrap()
            .iter()
            .all(|row| row["workflow_state"] == "completed")
    });
    let newest_first: Vec<Value> = site
        .json(&["list", "-o", "json"])
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["workflow_id"].clone())
        .collect();
    let submitted_last_first: Vec<Value> = ids
        .iter()
        .rev()
        .map(|id| Value::String(id.clone()))
        .collect();
    assert_eq!(newest_first, submitted_last_first);
}

#[test]
fn a_second_server_refuses_and_names_the_leader() {
    let site = Site::new();
    let mut leader = site.spawn(&["serve"]);
    eventually("the server leads", || leader.log().contains("leading"));
    let output = site.output(&["serve"]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = text(&output.stderr);
    let pid = leader.child.id().to_string();
    for named in [pid.as_str(), "--standby", "--break-lease"] {
        assert!(stderr.contains(named), "{named} in {stderr}");
    }
    assert_eq!(leader.terminate(), Some(0), "a stopped server exits with 0");
    // The lease was released, so the next one leads at once.
    let next = site.spawn(&["serve"]);
    eventually("the next server leads", || next.log().contains("leading"));
}

#[test]
fn killed_workers_and_servers_lose_nothing() {
    let site = Site::new();
    let file = site.definition(
        "chain.yaml",
        "name: chain\ntasks:\n\
         \x20 - {name: a, kwargs: {cmd: sleep 0.3}}\n\
         \x20 - {name: b, depends_on: [a], kwargs: {cmd: sleep 0.3}}\n\
         \x20 - {name: c, depends_on: [b], kwargs: {cmd: sleep 0.3}}\n\
         \x20 - {name: d, depends_on: [c], kwargs: {cmd: \"jobq task set-output '\\\"end\\\"'\"}}\n",
    );
    let serve = ["serve", "--visibility-timeout-s", "2"];
    let work = ["worker", "default", "--visibility-timeout", "2s"];
    let id = site.stdout(&["submit", &file]).trim().to_owned();
    for _ in 0..4 {
        let mut server = site.spawn(&serve);
        let mut worker = site.spawn(&work);
        let before = site.json(&["status", &id, "-o", "json"])["updated_at"].clone();
        eventually("something moves", || {
            let status = site.json(&["status", &id, "-o", "json"]);
            status["updated_at"] != before || status["workflow_state"] == "completed"
        });
        worker.kill();
        server.kill();
    }
    let _server = site.spawn(&serve);
    let _worker = site.spawn(&work);
    eventually("the chain ends", || state_of(&site, &id) == "completed");
    assert_eq!(site.stdout(&["output", &id, "d"]), "\"end\"\n");
}
