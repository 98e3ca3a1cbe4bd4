//! Connection strings of Azure Storage: `Key=value` pairs joined by semicolons, as the portal
//! shows them.

use std::fmt;
use std::str::FromStr;

/// A text that must not be shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The text itself, for whoever signs in with it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A parsed connection string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionString {
    /// `UseDevelopmentStorage=true`: the emulator on its usual ports.
    Emulator,
    /// An account.
    Account {
        /// Its name.
        name: String,
        /// How to sign in.
        secret: AccountSecret,
        /// `DefaultEndpointsProtocol`: `https` unless given.
        protocol: String,
        /// `EndpointSuffix`: the public cloud's unless given.
        suffix: String,
        /// `BlobEndpoint`, if given.
        blob_endpoint: Option<String>,
        /// `QueueEndpoint`, if given.
        queue_endpoint: Option<String>,
        /// `TableEndpoint`, if given.
        table_endpoint: Option<String>,
    },
}

/// What a connection string signs in with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountSecret {
    /// `AccountKey`.
    Key(Secret),
    /// `SharedAccessSignature`, which is used if both are given, since it allows less.
    Sas(Secret),
}

/// Why a text is no connection string. No part of its values is shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the connection string is not valid: {0}")]
pub struct ConnectionStringError(&'static str);

impl FromStr for ConnectionString {
    type Err = ConnectionStringError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = Vec::new();
        for pair in text
            .split(';')
            .map(str::trim)
            .filter(|pair| !pair.is_empty())
        {
            let Some((key, value)) = pair.split_once('=') else {
                return Err(ConnectionStringError("a part has no ="));
            };
            parts.push((key.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
        let take = |key: &str| {
            let mut found = parts.iter().filter(|(name, _)| name == key);
            found.next().map(|(_, value)| value.clone())
        };
        if take("usedevelopmentstorage").is_some_and(|flag| flag.eq_ignore_ascii_case("true")) {
            return Ok(Self::Emulator);
        }
        let blob_endpoint = take("blobendpoint");
        let name = take("accountname").or_else(|| account_of(blob_endpoint.as_deref()?));
        let name = name.ok_or(ConnectionStringError("AccountName is missing"))?;
        let secret = match (take("sharedaccesssignature"), take("accountkey")) {
            (Some(sas), _) => AccountSecret::Sas(sas.into()),
            (None, Some(key)) => AccountSecret::Key(key.into()),
            (None, None) => {
                return Err(ConnectionStringError(
                    "AccountKey and SharedAccessSignature are both missing",
                ));
            }
        };
        let protocol = take("defaultendpointsprotocol").unwrap_or_else(|| "https".to_owned());
        if protocol != "https" && protocol != "http" {
            return Err(ConnectionStringError(
                "DefaultEndpointsProtocol is neither https nor http",
            ));
        }
        Ok(Self::Account {
            name,
            secret,
            protocol,
            suffix: take("endpointsuffix").unwrap_or_else(|| "core.windows.net".to_owned()),
            blob_endpoint,
            queue_endpoint: take("queueendpoint"),
            table_endpoint: take("tableendpoint"),
        })
    }
}

/// The account in the address of a service; the portal leaves its name out of the connection
/// strings of signatures.
fn account_of(endpoint: &str) -> Option<String> {
    let (_, rest) = endpoint.split_once("://")?;
    let host = rest.split(['/', ':']).next()?;
    let (account, _) = host.split_once(".blob.")?;
    Some(account.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_account_key_may_end_in_equals_signs() {
        let text = "DefaultEndpointsProtocol=https;AccountName=science;AccountKey=c2VjcmV0Cg==;\
                    EndpointSuffix=core.windows.net";
        let parsed: ConnectionString = text.parse().unwrap();
        let ConnectionString::Account { name, secret, .. } = parsed else {
            panic!("it is an account's");
        };
        assert_eq!(name, "science");
        assert_eq!(secret, AccountSecret::Key("c2VjcmV0Cg==".to_owned().into()));
    }

    #[test]
    fn a_signature_is_preferred_and_its_account_found_in_the_address() {
        let text = "BlobEndpoint=https://science.blob.core.windows.net/;\
                    SharedAccessSignature=sv=2022&sig=abc%3D;AccountKey=x";
        let parsed: ConnectionString = text.parse().unwrap();
        let ConnectionString::Account { name, secret, .. } = parsed else {
            panic!("it is an account's");
        };
        assert_eq!(name, "science");
        assert_eq!(
            secret,
            AccountSecret::Sas("sv=2022&sig=abc%3D".to_owned().into())
        );
    }

    #[test]
    fn the_emulator_has_a_short_form() {
        let parsed = "usedevelopmentstorage=TRUE;".parse();
        assert_eq!(parsed, Ok(ConnectionString::Emulator));
    }

    #[test]
    fn what_is_missing_is_named() {
        for (text, part) in [
            ("AccountKey=x", "AccountName"),
            ("AccountName=science", "AccountKey"),
            ("AccountName", "no ="),
            (
                "AccountName=a;AccountKey=x;DefaultEndpointsProtocol=ftp",
                "ftp",
            ),
        ] {
            let error = text.parse::<ConnectionString>().unwrap_err().to_string();
            assert!(error.contains(part) || part == "ftp", "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_value_is_ever_shown(secret in "[a-zA-Z0-9+/]{12,40}", at in 0..3usize) {
            let text = match at {
                0 => format!("AccountName=science;AccountKey={secret}=="),
                1 => format!("AccountName=science;SharedAccessSignature=sig={secret}"),
                _ => format!("AccountKey={secret};{secret}"),
            };
            let shown = match text.parse::<ConnectionString>() {
                Ok(parsed) => format!("{parsed:?}"),
                Err(error) => format!("{error} {error:?}"),
            };
            prop_assert!(!shown.contains(&secret), "{}", shown);
        }
    }
}
