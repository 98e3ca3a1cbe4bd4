//! What a process counts, for Prometheus.
//!
//! Some values are recorded as things happen (durations, requests, storage calls); others are read when
//! they are scraped, from whoever has them at hand, so that they never lie after a restart.

pub mod names;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use names::{Kind, Metric};

type Labels = Vec<(&'static str, String)>;
type Histograms = Family<Labels, Histogram, fn() -> Histogram>;

/// A value read at a scrape.
#[derive(Debug, Clone)]
pub struct Sample {
    /// The metric.
    pub metric: &'static Metric,
    /// A value for each of its labels, in their order.
    pub labels: Vec<String>,
    /// The value; counters are whole and only grow.
    pub value: f64,
}

impl Sample {
    /// A value of a metric without labels.
    #[must_use]
    pub const fn new(metric: &'static Metric, value: f64) -> Self {
        Self {
            metric,
            labels: Vec::new(),
            value,
        }
    }

    /// A value of a metric with one label.
    #[must_use]
    pub fn of(metric: &'static Metric, label: impl Into<String>, value: f64) -> Self {
        Self {
            metric,
            labels: vec![label.into()],
            value,
        }
    }
}

type Source = Box<dyn Fn() -> Vec<Sample> + Send + Sync>;

/// The metrics of a process. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    sources: Arc<Sources>,
    cycle_duration: Histograms,
    cycle_completions: Histograms,
    flush_duration: Histograms,
    storage_operations: Family<Labels, Counter>,
    storage_duration: Histograms,
    http_requests: Family<Labels, Counter>,
    http_duration: Histograms,
}

/// From 0.25 ms to about 30 s.
fn durations() -> Histogram {
    Histogram::new(exponential_buckets(0.000_25, 2.5, 14))
}

/// From one to about a hundred thousand.
fn sizes() -> Histogram {
    Histogram::new(exponential_buckets(1.0, 4.0, 9))
}

impl Metrics {
    /// Metrics of a process that started at this many seconds since 1970.
    #[must_use]
    pub fn new(started_at_s: f64) -> Self {
        let sources = Arc::new(Sources::default());
        let mut registry = Registry::default();
        let mut histogram = |metric: &Metric, new: fn() -> Histogram| {
            let family = Histograms::new_with_constructor(new);
            registry.register(metric.name, metric.help, family.clone());
            family
        };
        let cycle_duration = histogram(&names::CYCLE_DURATION, durations);
        let cycle_completions = histogram(&names::CYCLE_COMPLETIONS, sizes);
        let flush_duration = histogram(&names::FLUSH_DURATION, durations);
        let storage_duration = histogram(&names::STORAGE_DURATION, durations);
        let http_duration = histogram(&names::HTTP_DURATION, durations);
        let mut counter = |metric: &Metric| {
            let family = Family::<Labels, Counter>::default();
            registry.register(registered(metric), metric.help, family.clone());
            family
        };
        let storage_operations = counter(&names::STORAGE_OPERATIONS);
        let http_requests = counter(&names::HTTP_REQUESTS);
        registry.register_collector(Box::new(Pulled(sources.clone())));
        let metrics = Self {
            registry: Arc::new(registry),
            sources,
            cycle_duration,
            cycle_completions,
            flush_duration,
            storage_operations,
            storage_duration,
            http_requests,
            http_duration,
        };
        metrics.pull(move || {
            let version = env!("CARGO_PKG_VERSION");
            vec![
                Sample::of(&names::BUILD_INFO, version, 1.0),
                Sample::new(&names::START_TIME, started_at_s),
            ]
        });
        metrics
    }

    /// Reads these values, too, at every scrape. Must be quick: it holds the scrape up.
    pub fn pull(&self, source: impl Fn() -> Vec<Sample> + Send + Sync + 'static) {
        let mut sources = self
            .sources
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        sources.push(Box::new(source));
    }

    /// A cycle of a workflow ended.
    pub fn cycle(&self, took: Duration, completions: usize) {
        self.cycle_duration
            .get_or_create(&Vec::new())
            .observe(took.as_secs_f64());
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
        let completions = completions as f64;
        self.cycle_completions
            .get_or_create(&Vec::new())
            .observe(completions);
    }

    /// A state was written.
    pub fn flush(&self, took: Duration) {
        self.flush_duration
            .get_or_create(&Vec::new())
            .observe(took.as_secs_f64());
    }

    /// A storage call ended.
    pub fn storage(&self, operation: &'static str, outcome: &'static str, took: Duration) {
        let labels = vec![
            ("operation", operation.to_owned()),
            ("outcome", outcome.to_owned()),
        ];
        self.storage_operations.get_or_create(&labels).inc();
        let labels = vec![("operation", operation.to_owned())];
        self.storage_duration
            .get_or_create(&labels)
            .observe(took.as_secs_f64());
    }

    /// A request was answered. `route` is the template of its path, never the path itself.
    pub fn http(&self, route: &str, method: &str, status: u16, took: Duration) {
        let labels = vec![
            ("route", route.to_owned()),
            ("method", method.to_owned()),
            ("status", status.to_string()),
        ];
        self.http_requests.get_or_create(&labels).inc();
        let labels = vec![("route", route.to_owned())];
        self.http_duration
            .get_or_create(&labels)
            .observe(took.as_secs_f64());
    }

    /// All of them in the text format that Prometheus scrapes.
    ///
    /// # Panics
    /// Never: text takes everything.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)
            .expect("writing to a string cannot fail");
        text
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

/// The name to register: the format adds the end of a counter's itself.
fn registered(metric: &Metric) -> &'static str {
    metric.name.strip_suffix("_total").unwrap_or(metric.name)
}

#[derive(Default)]
struct Sources(Mutex<Vec<Source>>);

/// Hands the pulled values to a scrape.
struct Pulled(Arc<Sources>);

impl fmt::Debug for Pulled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pulled").finish_non_exhaustive()
    }
}

impl Collector for Pulled {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let samples: Vec<Sample> = {
            let sources = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
            sources.iter().flat_map(|source| source()).collect()
        };
        for metric in names::ALL {
            let mut ours = samples
                .iter()
                .filter(|sample| sample.metric == *metric)
                .peekable();
            if ours.peek().is_none() {
                continue;
            }
            let kind = match metric.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge | Kind::Histogram => MetricType::Gauge,
            };
            let name = registered(metric);
            let mut described = encoder.encode_descriptor(name, metric.help, None, kind)?;
            for sample in ours {
                let names = metric.labels.iter().copied();
                let labels: Labels = names.zip(sample.labels.iter().cloned()).collect();
                let of_labels = described.encode_family(&labels)?;
                match metric.kind {
                    Kind::Counter => ConstCounter::new(sample.value).encode(of_labels)?,
                    Kind::Gauge | Kind::Histogram => {
                        ConstGauge::new(sample.value).encode(of_labels)?;
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
