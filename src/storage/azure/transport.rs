//! The HTTP client under the service clients: pooled, bounded in time, and aware of what the
//! service says about time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use azure_core::headers::Headers;
use azure_core::{ClientOptions, HttpClient, Request, Response, RetryOptions, TransportOptions};

use super::super::{Error, Result};
use crate::clock::{Clock, Timestamp};
use crate::limits;

/// How long the service asks to wait when it throttles without saying how long.
const RETRY_AFTER_DEFAULT: Duration = Duration::from_secs(1);

/// The clock difference of a transport that has had no answer yet.
const UNKNOWN: i64 = i64::MIN;

/// One client for all services of an account.
#[derive(Debug)]
pub(super) struct Transport {
    client: reqwest::Client,
    clock: Clock,
    /// Whether requests are signed with the account's key, which allows everything.
    by_key: bool,
    /// By how many seconds the service's clock is ahead of this machine's.
    ahead_s: AtomicI64,
    /// The latest `Retry-After`, in seconds; zero if there was none.
    retry_after_s: AtomicU64,
}

impl Transport {
    pub(super) fn new(clock: Clock, by_key: bool) -> Result<Self> {
        let client = reqwest::Client::builder()
            // The library under the SDK keeps no idle connection unless told to.
            .pool_max_idle_per_host(limits::AZURE_CONNECTIONS_MAX)
            // The emulator closes idle connections after five seconds; a request on one that is
            // being closed has an unknown outcome.
            .pool_idle_timeout(Duration::from_secs(4))
            .tcp_nodelay(true)
            .connect_timeout(limits::AZURE_CONNECT_TIMEOUT)
            .read_timeout(limits::AZURE_REQUEST_TIMEOUT)
            .build()
            .map_err(|error| Error::unavailable("cannot set up HTTP", error.without_url()))?;
        Ok(Self {
            client,
            clock,
            by_key,
            ahead_s: AtomicI64::new(UNKNOWN),
            retry_after_s: AtomicU64::new(0),
        })
    }

    /// Options that put this transport under a service client. The SDK's own retries are off: it
    /// repeats whatever failed, and whether that is right depends on the call.
    pub(super) fn options(self: &Arc<Self>) -> ClientOptions {
        ClientOptions::default()
            .retry(RetryOptions::none())
            .transport(TransportOptions::new(self.clone()))
    }

    /// By how many seconds the service's clock was ahead (or, negative, behind) at the latest
    /// answer.
    pub(super) fn clock_ahead_s(&self) -> Option<i64> {
        match self.ahead_s.load(Ordering::Relaxed) {
            UNKNOWN => None,
            seconds => Some(seconds),
        }
    }

    /// Whether requests are signed with the account's key, so that no permission can be missing.
    pub(super) const fn signs_by_key(&self) -> bool {
        self.by_key
    }

    /// How long the service last asked to wait.
    pub(super) fn retry_after(&self) -> Duration {
        match self.retry_after_s.load(Ordering::Relaxed) {
            0 => RETRY_AFTER_DEFAULT,
            seconds => Duration::from_secs(seconds.min(60)),
        }
    }

    fn observe(&self, headers: &Headers) {
        let date = headers.get_optional_str(&azure_core::headers::DATE);
        if let Some(theirs) = date.and_then(parse_date) {
            let ahead = (theirs.as_micros() - self.clock.now().as_micros()) / 1_000_000;
            self.ahead_s.store(ahead, Ordering::Relaxed);
        }
        let retry_after = headers.get_optional_str(&azure_core::headers::RETRY_AFTER);
        let seconds = retry_after.and_then(|text| text.parse().ok()).unwrap_or(0);
        self.retry_after_s.store(seconds, Ordering::Relaxed);
    }
}

#[async_trait]
impl HttpClient for Transport {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<Response> {
        let response = self.client.execute_request(request).await?;
        self.observe(response.headers());
        Ok(response)
    }
}

fn parse_date(text: &str) -> Option<Timestamp> {
    let time = azure_core::date::parse_rfc1123(text).ok()?;
    Some(Timestamp::from_micros(time.unix_timestamp() * 1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_services_clock_and_patience_are_read_from_its_answers() {
        let clock = Clock::system();
        let transport = Transport::new(clock, true).unwrap();
        assert_eq!(transport.clock_ahead_s(), None);
        assert_eq!(transport.retry_after(), RETRY_AFTER_DEFAULT);
        let mut headers = Headers::new();
        headers.insert("date", "Thu, 01 Jan 1970 00:00:00 GMT");
        headers.insert("retry-after", "7");
        transport.observe(&headers);
        assert!(transport.clock_ahead_s().unwrap() < -1_000_000_000);
        assert_eq!(transport.retry_after(), Duration::from_secs(7));
    }
}
