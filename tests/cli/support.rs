//! What the tests of the binary share, in several targets, none of which uses all of it.
#![allow(dead_code, reason = "each target uses its part")]
#![expect(unreachable_pub, reason = "a helper of this test target")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// How long anything may take before a test gives up; `JOBQ_TEST_PATIENCE_S` changes it.
pub fn patience() -> Duration {
    let seconds = std::env::var("JOBQ_TEST_PATIENCE_S")
        .ok()
        .and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(60))
}

/// A place of its own to work in, gone with the value.
pub struct Site {
    directory: TempDir,
    environment: Vec<(String, String)>,
}

impl Site {
    /// A site with a data directory.
    pub fn new() -> Self {
        let mut site = Self::with_environment([]);
        let data = format!("sqlite:{}", site.path().join("data").display());
        site.environment.push(("JOBQ_STORAGE".to_owned(), data));
        site
    }

    /// A site whose processes find their storage by these variables.
    pub fn with_environment<const N: usize>(variables: [(&str, String); N]) -> Self {
        let environment = variables.map(|(name, value)| (name.to_owned(), value));
        Self {
            directory: tempfile::tempdir().unwrap(),
            environment: environment.to_vec(),
        }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The binary, on this site's storage and with nothing inherited from our environment
    /// but what a shell needs.
    pub fn jobq(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jobq"));
        command
            .args(args)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("JOBQ_LISTEN", "127.0.0.1:0")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }

    /// Runs the binary to its end.
    #[track_caller]
    pub fn output(&self, args: &[&str]) -> Output {
        self.jobq(args).output().unwrap()
    }

    /// Runs the binary, which must succeed, and gives what it printed.
    #[track_caller]
    pub fn stdout(&self, args: &[&str]) -> String {
        let output = self.output(args);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{args:?}: {}",
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    /// As [`stdout`](Self::stdout), parsed.
    #[track_caller]
    pub fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.stdout(args)).unwrap()
    }

    /// Writes a definition into the site.
    pub fn definition(&self, name: &str, text: &str) -> String {
        let path = self.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// Starts the binary in the background; it is killed with the value.
    pub fn spawn(&self, args: &[&str]) -> Running {
        let log = self.path().join(format!("{}-{}.log", args[0], unique()));
        let file = std::fs::File::create(&log).unwrap();
        let child = self
            .jobq(args)
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn()
            .unwrap();
        Running { child, log }
    }
}

fn unique() -> usize {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A process in the background.
pub struct Running {
    pub child: Child,
    log: PathBuf,
}

impl Running {
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends SIGTERM and waits for the end; the exit code.
    #[track_caller]
    pub fn terminate(&mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &pid])
                .status()
                .unwrap()
                .success()
        );
        self.wait()
    }

    /// Waits for the end; the exit code.
    #[track_caller]
    pub fn wait(&mut self) -> Option<i32> {
        let mut status = None;
        eventually("the process ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        if std::thread::panicking() {
            eprintln!("--- {}\n{}", self.log.display(), self.log());
        }
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Waits until something holds.
#[track_caller]
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let give_up_at = Instant::now() + patience();
    while !holds() {
        assert!(Instant::now() < give_up_at, "gave up waiting: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
