//! `jobq bench list`: pages of a long list.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use futures::StreamExt as _;
use futures::stream;
use serde::Serialize;
use tokio::time::Instant;

use super::report::{Latencies, resident_bytes};
use crate::cli::exit::{Failure, print, print_json};
use crate::cli::{GlobalArgs, OutputFormat, open};
use crate::clock::{Clock, Timestamp};
use crate::control::{Control, ListOrder, ListRequest};
use crate::storage::EntityKey;
use crate::storage::counting::Counting;
use crate::store::WorkflowStore;
use crate::wire::{Names, Prefix};
use crate::workflow::definition::Definition;
use crate::workflow::runtime::Runtime;
use crate::workflow::{WorkflowId, WorkflowState};

/// Rows that are written at the same time.
const WRITES_AT_ONCE: usize = 256;

#[derive(Debug, Args)]
pub(super) struct ListBenchArgs {
    /// How many workflows are listed.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    rows: u32,
    /// How many pages of each kind are read.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pages: u32,
    /// How many workflows one page holds.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// How to print what was measured.
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

/// What was measured.
#[derive(Debug, Serialize)]
struct Report {
    rows: u32,
    limit: u16,
    rows_written_per_s: f64,
    /// By kind of page.
    pages: BTreeMap<&'static str, PageReport>,
    resident_bytes_before: Option<u64>,
    resident_bytes_after: Option<u64>,
}

#[derive(Debug, Serialize)]
struct PageReport {
    #[serde(flatten)]
    latencies: Latencies,
    storage_operations_per_page: f64,
}

pub(super) async fn run(global: &GlobalArgs, args: ListBenchArgs) -> Result<ExitCode, Failure> {
    let clock = Clock::system();
    let mut id = clock.new_id();
    let prefix = Prefix::parse(&format!("Bench{}", id.split_off(20)));
    let prefix = prefix.map_err(|error| Failure::Usage(error.to_string()))?;
    let counting = Counting::new(open::storage(&global.storage, &clock)?);
    let store = WorkflowStore::new(counting.storage(), Names::new(prefix.clone()));
    store.ensure().await?;
    eprintln!("writing {} rows under the prefix {prefix}", args.rows);
    let started = Instant::now();
    let now = clock.now();
    write_rows(&store, args.rows, now).await?;
    let written_s = started.elapsed().as_secs_f64();
    let bench = Bench {
        control: Control::new(store.clone(), clock, None),
        counting: &counting,
        args: &args,
    };
    let resident_bytes_before = resident_bytes();
    let mut pages = BTreeMap::new();
    for (kind, request) in kinds(&args) {
        pages.insert(kind, bench.read(request).await?);
    }
    let report = Report {
        rows: args.rows,
        limit: args.limit,
        rows_written_per_s: f64::from(args.rows) / written_s,
        pages,
        resident_bytes_before,
        resident_bytes_after: resident_bytes(),
    };
    match args.output {
        OutputFormat::Json => print_json(&report)?,
        OutputFormat::Table => print(told(&report))?,
    }
    eprintln!("removing the rows");
    remove_rows(&store, args.rows, now).await?;
    Ok(ExitCode::SUCCESS)
}

/// Removes what [`write_rows`] wrote. The empty tables stay: no port removes one.
async fn remove_rows(store: &WorkflowStore, rows: u32, now: Timestamp) -> Result<(), Failure> {
    let (tables, names) = (&store.storage().tables, store.names());
    let deletes = (0..rows).map(|number| async move {
        let (id, at) = (id_of(number), submitted_at(number, now));
        let index = EntityKey {
            partition: Names::partition_key(&id),
            row: id.clone(),
        };
        let recent = EntityKey {
            partition: Names::RECENT_PARTITION.to_owned(),
            row: Names::recent_row_key(at, &id),
        };
        tables.delete(names.index_table(), &index).await?;
        tables.delete(names.recent_table(), &recent).await
    });
    let mut deletes = stream::iter(deletes).buffer_unordered(WRITES_AT_ONCE);
    while let Some(deleted) = deletes.next().await {
        deleted.map_err(anyhow::Error::from)?;
    }
    Ok(())
}

fn id_of(number: u32) -> String {
    format!("bench-{number:08}")
}

/// A second apart, the last one the oldest.
fn submitted_at(number: u32, now: Timestamp) -> Timestamp {
    now.minus(Duration::from_secs(u64::from(number)))
}

/// Writes the rows of workflows that were submitted a second apart, as submits write them.
async fn write_rows(store: &WorkflowStore, rows: u32, now: Timestamp) -> Result<(), Failure> {
    let writes = (0..rows).map(|number| {
        let runtime = workflow(number, now);
        async move { store.write_row(&runtime?).await.map_err(Failure::from) }
    });
    let mut writes = stream::iter(writes).buffer_unordered(WRITES_AT_ONCE);
    while let Some(written) = writes.next().await {
        written?;
    }
    Ok(())
}

/// One in ten has the label that a page filters by, and one in a hundred was cancelled.
fn workflow(number: u32, now: Timestamp) -> Result<Runtime, Failure> {
    let team = if number.is_multiple_of(10) {
        "rare"
    } else {
        "common"
    };
    let definition = serde_json::json!({
        "name": format!("workflow-{number}"), "labels": {"team": team}, "tasks": [{"name": "a"}],
    });
    let invalid = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
    let definition = Definition::from_value(&definition).map_err(|error| invalid(&error))?;
    let id = WorkflowId::parse(&id_of(number)).map_err(|error| invalid(&error))?;
    let at = submitted_at(number, now);
    let mut runtime = Runtime::new(id, &definition, at);
    if number.is_multiple_of(100) {
        runtime.cancel(at);
    }
    Ok(runtime)
}

/// The kinds of pages that are read.
fn kinds(args: &ListBenchArgs) -> Vec<(&'static str, ListRequest)> {
    let newest = ListRequest {
        limit: args.limit.into(),
        ..ListRequest::default()
    };
    let of_label = ListRequest {
        labels: BTreeMap::from([("team".to_owned(), "rare".to_owned())]),
        ..newest.clone()
    };
    let of_state = ListRequest {
        states: vec![WorkflowState::Cancelled],
        ..newest.clone()
    };
    let by_id = ListRequest {
        order: ListOrder::Id,
        ..newest.clone()
    };
    vec![
        ("newest", newest),
        ("newest of a label (1 in 10)", of_label),
        ("newest of a state (1 in 100)", of_state),
        ("by id", by_id),
    ]
}

struct Bench<'a> {
    control: Control,
    counting: &'a Counting,
    args: &'a ListBenchArgs,
}

impl Bench<'_> {
    /// Reads pages one after the other, from the start again after the last.
    async fn read(&self, mut request: ListRequest) -> Result<PageReport, Failure> {
        let before = self.counting.counts();
        let mut durations = Vec::new();
        for _ in 0..self.args.pages {
            let started = Instant::now();
            let page = self.control.list(&request).await?;
            durations.push(started.elapsed());
            request.page_token = page.next_page_token;
        }
        let operations = self.counting.counts().since(&before).total();
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
        let operations = operations as f64;
        Ok(PageReport {
            latencies: Latencies::of(durations),
            storage_operations_per_page: operations / f64::from(self.args.pages),
        })
    }
}

fn told(report: &Report) -> String {
    let mut text = format!(
        "{} rows, written at {:.0} a second; pages of {}\n",
        report.rows, report.rows_written_per_s, report.limit
    );
    for (kind, page) in &report.pages {
        let Latencies {
            calls,
            p50_ms,
            p99_ms,
            max_ms,
        } = page.latencies;
        let operations = page.storage_operations_per_page;
        writeln!(
            text,
            "{kind:<30} {calls} pages  p50 {p50_ms:.2} ms  p99 {p99_ms:.2} ms  max {max_ms:.2} ms  \
             {operations:.2} storage operations each"
        )
        .expect("writing to a string cannot fail");
    }
    if let (Some(before), Some(after)) = (report.resident_bytes_before, report.resident_bytes_after)
    {
        let mib = |bytes: u64| bytes >> 20;
        writeln!(
            text,
            "memory {} MiB before, {} MiB after",
            mib(before),
            mib(after)
        )
        .expect("writing to a string cannot fail");
    }
    text
}
