//! A collector: a real server of OTLP over gRPC that keeps what it gets.
#![expect(unreachable_pub, reason = "a helper of this test target")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span as WireSpan;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

/// A span as it arrived, ids in hex.
#[derive(Debug, Clone)]
pub struct Span {
    pub service: String,
    pub name: String,
    pub kind: i32,
    pub trace: String,
    pub id: String,
    /// Empty for a root.
    pub parent: String,
    pub attributes: BTreeMap<String, String>,
    pub failed: bool,
}

impl Span {
    #[track_caller]
    pub fn attribute(&self, name: &str) -> &str {
        self.attributes
            .get(name)
            .unwrap_or_else(|| panic!("no {name} in {self:?}"))
    }
}

/// The running collector; it stops with the value.
pub struct Receiver {
    pub endpoint: String,
    spans: Arc<Mutex<Vec<Span>>>,
    _runtime: Runtime,
}

struct Service(Arc<Mutex<Vec<Span>>>);

impl Receiver {
    pub fn start() -> Self {
        let runtime = Runtime::new().unwrap();
        let spans = Arc::new(Mutex::new(Vec::new()));
        let service = TraceServiceServer::new(Service(spans.clone()));
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let server = Server::builder().add_service(service);
        runtime.spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
        Self {
            endpoint,
            spans,
            _runtime: runtime,
        }
    }

    /// What arrived so far.
    pub fn spans(&self) -> Vec<Span> {
        self.spans.lock().unwrap().clone()
    }
}

#[tonic::async_trait]
impl TraceService for Service {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        for resource in request.into_inner().resource_spans {
            let about = resource.resource.unwrap_or_default().attributes;
            let service = texts(about).remove("service.name").unwrap_or_default();
            let spans = resource
                .scope_spans
                .into_iter()
                .flat_map(|scope| scope.spans);
            let mut kept = self.0.lock().unwrap();
            kept.extend(spans.map(|span| read(service.clone(), span)));
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

fn read(service: String, span: WireSpan) -> Span {
    Span {
        service,
        name: span.name,
        kind: span.kind,
        trace: hex::encode(span.trace_id),
        id: hex::encode(span.span_id),
        parent: hex::encode(span.parent_span_id),
        attributes: texts(span.attributes),
        failed: span.status.is_some_and(|status| status.code == 2),
    }
}

fn texts(attributes: Vec<KeyValue>) -> BTreeMap<String, String> {
    let text = |value| match value {
        Value::StringValue(text) => text,
        Value::IntValue(number) => number.to_string(),
        Value::BoolValue(truth) => truth.to_string(),
        other => format!("{other:?}"),
    };
    let pairs = attributes.into_iter().filter_map(|pair| {
        let value = pair.value?.value?;
        Some((pair.key, text(value)))
    });
    pairs.collect()
}
