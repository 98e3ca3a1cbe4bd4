//! Server, workers and clients as separate processes on the emulator.

use crate::emulator;
use crate::support::{eventually, text};

const EXAMPLES: [&str; 5] = ["diamond", "sweep", "flaky", "fan", "settled"];

/// The examples send their tasks to the queue `default`; other tests must not take them.
fn definitions(site: &crate::support::Site, queue: &str) -> Vec<String> {
    let read = |example| std::fs::read_to_string(format!("examples/{example}.yaml")).unwrap();
    let redirected = EXAMPLES.map(|example| {
        let text = format!("default_queue: {queue}\n{}", read(example));
        site.definition(&format!("{example}.yaml"), &text)
    });
    redirected.to_vec()
}

#[test]
fn a_server_and_two_workers_finish_every_example() {
    let prefix = emulator::prefix();
    let site = emulator::site(&prefix);
    let queue = prefix.to_lowercase();
    let _server = site.spawn(&["serve"]);
    let _workers = [
        site.spawn(&["worker", &queue, "-n", "2"]),
        site.spawn(&["worker", &queue, "-n", "2"]),
    ];
    let files = definitions(&site, &queue);
    let mut args = vec!["submit"];
    args.extend(files.iter().map(String::as_str));
    let ids: Vec<String> = site.stdout(&args).lines().map(str::to_owned).collect();
    assert_eq!(ids.len(), EXAMPLES.len());
    for (id, example) in ids.iter().zip(EXAMPLES) {
        eventually(example, || {
            site.json(&["status", id, "-o", "json"])["workflow_state"] == "completed"
        });
    }
    eventually("the index agrees", || {
        let rows = site.json(&["list", "-o", "json"]);
        let rows = rows.as_array().unwrap();
        rows.len() == ids.len() && rows.iter().all(|row| row["workflow_state"] == "completed")
    });
}

#[test]
fn a_second_server_refuses_and_the_lease_is_free_after_the_first() {
    let site = emulator::site(&emulator::prefix());
    let mut leader = site.spawn(&["serve"]);
    eventually("the server leads", || leader.log().contains("leading"));
    let refused = site.output(&["serve"]);
    assert_eq!(refused.status.code(), Some(1));
    let stderr = text(&refused.stderr);
    assert!(stderr.contains(&leader.child.id().to_string()), "{stderr}");
    assert_eq!(leader.terminate(), Some(0));
    let next = site.spawn(&["serve"]);
    eventually("the next server leads", || next.log().contains("leading"));
}

#[test]
fn a_killed_worker_and_server_lose_nothing() {
    let prefix = emulator::prefix();
    let site = emulator::site(&prefix);
    let queue = prefix.to_lowercase();
    let file = site.definition(
        "chain.yaml",
        &format!(
            "name: chain\ndefault_queue: {queue}\ntasks:\n\
             \x20 - {{name: a, kwargs: {{cmd: sleep 0.5}}}}\n\
             \x20 - {{name: b, depends_on: [a], kwargs: {{cmd: sleep 0.5}}}}\n\
             \x20 - {{name: c, depends_on: [b], kwargs: {{cmd: \"jobq task set-output '\\\"end\\\"'\"}}}}\n"
        ),
    );
    let work = ["worker", &queue, "--visibility-timeout", "2s"];
    let id = site.stdout(&["submit", &file]).trim().to_owned();
    let status = || site.json(&["status", &id, "-o", "json"]);
    let mut server = site.spawn(&["serve"]);
    let mut worker = site.spawn(&work);
    let begun = |status: &serde_json::Value| status["workflow_state"] != "pending";
    eventually("it begins", || begun(&status()));
    worker.kill();
    server.kill();
    // The dead server's lease is broken, as a person who knows that it is dead would do.
    let _server = site.spawn(&["serve", "--break-lease"]);
    let _worker = site.spawn(&work);
    eventually("the chain ends", || {
        status()["workflow_state"] == "completed"
    });
    assert_eq!(site.stdout(&["output", &id, "c"]), "\"end\"\n");
}
