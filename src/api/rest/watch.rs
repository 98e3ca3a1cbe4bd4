//! Watching a workflow, as server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::StreamExt as _;
use futures::stream;

use super::described::WatchMessage;
use super::failures::ReadFailures;
use super::params::{Params, workflow_id};
use super::problem::{Answer, Problem};
use crate::api::Api;
use crate::control::WatchEvent;

/// A comment this often keeps proxies from closing a quiet stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Watch a workflow
///
/// A snapshot first, then what changes, until it ends. Each event's `id` goes into `Last-Event-ID` to go
/// on after it; what cannot be told any more is announced as a `gap`, and a snapshot follows.
#[utoipa::path(
    get, path = "/v1/workflows/{workflow_id}/watch", operation_id = "watch_workflow", tag = "workflows",
    params(
        super::WorkflowPath,
        ("last-event-id" = Option<String>, Header, description = "Goes on after the event with this id"),
    ),
    responses(
        (status = 200, description = "Events: snapshot, changes, gap, end", body = WatchMessage,
         content_type = "text/event-stream"),
        ReadFailures,
    ),
)]
pub(super) async fn watch(
    State(api): State<Api>,
    Path(id): Path<String>,
    headers: HeaderMap,
    params: Params,
) -> Answer {
    params.known(&[])?;
    let token = headers.get("last-event-id").map(|token| token.to_str());
    let token = token
        .transpose()
        .map_err(|_| Problem::invalid("last-event-id", "it is no plain text"))?;
    let watcher = api.hub.watch(&workflow_id(&id)?, token).await?;
    let events = stream::unfold(watcher, async |mut watcher| {
        let event = watcher.next().await?;
        Some((Ok::<_, Infallible>(sse(&event)), watcher))
    });
    // Watchers leave when the server does, instead of holding it.
    let events = events.take_until(api.stop.clone().cancelled_owned());
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    Ok(Sse::new(events.boxed())
        .keep_alive(keep_alive)
        .into_response())
}

fn sse(event: &WatchEvent) -> Event {
    let sse = Event::default().event(event.name());
    let sse = match event.resume_token() {
        Some(token) => sse.id(token),
        None => sse,
    };
    sse.json_data(event)
        .unwrap_or_else(|_| Event::default().event("gap").data("{}"))
}
