//! What a command prints: read without pause, kept within bounds.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStderr, ChildStdout};
use tokio_util::sync::CancellationToken;

use crate::limits::{ATTEMPT_LOG_BYTES_MAX, ERROR_BYTES_MAX};

/// How long a pipe is read after the command ended. Only a process that left the command's group
/// can hold it open longer, and nobody waits for those.
const PIPE_GRACE: Duration = Duration::from_millis(500);

const CHUNK_BYTES: usize = 16 * 1024;

/// What was kept.
pub(super) struct Captured {
    /// The end of stderr.
    pub(super) stderr_tail: String,
    /// Both streams as they came; `None` if nothing was printed, or the log could not be written.
    pub(super) log: Option<AttemptLog>,
}

/// Reads both pipes until they close, or until shortly after `ended`. What cannot be kept is read
/// all the same: a command must never block on a full pipe.
pub(super) async fn capture(
    (stdout, stderr): (Option<ChildStdout>, Option<ChildStderr>),
    dir: &Path,
    ended: CancellationToken,
) -> Captured {
    let mut log = LogWriter::new(dir);
    let mut tail = Tail::default();
    let (mut stdout, mut stderr) = (Pipe::new(stdout), Pipe::new(stderr));
    let cut_off = async {
        ended.cancelled().await;
        tokio::time::sleep(PIPE_GRACE).await;
    };
    tokio::pin!(cut_off);
    while stdout.is_open() || stderr.is_open() {
        tokio::select! {
            () = stdout.fill(), if stdout.is_open() => log.write(stdout.chunk()).await,
            () = stderr.fill(), if stderr.is_open() => {
                tail.push(stderr.chunk());
                log.write(stderr.chunk()).await;
            }
            () = &mut cut_off => break,
        }
    }
    Captured {
        stderr_tail: tail.into_text(),
        log: log.finish().await,
    }
}

/// One pipe and the latest chunk read from it.
struct Pipe<R> {
    source: Option<R>,
    chunk: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Pipe<R> {
    fn new(source: Option<R>) -> Self {
        Self {
            source,
            chunk: Vec::with_capacity(CHUNK_BYTES),
        }
    }

    const fn is_open(&self) -> bool {
        self.source.is_some()
    }

    fn chunk(&self) -> &[u8] {
        &self.chunk
    }

    /// Replaces the chunk by the next one; closes at the end. Cancel safe: a chunk is read whole
    /// or not at all.
    async fn fill(&mut self) {
        self.chunk.clear();
        if let Some(source) = &mut self.source
            && !matches!(source.read_buf(&mut self.chunk).await, Ok(1..))
        {
            self.source = None;
        }
    }
}

/// The last `ERROR_BYTES_MAX` bytes of a stream.
#[derive(Default)]
struct Tail(VecDeque<u8>);

impl Tail {
    fn push(&mut self, chunk: &[u8]) {
        let chunk = &chunk[chunk.len().saturating_sub(ERROR_BYTES_MAX)..];
        let excess = (self.0.len() + chunk.len()).saturating_sub(ERROR_BYTES_MAX);
        self.0.drain(..excess);
        self.0.extend(chunk);
    }

    fn into_text(self) -> String {
        String::from_utf8_lossy(&Vec::from(self.0)).into_owned()
    }
}

/// A log on disk that forgets its beginning: when the newer of its two halves is full, it takes
/// the place of the older.
struct LogWriter {
    older: PathBuf,
    newer: PathBuf,
    half: usize,
    open: Option<File>,
    open_bytes: usize,
    /// Whether there is an older half.
    turned: bool,
    /// Whether something was forgotten.
    cut: bool,
    broken: bool,
}

impl LogWriter {
    fn new(dir: &Path) -> Self {
        Self::with_half(dir, ATTEMPT_LOG_BYTES_MAX / 2)
    }

    fn with_half(dir: &Path, half: usize) -> Self {
        Self {
            older: dir.join("log.older"),
            newer: dir.join("log.newer"),
            half,
            open: None,
            open_bytes: 0,
            turned: false,
            cut: false,
            broken: false,
        }
    }

    async fn write(&mut self, chunk: &[u8]) {
        if self.broken || chunk.is_empty() {
            return;
        }
        if let Err(error) = self.try_write(chunk).await {
            // A full disk is no reason to stop the command.
            tracing::warn!(%error, "the attempt's log cannot be written, it is lost");
            self.broken = true;
        }
    }

    async fn try_write(&mut self, chunk: &[u8]) -> io::Result<()> {
        if self.open_bytes + chunk.len() > self.half
            && let Some(mut full) = self.open.take()
        {
            full.flush().await?;
            tokio::fs::rename(&self.newer, &self.older).await?;
            self.cut |= self.turned;
            self.turned = true;
            self.open_bytes = 0;
        }
        let file = match &mut self.open {
            Some(file) => file,
            closed => closed.insert(File::create(&self.newer).await?),
        };
        file.write_all(chunk).await?;
        self.open_bytes += chunk.len();
        Ok(())
    }

    async fn finish(mut self) -> Option<AttemptLog> {
        let mut file = self.open.take().filter(|_| !self.broken)?;
        file.flush().await.ok()?;
        Some(AttemptLog {
            older: self.turned.then_some(self.older),
            newer: self.newer,
            cut: self.cut,
        })
    }
}

/// What an attempt printed, on disk.
#[derive(Debug)]
pub(in super::super) struct AttemptLog {
    older: Option<PathBuf>,
    newer: PathBuf,
    cut: bool,
}

impl AttemptLog {
    /// The text, at most a line longer than `ATTEMPT_LOG_BYTES_MAX` bytes.
    pub(in super::super) async fn read(&self) -> io::Result<Bytes> {
        let mut text = Vec::new();
        if self.cut {
            text.extend_from_slice(b"[earlier lines were not kept]\n");
        }
        if let Some(older) = &self.older {
            File::open(older).await?.read_to_end(&mut text).await?;
        }
        File::open(&self.newer)
            .await?
            .read_to_end(&mut text)
            .await?;
        Ok(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_long_log_keeps_its_end_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = LogWriter::with_half(dir.path(), 10);
        for line in ["one\n", "two\n", "three\n", "four\n", "five\n"] {
            log.write(line.as_bytes()).await;
        }
        let text = log.finish().await.unwrap().read().await.unwrap();
        assert_eq!(text, "[earlier lines were not kept]\nthree\nfour\nfive\n");
    }

    #[tokio::test]
    async fn a_log_within_bounds_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = LogWriter::with_half(dir.path(), 10);
        for line in ["one\n", "two\n", "three\n"] {
            log.write(line.as_bytes()).await;
        }
        let text = log.finish().await.unwrap().read().await.unwrap();
        assert_eq!(text, "one\ntwo\nthree\n");
    }

    #[tokio::test]
    async fn nothing_printed_is_no_log() {
        let dir = tempfile::tempdir().unwrap();
        assert!(LogWriter::new(dir.path()).finish().await.is_none());
    }

    #[test]
    fn tails_are_bounded_and_never_split_badly() {
        let mut tail = Tail::default();
        tail.push(&[b'a'; ERROR_BYTES_MAX]);
        tail.push("é".repeat(3).as_bytes());
        tail.push(&[b'b'; 3]);
        assert_eq!(tail.0.len(), ERROR_BYTES_MAX);
        assert!(tail.into_text().ends_with("ééébbb"));
        let mut tail = Tail::default();
        tail.push(&[b'x'; ERROR_BYTES_MAX * 2]);
        assert_eq!(tail.0.len(), ERROR_BYTES_MAX);
    }
}
