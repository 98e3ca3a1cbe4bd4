//! What goes wrong between here and an account: one clear line each, soon, and no secret in it.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use azure_storage::shared_access_signature::SasToken as _;
use azure_storage::shared_access_signature::account_sas::{
    AccountSasPermissions, AccountSasResource, AccountSasResourceType, AccountSharedAccessSignature,
};
use time::OffsetDateTime;

use crate::emulator::{self, ACCOUNT, KEY};
use crate::support::{Site, eventually, text};

/// Nobody waits longer than this to be told that something is wrong.
const SOON: Duration = Duration::from_secs(15);

/// A key of the right form that is not the account's, and the one that is.
const WRONG_KEY: &str = "d3Jvbmcga2V5IHdyb25nIGtleSB3cm9uZyBrZXkgd3Jvbmcga2V5IHdyb25nIGtleQ==";

fn described(connection_string: String) -> Site {
    Site::with_environment([
        ("JOBQ_STORAGE", "azure".to_owned()),
        ("JOBQ_PREFIX", emulator::prefix()),
        ("AZURE_STORAGE_CONNECTION_STRING", connection_string),
    ])
}

/// `jobq list` fails with one line that says `expected`, soon, and shows no secret.
#[track_caller]
fn fails_in_one_line(site: &Site, expected: &[&str]) {
    let started = Instant::now();
    let output = site.output(&["list", "--log", "trace"]);
    assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
    assert_eq!(output.status.code(), Some(1));
    let stderr = text(&output.stderr);
    let errors = || stderr.lines().filter(|line| line.starts_with("error: "));
    assert_eq!(errors().count(), 1, "{stderr}");
    let line = errors().next().unwrap();
    for part in expected {
        assert!(line.contains(part), "{part} in {line}");
    }
    for secret in [KEY, WRONG_KEY, "sig=", "backtrace", "panicked"] {
        assert!(!stderr.contains(secret), "{secret} in {stderr}");
    }
    assert_eq!(text(&output.stdout), "");
}

/// A connection string whose services all listen on one port of this machine.
fn at(port: u16) -> String {
    let endpoint = format!("http://127.0.0.1:{port}/{ACCOUNT}");
    format!(
        "AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={endpoint};QueueEndpoint={endpoint};\
         TableEndpoint={endpoint}"
    )
}

#[test]
fn a_wrong_key_is_told_as_one() {
    let site = described(emulator::connection_string(WRONG_KEY));
    fails_in_one_line(&site, &["the key was refused"]);
}

#[test]
fn a_missing_permission_names_the_role_that_has_it() {
    let may_list = AccountSharedAccessSignature::new(
        ACCOUNT.to_owned(),
        azure_core::auth::Secret::new(KEY),
        AccountSasResource::Blob,
        AccountSasResourceType::Service,
        OffsetDateTime::now_utc() + Duration::from_secs(3600),
        AccountSasPermissions {
            list: true,
            ..AccountSasPermissions::default()
        },
    );
    let token = may_list.token().unwrap();
    let string = emulator::connection_string("").replace("AccountKey=", "Ignored=");
    let site = described(format!("{string};SharedAccessSignature={token}"));
    fails_in_one_line(
        &site,
        &["the permission is missing", "Storage Blob Data Contributor"],
    );
}

#[test]
fn an_endpoint_where_nobody_listens_is_told_as_one() {
    let port = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let site = described(at(port));
    fails_in_one_line(&site, &["cannot be reached", "refused"]);
}

#[test]
fn an_endpoint_that_never_answers_is_told_as_one() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let site = described(at(listener.local_addr().unwrap().port()));
    fails_in_one_line(&site, &["in time"]);
}

/// The service refuses signatures from 15 minutes on; the emulator does not, so this listener
/// answers as the service's documentation says it does.
fn refusing_with_date(date: &str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = format!(
        "HTTP/1.1 403 Forbidden\r\ndate: {date}\r\nx-ms-error-code: AuthenticationFailed\r\n\
         content-length: 0\r\nconnection: close\r\n\r\n"
    );
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    port
}

#[test]
fn a_clock_that_is_off_is_told_as_one() {
    for (minutes, side) in [(60, "behind"), (-60, "ahead of")] {
        let theirs = OffsetDateTime::now_utc() + time::Duration::minutes(minutes);
        let date = azure_core::date::to_rfc1123(&theirs);
        let site = described(at(refusing_with_date(&date)));
        fails_in_one_line(&site, &["clock is", side, "set the clock"]);
    }
}

#[test]
fn an_impossible_key_and_a_missing_connection_string_are_told_as_such() {
    let site = described(emulator::connection_string("n0t-base64"));
    fails_in_one_line(&site, &["not base64"]);
    let site = described(String::new());
    let output = site.output(&["list"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("AZURE_STORAGE_CONNECTION_STRING is not set"));
}

#[test]
fn a_server_waits_for_a_storage_that_is_away_and_gives_up_on_a_wrong_key() {
    let port = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let site = described(at(port));
    let mut server = site.spawn(&["serve"]);
    eventually("it says so twice", || {
        server.log().matches("the storage is not available").count() >= 2
    });
    assert_eq!(server.terminate(), Some(0));

    let site = described(emulator::connection_string(WRONG_KEY));
    let mut server = site.spawn(&["serve"]);
    assert_eq!(server.wait(), Some(1));
    assert!(server.log().contains("was refused"), "{}", server.log());
}
