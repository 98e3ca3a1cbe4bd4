//! A server in the background, and asking it.
#![expect(unreachable_pub, reason = "a helper of this test target")]

use reqwest::{Method, Response};
use serde_json::Value;

use crate::support::{Running, Site, eventually};

/// A server on a site of its own.
pub struct Server {
    // Before the site, where its log is.
    pub running: Running,
    pub site: Site,
    pub address: String,
}

/// An answer, read whole.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    pub text: String,
}

impl Answer {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }
}

impl Server {
    pub fn start(args: &[&str]) -> Self {
        let site = Site::new();
        let running = site.spawn(&[&["serve"], args].concat());
        let address = address(&running);
        eventually("it leads", || running.log().contains("leading"));
        Self {
            site,
            running,
            address,
        }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], "").await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        let json = [("content-type", "application/json")];
        self.send(Method::POST, path, &json, &body.to_string())
            .await
    }

    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut request = reqwest::Client::new().request(method, self.url(path));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        read(request.body(body.to_owned()).send().await.unwrap()).await
    }

    /// Submits YAML under an id.
    pub async fn submit(&self, id: &str, yaml: &str) {
        let yaml_kind = [("content-type", "application/yaml")];
        let path = format!("/v1/workflows?workflow_id={id}");
        let answer = self.send(Method::POST, &path, &yaml_kind, yaml).await;
        assert_eq!(answer.status, 201, "{answer:?}");
    }

    /// Waits for a state of a workflow.
    pub async fn until(&self, id: &str, state: &str) {
        let path = format!("/v1/workflows/{id}");
        let give_up_at = std::time::Instant::now() + crate::support::patience();
        loop {
            let found = self.get(&path).await;
            if found.json()["workflow_state"] == state {
                return;
            }
            assert!(std::time::Instant::now() < give_up_at, "{state}: {found:?}");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
}

pub fn address(running: &Running) -> String {
    let mut found = None;
    eventually("it listens", || {
        let log = running.log();
        let after = log.split("listening address=").nth(1);
        found = after.and_then(|rest| Some(rest.split_once(char::is_whitespace)?.0.to_owned()));
        found.is_some()
    });
    found.unwrap()
}

async fn read(response: Response) -> Answer {
    Answer {
        status: response.status().as_u16(),
        headers: response.headers().clone(),
        text: response.text().await.unwrap(),
    }
}
