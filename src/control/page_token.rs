//! Page tokens: where a listing goes on, as text that clients hand back unread.
//!
//! A token is a key, not a position, so pages stay right while rows come and go. It carries the
//! order and a digest of the filter it was made with; with another one it is refused rather than
//! giving rows that fit neither.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::limits::PAGE_TOKEN_BYTES_MAX;

/// The form this program writes and reads.
const VERSION: u32 = 1;

/// Why a text cannot be used as a page token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PageTokenError {
    /// No page ever ended with it.
    #[error("the page token is damaged; begin again without one")]
    Damaged,
    /// It belongs to a listing with another filter or order.
    #[error("the page token belongs to a listing with another filter or order; begin again")]
    OtherListing,
}

#[derive(Serialize, Deserialize)]
struct Token {
    v: u32,
    /// Digest of what the listing asks for.
    f: String,
    /// The key after which it goes on.
    k: String,
}

/// A digest of what a listing asks for, page size and token left out.
pub(crate) fn fingerprint(listing: &impl Serialize) -> String {
    let json = serde_json::to_vec(listing).expect("a request is plain data");
    hex::encode(&Sha256::digest(json)[..8])
}

/// The token for the listing with this fingerprint to go on after `key`.
pub(crate) fn encode(fingerprint: &str, key: &str) -> String {
    let token = Token {
        v: VERSION,
        f: fingerprint.to_owned(),
        k: key.to_owned(),
    };
    let json = serde_json::to_vec(&token).expect("a token is plain data");
    URL_SAFE_NO_PAD.encode(json)
}

/// The key in a token of the listing with this fingerprint.
///
/// # Errors
/// [`PageTokenError`]; whatever the text.
pub fn decode(fingerprint: &str, text: &str) -> Result<String, PageTokenError> {
    if text.len() > PAGE_TOKEN_BYTES_MAX {
        return Err(PageTokenError::Damaged);
    }
    let json = URL_SAFE_NO_PAD.decode(text);
    let json = json.map_err(|_| PageTokenError::Damaged)?;
    let token: Token = serde_json::from_slice(&json).map_err(|_| PageTokenError::Damaged)?;
    if token.v != VERSION {
        return Err(PageTokenError::Damaged);
    }
    if token.f != fingerprint {
        return Err(PageTokenError::OtherListing);
    }
    Ok(token.k)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_token_of_another_listing_is_refused() {
        let token = encode("one", "key");
        assert_eq!(decode("one", &token).as_deref(), Ok("key"));
        assert_eq!(decode("two", &token), Err(PageTokenError::OtherListing));
        let long = "A".repeat(PAGE_TOKEN_BYTES_MAX + 1);
        for text in ["", "!", "e30", &token[1..], &long] {
            assert_eq!(decode("one", text), Err(PageTokenError::Damaged), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_key_comes_back_and_no_text_panics(key in "(?s).{0,200}", text in "(?s).{0,80}") {
            prop_assert_eq!(decode("f", &encode("f", &key)), Ok(key));
            let _ = decode("f", &text);
        }
    }
}
