//! One trace from the caller to the command and back, collected by a local OTLP receiver.
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod receiver;
#[path = "../cli/support.rs"]
mod support;

use receiver::{Receiver, Span};
use support::{Running, Site, eventually};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

/// Kinds of spans in OTLP.
const SERVER: i32 = 2;
const CLIENT: i32 = 3;
const PRODUCER: i32 = 4;
const CONSUMER: i32 = 5;

fn traceparent(flags: &str) -> String {
    format!("00-{TRACE}-{CALLER}-{flags}")
}

/// A workflow whose tasks write their trace parents into the site; the second fails once.
fn definition(site: &Site) -> String {
    let at = site.path().display();
    format!(
        "name: traced
tasks:
  - name: first
    kwargs: {{ cmd: 'echo -n $TRACEPARENT >{at}/first' }}
  - name: second
    depends_on: [first]
    num_retries: 1
    kwargs: {{ cmd: 'echo -n $TRACEPARENT >{at}/second.$JOBQ_WORKFLOW_ATTEMPT; test $JOBQ_WORKFLOW_ATTEMPT = 2' }}
"
    )
}

fn serve(site: &Site, flags: &[&str]) -> (Running, String) {
    let running = site.spawn(&[&["serve", "--worker", "default"], flags].concat());
    let mut address = String::new();
    eventually("it listens", || {
        let log = running.log();
        let found = log.split("address=").nth(1);
        let found = found.and_then(|rest| rest.split_whitespace().next());
        address = found.unwrap_or_default().to_owned();
        !address.is_empty() && log.contains("leading")
    });
    (running, address)
}

fn submit(address: &str, id: &str, yaml: String, traceparent: Option<String>) {
    let url = format!("http://{address}/v1/workflows?workflow_id={id}");
    let client = reqwest::Client::new().post(url).body(yaml);
    let mut request = client.header("content-type", "application/yaml");
    if let Some(traceparent) = traceparent {
        request = request.header("traceparent", traceparent);
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let answer = runtime.block_on(request.send()).unwrap();
    assert_eq!(answer.status(), 201);
}

fn wait_until_completed(site: &Site, id: &str) {
    eventually("it completes", || {
        site.json(&["status", id, "-o", "json"])["workflow_state"] == "completed"
    });
}

/// Stops a server, which sends the spans that wait.
#[track_caller]
fn stop(mut server: Running) {
    assert_eq!(server.terminate(), Some(0));
}

/// The one span with this name and this task and attempt.
#[track_caller]
fn one<'a>(spans: &'a [Span], name: &str, task: Option<(&str, &str)>) -> &'a Span {
    let found = spans.iter().filter(|span| {
        let is = |key: &str, value| span.attributes.get(key).map(String::as_str) == Some(value);
        span.name == name
            && task.is_none_or(|(task, attempt)| is("task", task) && is("attempt_no", attempt))
    });
    let found: Vec<_> = found.collect();
    assert_eq!(found.len(), 1, "{name} {task:?}: {found:?} of {spans:#?}");
    found[0]
}

#[track_caller]
fn written(site: &Site, name: &str) -> String {
    std::fs::read_to_string(site.path().join(name)).unwrap()
}

/// Checks the chain of one attempt: pushed after `parent`, run, and applied.
#[track_caller]
fn check_attempt(spans: &[Span], parent: &Span, task: &str, attempt: &str, told: &str) {
    let this = Some((task, attempt));
    let push = one(spans, "push", this);
    assert_eq!((&push.parent, push.kind), (&parent.id, PRODUCER));
    let run = one(spans, "attempt", this);
    assert_eq!((&run.parent, run.kind), (&push.id, CONSUMER));
    for span in [push, run] {
        assert_eq!(span.attribute("queue"), "default");
    }
    assert_eq!(told, format!("00-{TRACE}-{}-01", run.id));
    let apply = one(spans, "apply completion", this);
    assert_eq!((&apply.parent, apply.kind), (&run.id, CONSUMER));
    for span in [push, run, apply] {
        assert_eq!(span.attribute("workflow_id"), "traced-1");
        assert_eq!(span.service, "jobq");
    }
}

#[test]
fn a_workflow_is_one_trace_from_the_caller_to_its_commands_and_back() {
    let (receiver, site) = (Receiver::start(), Site::new());
    let (server, address) = serve(&site, &["--otlp-endpoint", &receiver.endpoint]);
    submit(
        &address,
        "traced-1",
        definition(&site),
        Some(traceparent("01")),
    );
    wait_until_completed(&site, "traced-1");
    stop(server);

    let spans = receiver.spans();
    for span in &spans {
        assert_eq!(span.trace, TRACE, "{span:?}");
    }
    let request = one(&spans, "POST /v1/workflows", None);
    assert_eq!((request.parent.as_str(), request.kind), (CALLER, SERVER));
    assert_eq!(request.attribute("http.route"), "/v1/workflows");
    assert_eq!(request.attribute("http.response.status_code"), "201");
    assert!(!request.attribute("request_id").is_empty());
    let submit = one(&spans, "submit", None);
    assert_eq!(submit.parent, request.id);
    assert_eq!(submit.attribute("workflow_id"), "traced-1");
    assert_eq!(submit.attribute("tasks"), "2");
    check_attempt(&spans, submit, "first", "1", &written(&site, "first"));
    check_attempt(&spans, submit, "second", "1", &written(&site, "second.1"));
    check_attempt(&spans, submit, "second", "2", &written(&site, "second.2"));

    let of = |name, attempt| one(&spans, name, Some(("second", attempt)));
    assert!(of("attempt", "1").failed && !of("attempt", "2").failed);
    assert_eq!(of("attempt", "1").attribute("exit_code"), "1");
    assert_eq!(of("apply completion", "1").attribute("result"), "rearmed");
    assert_eq!(of("apply completion", "2").attribute("result"), "finished");
    assert_eq!(spans.len(), 2 + 3 * 3, "{spans:#?}");
}

#[test]
fn the_command_line_hands_its_callers_trace_on() {
    let (receiver, site) = (Receiver::start(), Site::new());
    let file = site.definition("traced.yaml", &definition(&site));
    let export = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &receiver.endpoint);
    let mut jobq = site.jobq(&["run", &file, "--id", "traced-1"]);
    jobq.env(export.0, export.1)
        .env("TRACEPARENT", traceparent("01"));
    jobq.env("OTEL_SERVICE_NAME", "jobq");
    assert!(jobq.output().unwrap().status.success());
    let spans = receiver.spans();
    let submit = one(&spans, "submit", None);
    assert_eq!((&*submit.trace, &*submit.parent), (TRACE, CALLER));
    check_attempt(&spans, submit, "first", "1", &written(&site, "first"));

    let (server, address) = serve(&site, &["--otlp-endpoint", &receiver.endpoint]);
    let file = site.definition("again.yaml", &definition(&site));
    let to = format!("http://{address}");
    let mut jobq = site.jobq(&["submit", &file, "--id", "traced-2", "--server", &to]);
    jobq.env_remove("JOBQ_STORAGE").env(export.0, export.1);
    jobq.env("TRACEPARENT", traceparent("01"));
    assert!(jobq.output().unwrap().status.success());
    wait_until_completed(&site, "traced-2");
    stop(server);
    let spans = receiver.spans();
    let client = one(&spans, "jobq submit", None);
    assert_eq!((&*client.parent, client.kind), (CALLER, CLIENT));
    assert_eq!(one(&spans, "POST /v1/workflows", None).parent, client.id);
}

#[test]
fn a_caller_that_does_not_sample_is_followed_and_nothing_is_sent() {
    let (receiver, site) = (Receiver::start(), Site::new());
    let (server, address) = serve(&site, &["--otlp-endpoint", &receiver.endpoint]);
    submit(
        &address,
        "traced-1",
        definition(&site),
        Some(traceparent("00")),
    );
    wait_until_completed(&site, "traced-1");
    stop(server);
    assert_eq!(receiver.spans().len(), 0, "{:?}", receiver.spans());
    let told = written(&site, "first");
    assert!(
        told.starts_with(&format!("00-{TRACE}-")) && told.ends_with("-00"),
        "{told}"
    );
}

#[test]
fn without_a_collector_the_callers_trace_reaches_the_command_unchanged() {
    let site = Site::new();
    let (server, address) = serve(&site, &[]);
    submit(
        &address,
        "traced-1",
        definition(&site),
        Some(traceparent("01")),
    );
    let at = site.path().display();
    let cmd = format!("'echo -n \"<$TRACEPARENT>\" >{at}/none'");
    let untraced = format!("name: untraced\ntasks:\n  - name: a\n    kwargs: {{ cmd: {cmd} }}\n");
    submit(&address, "untraced", untraced, None);
    wait_until_completed(&site, "traced-1");
    wait_until_completed(&site, "untraced");
    stop(server);
    assert_eq!(written(&site, "first"), traceparent("01"));
    assert_eq!(written(&site, "none"), "<>");
}

#[test]
fn a_collector_that_is_not_there_stops_nothing() {
    let site = Site::new();
    // Nobody listens on port 9 of this machine.
    let (server, address) = serve(&site, &["--otlp-endpoint", "http://127.0.0.1:9"]);
    submit(
        &address,
        "traced-1",
        definition(&site),
        Some(traceparent("01")),
    );
    wait_until_completed(&site, "traced-1");
    stop(server);
}

#[test]
fn a_protocol_that_is_not_spoken_is_refused() {
    let site = Site::new();
    let mut jobq = site.jobq(&["serve", "--otlp-endpoint", "http://127.0.0.1:4318"]);
    jobq.env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf");
    let output = jobq.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(support::text(&output.stderr).contains("OTEL_EXPORTER_OTLP_PROTOCOL"));
}
