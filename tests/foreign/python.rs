//! Programs of the Python environment.

use std::process::Command;

use crate::server::Server;
use crate::support::text;

/// Reads of a workflow and its tasks.
const READS: &str = "^(get_workflow|get_definition|get_graph|get_task|get_task_output|list_tasks\
    |explain_task|watch_workflow)$";

/// Test cases of each operation; the seed makes a failure come again.
const CASES: &str = "20";
const SEED: &str = "1";

/// Seconds that the tester may generate for.
const SECONDS: &str = "60";

fn program(name: &str) -> Command {
    let home = std::env::var("JOBQ_TEST_PYTHON").expect("run through scripts/with-python");
    let mut command = Command::new(format!("{home}/bin/{name}"));
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}

#[track_caller]
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let told = text(&output.stdout);
    assert!(output.status.success(), "{told}\n{}", text(&output.stderr));
    told
}

/// The property tester on a server.
fn tester(server: &Server, args: &[&str]) -> Command {
    let ours = |name| format!("{}/tests/foreign/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut command = program("schemathesis");
    command
        .args(["--config-file", &ours("schemathesis.toml"), "run"])
        .args(["--no-color", "--seed", SEED, "--max-examples", CASES])
        .args(args)
        .arg(server.url("/openapi.json"))
        .env("SCHEMATHESIS_HOOKS", ours("hooks.py"))
        // It leaves files where it runs.
        .current_dir(server.site.path());
    command
}

/// Submits two tasks and waits for their end.
async fn ended(server: &Server) {
    let yaml = "name: one\nlabels: {team: nlp}\ntasks:\n\
        \x20 - {name: a/b c, kwargs: {cmd: \"jobq task set-output '[1]'\"}}\n\
        \x20 - {name: d, depends_on: [a/b c], kwargs: {cmd: exit 3}}\n";
    server.submit("w1", yaml).await;
    server.until("w1", "failed").await;
}

#[tokio::test]
async fn whatever_is_asked_the_answer_is_described() {
    // Without a worker, so that no command is run that the tester made up. What it submits does not
    // end then, and neither would its watches.
    let server = Server::start(&[]);
    let everything_else = [
        "--max-time",
        SECONDS,
        "--exclude-operation-id",
        "watch_workflow",
    ];
    let told = run(&mut tester(&server, &everything_else));
    let number = |before: &str| -> usize {
        let rest = told
            .split(before)
            .nth(1)
            .unwrap_or_else(|| panic!("{told}"));
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap()
    };
    let selected = number("Selected: ");
    assert_eq!(number("Tested: "), selected, "{told}");
    assert_eq!(
        number(&format!("Selected: {selected}/")),
        selected + 1,
        "{told}"
    );
}

#[tokio::test]
async fn what_exists_is_read_as_described() {
    let server = Server::start(&["--worker", "default"]);
    ended(&server).await;
    let reads = ["--mode", "positive", "--phases", "fuzzing"];
    let told = run(tester(&server, &reads)
        .args(["--include-operation-id-regex", READS])
        .env("JOBQ_TEST_WORKFLOW", "w1")
        .env("JOBQ_TEST_TASK", "a/b c"));
    assert!(told.contains("8 selected"), "{told}");
}

#[tokio::test]
async fn a_client_that_learns_the_api_by_reflection_goes_through_a_workflows_life() {
    let server = Server::start(&["--worker", "default"]);
    let told = run(program("python").args(["tests/foreign/client.py", &server.address]));
    assert_eq!(told, "ok\n");
}
