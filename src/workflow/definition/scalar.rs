//! What a YAML scalar means: the core schema of YAML 1.2, in which `yes`, `no` and `on` are text.

use std::borrow::Cow;

use super::document::Kind;

/// How a scalar was written, as far as its meaning depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written<'t> {
    /// Without quotes: the schema decides.
    Plain,
    /// In quotes or as a block: text.
    Quoted,
    /// With a tag of the core schema (`!!int` is `int`).
    Tagged(&'t str),
}

/// The value of a scalar.
///
/// # Errors
/// A tag that does not fit the text, or that is not of the core schema.
pub(super) fn resolve<'a>(text: Cow<'a, str>, written: Written<'_>) -> Result<Kind<'a>, String> {
    let tag = match written {
        Written::Quoted | Written::Tagged("str") => return Ok(Kind::Text(text)),
        Written::Plain => return Ok(plain(text)),
        Written::Tagged(tag) => tag,
    };
    let value = match (tag, plain(text)) {
        ("null", value @ Kind::Null)
        | ("bool", value @ Kind::Bool(_))
        | ("int", value @ Kind::Whole(_))
        | ("float", value @ Kind::Float(_)) => value,
        ("float", Kind::Whole(digits)) => Kind::Float(digits.parse().unwrap_or(f64::INFINITY)),
        ("null" | "bool" | "int" | "float", _) => {
            return Err(format!("the text does not fit its tag `!!{tag}`"));
        }
        _ => return Err(format!("the tag `!!{tag}` is not one for scalars")),
    };
    Ok(value)
}

fn plain(text: Cow<'_, str>) -> Kind<'_> {
    match text.as_ref() {
        "" | "~" | "null" | "Null" | "NULL" => return Kind::Null,
        "true" | "True" | "TRUE" => return Kind::Bool(true),
        "false" | "False" | "FALSE" => return Kind::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Kind::Float(f64::NAN),
        _ => {}
    }
    let number = whole(&text).map(Cow::Owned).map(Kind::Whole);
    match number.or_else(|| float(&text).map(Kind::Float)) {
        Some(number) => number,
        None => Kind::Text(text),
    }
}

/// A whole number in the notation of JSON, if the text is one in that of YAML.
fn whole(text: &str) -> Option<String> {
    let radix = |digits: &str, radix| {
        let is_plain = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let value = u128::from_str_radix(digits, radix)
            .ok()
            .filter(|_| is_plain);
        value.map(|value| value.to_string())
    };
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8);
    }
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => ("-", &text[1..]),
        b'+' => ("", &text[1..]),
        _ => ("", text),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    match digits.trim_start_matches('0') {
        "" => Some("0".to_owned()),
        significant => Some(format!("{sign}{significant}")),
    }
}

/// A number with a fraction or an exponent; infinite where the text says so or is out of range.
fn float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return Some(sign * f64::INFINITY);
    }
    // The standard parser also reads words such as "infinity", which are text here.
    let is_number =
        |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-');
    let starts_well = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    if !starts_well || !unsigned.bytes().all(is_number) {
        return None;
    }
    unsigned.parse::<f64>().ok().map(|value| sign * value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match resolve(Cow::Borrowed(text), Written::Plain).unwrap() {
            Kind::Text(text) => format!("text {text}"),
            Kind::Float(value) => format!("float {value}"),
            Kind::Whole(digits) => format!("whole {digits}"),
            Kind::Bool(value) => format!("bool {value}"),
            _ => "null".to_owned(),
        }
    }

    #[test]
    fn plain_scalars_follow_the_core_schema() {
        let table = [
            ("", "null"),
            ("~", "null"),
            ("Null", "null"),
            ("nULL", "text nULL"),
            ("true", "bool true"),
            ("FALSE", "bool false"),
            ("yes", "text yes"),
            ("no", "text no"),
            ("on", "text on"),
            ("0", "whole 0"),
            ("-0", "whole 0"),
            ("+12", "whole 12"),
            ("007", "whole 7"),
            ("-019", "whole -19"),
            ("0x1F", "whole 31"),
            ("0o17", "whole 15"),
            ("0x+1", "text 0x+1"),
            ("0b1", "text 0b1"),
            ("1_000", "text 1_000"),
            (
                "123456789012345678901234567890",
                "whole 123456789012345678901234567890",
            ),
            ("1.5", "float 1.5"),
            (".5", "float 0.5"),
            ("5.", "float 5"),
            ("-1e3", "float -1000"),
            ("1e999", "float inf"),
            ("-.inf", "float -inf"),
            (".nan", "float NaN"),
            ("inf", "text inf"),
            ("nan", "text nan"),
            ("--1", "text --1"),
            ("+-1.0", "text +-1.0"),
            (".", "text ."),
            ("e5", "text e5"),
            ("1.2.3", "text 1.2.3"),
            ("2024-01-01", "text 2024-01-01"),
            ("12:30", "text 12:30"),
        ];
        for (text, expected) in table {
            assert_eq!(shown(text), expected, "{text:?}");
        }
    }

    #[test]
    fn tags_of_the_core_schema_decide_or_complain() {
        let resolve = |text, tag| resolve(Cow::Borrowed(text), Written::Tagged(tag));
        assert!(matches!(resolve("5", "str"), Ok(Kind::Text(text)) if text == "5"));
        assert!(matches!(resolve("5", "float"), Ok(Kind::Float(5.0))));
        assert!(matches!(resolve("5", "int"), Ok(Kind::Whole(digits)) if digits == "5"));
        assert!(resolve("x", "int").is_err());
        assert!(resolve("x", "binary").is_err());
    }
}
