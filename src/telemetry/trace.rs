//! Traces: what happened to one workflow on its way through the processes, as spans of OpenTelemetry.
//!
//! ```text
//!  caller ─► request ─► submit ═► state blob ─► push ═► task message ─► attempt ═► TRACEPARENT of the command
//!                                                                          ╚═════► completion ─► apply
//! ```
//! `─►` is a parent and its child within a process, `═►` a W3C trace parent as text: in the state, in a
//! message, in an environment variable. Every span has the target [`TARGET`], and only those are
//! exported: log lines and spans of libraries are not.
//!
//! Without a collector these spans are disabled where they stand, which costs a load and a branch, and a
//! trace parent from outside is handed on unchanged.

use std::fmt;

use opentelemetry::trace::{
    SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState, TracerProvider as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::Registry;

/// The target of every span that belongs to a trace.
pub const TARGET: &str = "jobq::trace";

/// Where spans are sent.
#[derive(Clone, PartialEq, Eq)]
pub struct TraceExport {
    /// The address of a collector that speaks OTLP over gRPC. Without one the exporter's own variables
    /// name it.
    endpoint: Option<String>,
}

impl fmt::Debug for TraceExport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An address may hold credentials.
        f.debug_struct("TraceExport").finish_non_exhaustive()
    }
}

impl TraceExport {
    /// Whether and where to send spans: to `endpoint`, or where OpenTelemetry's own variables say,
    /// looked up by `var`. `None` if nothing names a collector, or a variable turns traces off.
    ///
    /// # Errors
    /// When a variable asks for a protocol other than gRPC.
    pub fn from_settings(
        endpoint: Option<&str>,
        var: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, String> {
        let is = |name: &str, value: &str| {
            var(name).is_some_and(|found| found.trim().eq_ignore_ascii_case(value))
        };
        if is("OTEL_SDK_DISABLED", "true") || is("OTEL_TRACES_EXPORTER", "none") {
            return Ok(None);
        }
        // The variable for traces alone is stronger than the one for all signals; the exporter reads it.
        let of_traces = var("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").is_some();
        let endpoint = endpoint.filter(|_| !of_traces).map(str::to_owned);
        if endpoint.is_none() && !of_traces {
            return Ok(None);
        }
        for name in [
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
            "OTEL_EXPORTER_OTLP_PROTOCOL",
        ] {
            match var(name).as_deref() {
                None => {}
                Some("grpc") => break,
                Some(other) => {
                    return Err(format!(
                        "{name} is {other:?}, but spans are sent by grpc only: name the port of the \
                         collector that speaks it, usually 4317, and set the variable to grpc"
                    ));
                }
            }
        }
        Ok(Some(Self { endpoint }))
    }

    pub(super) fn provider(&self) -> Result<SdkTracerProvider, String> {
        let exporter = SpanExporter::builder().with_tonic();
        let exporter = match &self.endpoint {
            Some(endpoint) => exporter.with_endpoint(endpoint),
            None => exporter,
        };
        let exporter = exporter
            .build()
            .map_err(|error| format!("spans cannot be sent: {error}"))?;
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let mut resource = Resource::builder().with_attribute(version);
        if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
            resource = resource.with_service_name("jobq");
        }
        // The sampler and the batches are as the standard variables say, and by parent unless they do.
        Ok(SdkTracerProvider::builder()
            .with_resource(resource.build())
            .with_batch_exporter(exporter)
            .build())
    }
}

/// Hands spans to their exporter.
pub(super) fn layer(provider: &SdkTracerProvider) -> Box<dyn Layer<Registry> + Send + Sync> {
    tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("jobq"))
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_tracked_inactivity(false)
        .with_filter(filter_fn(|metadata| {
            metadata.is_span() && metadata.target() == TARGET
        }))
        .boxed()
}

/// Whether a text is a W3C trace parent: version, trace id, parent id and flags in lower-case hex.
#[must_use]
pub fn is_traceparent(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let hex = |part: &&str, len| {
        let digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        part.len() == len && part.bytes().all(digit)
    };
    let zero = |part: &str| part.bytes().all(|b| b == b'0');
    matches!(&parts[..], [version, trace, parent, flags]
        if hex(version, 2) && *version != "ff" && hex(trace, 32) && !zero(trace)
            && hex(parent, 16) && !zero(parent) && hex(flags, 2))
}

/// Makes a span that was not entered yet a child of the span that a trace parent names; of nothing if
/// there is none, or it is none.
pub fn follow(span: &Span, traceparent: Option<&str>) {
    if span.is_disabled() {
        return;
    }
    if let Some(parent) = traceparent.and_then(parse) {
        let parent = Context::new().with_remote_span_context(parent);
        // Fails only without a collector, when there is nothing to tell it.
        span.set_parent(parent).ok();
    }
}

/// The trace parent that makes other spans children of this one. `None` if it is not part of a trace.
#[must_use]
pub fn traceparent_of(span: &Span) -> Option<String> {
    if span.is_disabled() {
        return None;
    }
    let context = span.context();
    let context = context.span().span_context().clone();
    context.is_valid().then(|| {
        let flags = context.trace_flags().to_u8();
        let (trace, span) = (context.trace_id(), context.span_id());
        format!("00-{trace:032x}-{span:016x}-{flags:02x}")
    })
}

/// Notes on a span that what it stands for failed.
pub fn failed(span: &Span, reason: &str) {
    if !span.is_disabled() {
        span.set_status(opentelemetry::trace::Status::error(reason.to_owned()));
    }
}

fn parse(traceparent: &str) -> Option<SpanContext> {
    if !is_traceparent(traceparent) {
        return None;
    }
    let mut parts = traceparent.split('-').skip(1);
    let trace = TraceId::from_hex(parts.next()?).ok()?;
    let span = SpanId::from_hex(parts.next()?).ok()?;
    let flags = u8::from_str_radix(parts.next()?, 16).ok()?;
    let state = TraceState::default();
    Some(SpanContext::new(
        trace,
        span,
        TraceFlags::new(flags),
        true,
        state,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALLER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn settings(
        endpoint: Option<&str>,
        variables: &[(&str, &str)],
    ) -> Result<Option<TraceExport>, String> {
        TraceExport::from_settings(endpoint, |name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn spans_are_sent_only_where_a_collector_is_named() {
        let at = |endpoint: Option<&str>| {
            Ok(Some(TraceExport {
                endpoint: endpoint.map(str::to_owned),
            }))
        };
        let here = Some("http://here:4317");
        let of_traces = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://there:4317");
        assert_eq!(settings(None, &[]), Ok(None));
        assert_eq!(settings(here, &[]), at(here));
        assert_eq!(settings(here, &[of_traces]), at(None));
        assert_eq!(settings(None, &[of_traces]), at(None));
        assert_eq!(settings(here, &[("OTEL_SDK_DISABLED", "True")]), Ok(None));
        assert_eq!(
            settings(here, &[("OTEL_TRACES_EXPORTER", "none")]),
            Ok(None)
        );
        assert_eq!(
            settings(here, &[("OTEL_TRACES_EXPORTER", "otlp")]),
            at(here)
        );
    }

    #[test]
    fn another_protocol_is_refused() {
        let here = Some("http://here:4318");
        let all = ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf");
        let traces = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc");
        assert!(
            settings(here, &[all])
                .unwrap_err()
                .contains("http/protobuf")
        );
        assert!(settings(here, &[all, traces]).is_ok_and(|export| export.is_some()));
        // Whoever sends no spans may set what they like.
        assert_eq!(settings(None, &[all]), Ok(None));
    }

    #[test]
    fn an_address_that_is_none_is_told() {
        let export = settings(Some("http://[here"), &[]).unwrap().unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let _inside = runtime.enter();
        assert!(
            export
                .provider()
                .unwrap_err()
                .contains("spans cannot be sent")
        );
    }

    /// Runs `work` with spans that go to a collector nobody reads.
    fn traced(work: impl FnOnce()) {
        use tracing_subscriber::layer::SubscriberExt as _;
        let provider = SdkTracerProvider::builder().build();
        let subscriber = tracing_subscriber::registry().with(layer(&provider));
        tracing::subscriber::with_default(subscriber, work);
    }

    #[test]
    fn a_span_follows_its_caller_and_others_follow_it() {
        traced(|| {
            let span = tracing::info_span!(target: TARGET, "one");
            follow(&span, Some(CALLER));
            let own = traceparent_of(&span).unwrap();
            assert!(is_traceparent(&own), "{own}");
            assert_eq!(own[..36], CALLER[..36]);
            assert_ne!(own, CALLER);
            assert!(own.ends_with("-01"), "{own}");
        });
    }

    #[test]
    fn a_caller_that_is_not_sampled_decides_for_all() {
        traced(|| {
            let span = tracing::info_span!(target: TARGET, "one");
            let unsampled = CALLER.replace("-01", "-00");
            follow(&span, Some(&unsampled));
            let own = traceparent_of(&span).unwrap();
            assert!(own.ends_with("-00") && own[..36] == CALLER[..36], "{own}");
        });
    }

    #[test]
    fn nonsense_begins_a_trace_of_its_own() {
        traced(|| {
            let span = tracing::info_span!(target: TARGET, "one");
            follow(&span, Some("00-0af7-b7ad-01"));
            assert!(is_traceparent(&traceparent_of(&span).unwrap()));
        });
    }

    #[test]
    fn spans_of_others_and_spans_without_a_collector_are_in_no_trace() {
        traced(|| {
            assert_eq!(
                traceparent_of(&tracing::info_span!("a span of a library")),
                None
            );
        });
        let span = tracing::info_span!(target: TARGET, "one");
        follow(&span, Some(CALLER));
        failed(&span, "nobody hears it");
        assert_eq!(traceparent_of(&span), None);
        assert_eq!(traceparent_of(&Span::none()), None);
    }

    #[test]
    fn trace_parents_are_told_from_other_texts() {
        assert!(is_traceparent(CALLER));
        for text in [
            "",
            "00",
            &CALLER.to_uppercase(),
            &CALLER.replace("00-", "ff-"),
            &CALLER.replace("b7ad6b7169203331", "0000000000000000"),
            &CALLER.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &format!("{CALLER}-00"),
        ] {
            assert!(!is_traceparent(text), "{text}");
        }
    }
}
