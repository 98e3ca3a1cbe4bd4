//! Durations as people write them.

use std::time::Duration;

/// Parses `90` (seconds), `0.5`, `90s`, `10m`, `1h30m`.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let refused = || format!("{text:?} is no duration; write seconds (90) or 90s, 10m, 1h30m");
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|_| refused());
    }
    let duration: jiff::SignedDuration = text.parse().map_err(|_| refused())?;
    Duration::try_from(duration).map_err(|_| refused())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_seconds_or_have_units() {
        assert_eq!(parse("90"), Ok(Duration::from_secs(90)));
        assert_eq!(parse("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("10m"), Ok(Duration::from_secs(600)));
        assert_eq!(parse("1h30m"), Ok(Duration::from_secs(5_400)));
        assert_eq!(parse("250ms"), Ok(Duration::from_millis(250)));
        for text in ["", "-1", "-5s", "soon", "NaN", "inf"] {
            assert!(parse(text).unwrap_err().contains("10m"), "{text}");
        }
    }
}
