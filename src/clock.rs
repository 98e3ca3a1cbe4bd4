//! The only reader of time and randomness.
//!
//! Everything that needs "now", a fresh id or jitter takes a [`Clock`]; tests and the simulation
//! give it one they control. The pure rooms use only [`Timestamp`], as a value handed to them.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A moment in UTC, in whole microseconds since 1970. Text form: ISO 8601 with six decimals and
/// the offset `+00:00`, as every format of the wire uses it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

/// A text that is not an ISO 8601 time with an offset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an ISO 8601 time with an offset: {0:?}")]
pub struct NotATimestamp(String);

impl Timestamp {
    /// The moment `micros` microseconds after 1970-01-01T00:00:00Z.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// The time that passed from `earlier` to `self`; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// This moment plus `duration`, saturating.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(
            self.0
                .saturating_add(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)),
        )
    }

    /// This moment minus `duration`, saturating.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        Self(
            self.0
                .saturating_sub(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)),
        )
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = jiff::Timestamp::from_microsecond(self.0).map_err(|_| fmt::Error)?;
        write!(f, "{}", time.strftime("%Y-%m-%dT%H:%M:%S%.6f+00:00"))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Timestamp {
    type Err = NotATimestamp;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<jiff::Timestamp>()
            .map(|time| Self(time.as_microsecond()))
            .map_err(|_| NotATimestamp(text.chars().take(64).collect()))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Where time and randomness come from. Cheap to clone; clones share the source.
#[derive(Clone)]
pub struct Clock {
    source: Arc<Source>,
}

enum Source {
    /// The machine's clock and random numbers.
    System,
    /// Time runs with tokio's clock (which a test may pause) from a fixed start, and random
    /// numbers come from a seed: the same calls give the same values.
    Simulated {
        epoch: Timestamp,
        started: tokio::time::Instant,
        random: Mutex<Box<StdRng>>,
    },
}

impl Clock {
    /// The machine's own clock.
    #[must_use]
    pub fn system() -> Self {
        Self {
            source: Arc::new(Source::System),
        }
    }

    /// A clock that starts at `epoch`, advances with tokio's (pausable) clock and draws from `seed`.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use]
    pub fn simulated(epoch: Timestamp, seed: u64) -> Self {
        let random = Mutex::new(Box::new(StdRng::seed_from_u64(seed)));
        let started = tokio::time::Instant::now();
        Self {
            source: Arc::new(Source::Simulated {
                epoch,
                started,
                random,
            }),
        }
    }

    /// The present moment.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one reader of the machine's clock"
    )]
    pub fn now(&self) -> Timestamp {
        match &*self.source {
            Source::System => Timestamp(jiff::Timestamp::now().as_microsecond()),
            Source::Simulated { epoch, started, .. } => epoch.plus(started.elapsed()),
        }
    }

    /// A fresh id: a `UUIDv7` as 32 hex digits, so that ids sort by the time they were made.
    #[must_use]
    pub fn new_id(&self) -> String {
        let micros = u64::try_from(self.now().as_micros()).unwrap_or(0);
        let random = u128::from(self.random()) << 64 | u128::from(self.random());
        let bytes: [u8; 16] = random.to_be_bytes();
        let mut tail = [0u8; 10];
        tail.copy_from_slice(&bytes[..10]);
        uuid::Builder::from_unix_timestamp_millis(micros / 1_000, &tail)
            .into_uuid()
            .simple()
            .to_string()
    }

    /// 64 random bits.
    #[must_use]
    pub fn random(&self) -> u64 {
        match &*self.source {
            Source::System => rand::rng().random(),
            Source::Simulated { random, .. } => random
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .random(),
        }
    }

    /// `duration` changed at random by at most `part` of it in either direction (0.0 to 1.0).
    #[must_use]
    pub fn jitter(&self, duration: Duration, part: f64) -> Duration {
        #[expect(
            clippy::cast_precision_loss,
            reason = "53 bits of a random number are plenty"
        )]
        let unit = (self.random() >> 11) as f64 / (1u64 << 53) as f64;
        duration.mul_f64(1.0 + part.clamp(0.0, 1.0) * (2.0 * unit - 1.0))
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match &*self.source {
            Source::System => "system",
            Source::Simulated { .. } => "simulated",
        };
        f.debug_tuple("Clock").field(&name).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_print_with_microseconds_and_offset() {
        let text = "2026-01-02T03:04:05.678901+00:00";
        assert_eq!(text.parse::<Timestamp>().unwrap().to_string(), text);
        assert_eq!(
            "2026-01-02T03:04:05Z"
                .parse::<Timestamp>()
                .unwrap()
                .to_string(),
            "2026-01-02T03:04:05.000000+00:00"
        );
        assert_eq!(
            "2026-01-02T05:04:05.5+02:00"
                .parse::<Timestamp>()
                .unwrap()
                .to_string(),
            "2026-01-02T03:04:05.500000+00:00"
        );
    }

    #[test]
    fn a_text_without_an_offset_is_no_timestamp() {
        assert!("2026-01-02T03:04:05".parse::<Timestamp>().is_err());
        assert!("yesterday".parse::<Timestamp>().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_simulated_clock_repeats_itself() {
        let start = Timestamp::from_micros(1_000_000);
        let draw = async || {
            let clock = Clock::simulated(start, 7);
            tokio::time::advance(Duration::from_millis(250)).await;
            (clock.now(), clock.new_id(), clock.random())
        };
        let first = draw().await;
        assert_eq!(first.0, Timestamp::from_micros(1_250_000));
        assert_eq!(first, draw().await);
    }

    #[test]
    fn ids_are_hex_and_sort_by_time() {
        let clock = Clock::system();
        let first = clock.new_id();
        std::thread::sleep(Duration::from_millis(2));
        let second = clock.new_id();
        assert_eq!(first.len(), 32);
        assert!(first.bytes().all(|b| b.is_ascii_hexdigit()));
        assert!(first < second);
    }
}
