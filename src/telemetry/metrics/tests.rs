//! What is scraped is what is documented, and nothing in it grows without bound.

use std::collections::BTreeSet;

use super::*;

/// Metrics with a value of every kind in them.
fn used() -> Metrics {
    let metrics = Metrics::new(1.5);
    metrics.cycle(Duration::from_millis(3), 7);
    metrics.flush(Duration::from_millis(2));
    metrics.storage("blob_get", "ok", Duration::from_millis(1));
    metrics.http(
        "/v1/workflows/{workflow_id}",
        "GET",
        200,
        Duration::from_millis(1),
    );
    metrics.pull(|| {
        let pulled = names::ALL
            .iter()
            .filter(|metric| metric.kind != Kind::Histogram);
        let own = [
            &names::STORAGE_OPERATIONS,
            &names::HTTP_REQUESTS,
            &names::BUILD_INFO,
            &names::START_TIME,
        ];
        let pulled = pulled.filter(|metric| !own.contains(metric));
        pulled
            .map(|metric| Sample {
                metric,
                labels: metric
                    .labels
                    .iter()
                    .map(|label| format!("a {label}"))
                    .collect(),
                value: 2.0,
            })
            .collect()
    });
    metrics
}

#[test]
fn every_metric_is_scraped_under_its_name() {
    let text = used().encode();
    for metric in names::ALL {
        let kind = format!("{:?}", metric.kind).to_lowercase();
        assert!(
            text.contains(&format!("# TYPE {} {kind}", registered(metric))),
            "{}",
            metric.name
        );
        let suffix = if metric.kind == Kind::Histogram {
            "_count"
        } else {
            ""
        };
        let line = format!("\n{}{suffix}", metric.name);
        assert!(text.contains(&line), "{line} in {text}");
    }
    assert!(
        text.contains("jobq_queue_messages{queue=\"a queue\"} 2.0"),
        "{text}"
    );
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn names_say_their_kind_and_are_their_own() {
    let names: BTreeSet<&str> = names::ALL.iter().map(|metric| metric.name).collect();
    assert_eq!(names.len(), names::ALL.len());
    for metric in names::ALL {
        assert!(metric.name.starts_with("jobq_"), "{}", metric.name);
        let is_counter = metric.kind == Kind::Counter;
        assert_eq!(
            metric.name.ends_with("_total"),
            is_counter,
            "{}",
            metric.name
        );
        for label in metric.labels {
            assert!(
                !["workflow", "workflow_id", "task"].contains(label),
                "{}",
                metric.name
            );
        }
    }
}

#[test]
fn the_documented_metrics_are_those_there_are() {
    let doc = include_str!("../../../docs/metrics.md");
    let (_, table) = doc.split_once("| --- |").unwrap();
    let written = table
        .lines()
        .skip(1)
        .take_while(|line| line.starts_with("| `"));
    let written: Vec<_> = written.collect();
    let expected: Vec<_> = names::ALL
        .iter()
        .map(|metric| {
            let kind = format!("{:?}", metric.kind).to_lowercase();
            let labels: Vec<_> = metric
                .labels
                .iter()
                .map(|label| format!("`{label}`"))
                .collect();
            format!(
                "| `{}` | {kind} | {} | {} |",
                metric.name,
                labels.join(", "),
                metric.help
            )
        })
        .collect();
    assert_eq!(
        written,
        expected,
        "the table should be:\n{}",
        expected.join("\n")
    );
}

/// Names of our metrics in a text, without the endings that histograms have.
fn named(text: &str) -> BTreeSet<String> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text
        .split(|c| !word(c))
        .filter(|part| part.starts_with("jobq_"));
    let bare = words.map(|name| {
        let ends = ["_bucket", "_count", "_sum"];
        let end = ends.iter().find(|end| name.ends_with(**end));
        end.map_or(name, |end| name.trim_end_matches(end))
            .to_owned()
    });
    bare.collect()
}

#[test]
fn the_dashboard_and_the_alerts_use_only_metrics_that_exist() {
    let dashboard = include_str!("../../../docs/grafana/jobq.json");
    serde_json::from_str::<serde_json::Value>(dashboard).unwrap();
    let alerts = include_str!("../../../docs/alerts.yaml");
    for text in [dashboard, alerts] {
        let found = named(text);
        assert!(found.len() > 5, "{found:?}");
        for name in found {
            let exists = names::ALL.iter().any(|metric| metric.name == name);
            assert!(exists, "{name}");
        }
    }
}
