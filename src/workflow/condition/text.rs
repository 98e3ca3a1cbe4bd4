//! Text literals, in single or double quotes, with Python's escapes.

use super::ParseError;

/// The text whose opening quote stands at `start`, and the index behind its closing quote.
pub(super) fn read(chars: &[char], start: usize) -> Result<(String, usize), ParseError> {
    let quote = chars[start];
    if chars[start..].starts_with(&[quote; 3]) {
        return Err(ParseError::new(
            start + 1,
            "texts stand in single or double quotes, not in triple ones",
        ));
    }
    let mut text = String::new();
    let mut at = start + 1;
    loop {
        match chars.get(at) {
            None | Some('\n' | '\r') => {
                return Err(ParseError::new(
                    start + 1,
                    format!("the text that begins here has no closing {quote} on its line"),
                ));
            }
            Some(&c) if c == quote => return Ok((text, at + 1)),
            Some('\\') => at = escape(chars, at, &mut text)?,
            Some(&c) => {
                text.push(c);
                at += 1;
            }
        }
    }
}

/// Adds what the escape at `start` stands for, and returns the index behind it.
fn escape(chars: &[char], start: usize, text: &mut String) -> Result<usize, ParseError> {
    let Some(&kind) = chars.get(start + 1) else {
        // The caller reports the missing quote.
        return Ok(start + 1);
    };
    let single = match kind {
        '\\' | '\'' | '"' => kind,
        'a' => '\x07',
        'b' => '\x08',
        'f' => '\x0c',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\x0b',
        // A line break after a backslash is left out.
        '\n' => return Ok(start + 2),
        '\r' => return Ok(start + 2 + usize::from(chars.get(start + 2) == Some(&'\n'))),
        'x' => return coded(chars, start, 2, text),
        'u' => return coded(chars, start, 4, text),
        'U' => return coded(chars, start, 8, text),
        '0'..='7' => return Ok(octal(chars, start, text)),
        'N' => {
            return Err(ParseError::new(
                start + 1,
                "characters have no names here: write the character itself, or \\u and its code",
            ));
        }
        // Unknown escapes stand for themselves, backslash included.
        other => {
            text.push('\\');
            other
        }
    };
    text.push(single);
    Ok(start + 2)
}

/// `\x`, `\u` and `\U` with exactly `length` hex digits.
fn coded(
    chars: &[char],
    start: usize,
    length: usize,
    text: &mut String,
) -> Result<usize, ParseError> {
    let digits = chars.iter().skip(start + 2).take(length);
    let code = digits
        .map(|c| c.to_digit(16))
        .try_fold((0_u32, 0), |(code, count), digit| {
            Some((code << 4 | digit?, count + 1))
        });
    let kind = chars[start + 1];
    let code = match code {
        Some((code, count)) if count == length => code,
        _ => {
            let message = format!("\\{kind} takes exactly {length} hex digits");
            return Err(ParseError::new(start + 1, message));
        }
    };
    let found = char::from_u32(code).ok_or_else(|| {
        let message = format!("there is no character with the code {code:#x}");
        ParseError::new(start + 1, message)
    })?;
    text.push(found);
    Ok(start + 2 + length)
}

/// `\` and one to three octal digits.
fn octal(chars: &[char], start: usize, text: &mut String) -> usize {
    let digits = chars.iter().skip(start + 1).take(3);
    let digits: Vec<u32> = digits.map_while(|c| c.to_digit(8)).collect();
    let code = digits.iter().fold(0, |code, digit| code << 3 | digit);
    // At most 0o777, where every code is a character.
    text.extend(char::from_u32(code));
    start + 1 + digits.len()
}
