//! Watching over HTTP.

use futures::StreamExt as _;
use serde_json::Value;

use crate::server::Server;

const CHAIN: &str = "name: chain\ntasks:\n\
    \x20 - {name: a, kwargs: {cmd: sleep 0.2}}\n\
    \x20 - {name: b, depends_on: [a], kwargs: {cmd: sleep 0.2}}\n\
    \x20 - {name: c, depends_on: [b], kwargs: {cmd: sleep 0.2}}\n";

/// Reads server-sent events until `done`; each as its id and its data.
async fn events(
    server: &Server,
    path: &str,
    last_event_id: Option<&str>,
    mut done: impl FnMut(&Value) -> bool,
) -> Vec<(String, Value)> {
    let mut request = reqwest::Client::new().get(server.url(path));
    if let Some(id) = last_event_id {
        request = request.header("last-event-id", id);
    }
    let mut body = request.send().await.unwrap().bytes_stream();
    let (mut text, mut events) = (String::new(), Vec::new());
    while let Some(bytes) = body.next().await {
        text.push_str(std::str::from_utf8(&bytes.unwrap()).unwrap());
        while let Some((block, rest)) = text.split_once("\n\n") {
            let field = |name: &str| {
                let mut lines = block.lines().filter_map(|line| line.strip_prefix(name));
                lines.next().unwrap_or_default().trim().to_owned()
            };
            let (id, data) = (field("id:"), field("data:"));
            if !data.is_empty() {
                let data: Value = serde_json::from_str(&data).unwrap();
                let last = done(&data);
                events.push((id, data));
                if last {
                    return events;
                }
            }
            text = rest.to_owned();
        }
    }
    events
}

/// The tasks and states that events tell.
fn told(events: &[(String, Value)]) -> Vec<(String, String)> {
    let changes = events
        .iter()
        .filter_map(|(_, data)| data["changes"].as_array());
    let each = changes.flatten().map(|change| {
        let text = |name: &str| change[name].as_str().unwrap().to_owned();
        (text("task"), text("state"))
    });
    each.collect()
}

#[tokio::test]
async fn a_watcher_that_is_cut_off_and_resumes_sees_every_change_once() {
    let server = Server::start(&["--worker", "default"]);
    server.submit("w1", CHAIN).await;
    let path = "/v1/workflows/w1/watch";
    // Cut off once something has completed.
    let is_first = |data: &Value| data.to_string().contains("\"completed\"");
    let before = events(&server, path, None, is_first).await;
    assert_eq!(before[0].1["event"], "snapshot");
    let (token, _) = before
        .iter()
        .rfind(|(id, _)| !id.is_empty())
        .unwrap()
        .clone();
    let after = events(&server, path, Some(&token), |data| data["event"] == "end").await;
    assert_ne!(after[0].1["event"], "gap", "{after:?}");
    assert!(
        after.iter().all(|(_, data)| data["event"] != "snapshot"),
        "{after:?}"
    );
    let mut all = told(&before);
    all.extend(told(&after));
    for task in ["b", "c"] {
        let seen = all
            .iter()
            .filter(|(name, state)| name == task && state == "completed");
        assert_eq!(seen.count(), 1, "{task}: {all:?}");
    }
    let mut distinct = all.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(
        distinct.len(),
        all.len(),
        "a change was told twice: {all:?}"
    );
}

#[tokio::test]
async fn a_stopping_server_ends_its_watches() {
    let mut server = Server::start(&[]);
    server.submit("w1", CHAIN).await;
    let url = server.url("/v1/workflows/w1/watch");
    let mut body = reqwest::get(url).await.unwrap().bytes_stream();
    assert!(body.next().await.unwrap().is_ok());
    let reading = tokio::spawn(async move { while body.next().await.is_some() {} });
    assert_eq!(server.running.terminate(), Some(0));
    reading.await.unwrap();
}

#[tokio::test]
async fn a_caller_that_has_gone_silent_holds_no_stop_up() {
    let mut server = Server::start(&[]);
    // It connects, begins a request, and never ends it.
    let mut silent = std::net::TcpStream::connect(&server.address).unwrap();
    std::io::Write::write_all(&mut silent, b"GET /healthz HTTP/1.1\r\n").unwrap();
    // A connection over HTTP/2 whose owner does not read from it while this thread waits.
    let _grpc = crate::grpc::client(&server).await;
    assert_eq!(server.running.terminate(), Some(0));
}
