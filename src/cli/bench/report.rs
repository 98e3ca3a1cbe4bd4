//! What a bench measured.

use std::time::Duration;

use serde::Serialize;

/// How long many calls of one kind took.
#[derive(Debug, Serialize)]
pub(super) struct Latencies {
    /// How many calls.
    pub(super) calls: usize,
    /// Half of them took at most this long.
    pub(super) p50_ms: f64,
    /// 99 in 100 took at most this long.
    pub(super) p99_ms: f64,
    /// The longest.
    pub(super) max_ms: f64,
}

impl Latencies {
    /// Of these durations, in any order; at least one.
    pub(super) fn of(mut durations: Vec<Duration>) -> Self {
        durations.sort_unstable();
        let at = |part: usize| {
            let last = durations.len().saturating_sub(1);
            let found = durations.get((durations.len() * part / 100).min(last));
            found.map_or(0.0, |duration| duration.as_secs_f64() * 1e3)
        };
        Self {
            calls: durations.len(),
            p50_ms: at(50),
            p99_ms: at(99),
            max_ms: at(100),
        }
    }
}

/// Bytes of this process that are in memory now; `None` where the system does not tell.
pub(super) fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_sorted_calls() {
        let durations = (1..=200).rev().map(Duration::from_millis).collect();
        let found = Latencies::of(durations);
        assert_eq!(found.calls, 200);
        assert!((found.p50_ms - 101.0).abs() < 1e-9, "{found:?}");
        assert!((found.p99_ms - 199.0).abs() < 1e-9, "{found:?}");
        assert!((found.max_ms - 200.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_process_has_memory() {
        assert!(resident_bytes().is_some_and(|bytes| bytes > 1024 * 1024));
    }
}
