//! Style that is checked instead of remembered: which room may use which, what the pure rooms
//! may know, how long files are, and that no reminder is left behind.
//!
//! Code is read as tokens, so comments and texts do not count as uses. Each check is a function
//! over text, and shown to fail at the end of this file.

use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The rooms and what else of this crate each may use, whole rooms or single items of one; from
/// the ground up, so that no row names a later one. `limits` and `clock` are open to all (the pure
/// rooms get only the time, as a value), `telemetry` to all that do anything.
const ROOMS: &[(&str, &str)] = &[
    ("limits", ""),
    // A macro stands at the root of the crate, wherever it is written.
    ("storage_conformance", ""),
    ("clock", "limits"),
    ("telemetry", "limits clock"),
    ("config", "limits clock"),
    ("workflow", "limits clock::Timestamp"),
    ("storage", "limits storage_conformance clock telemetry"),
    // An index row is made of the table port's plain values; the ports stay out of reach.
    (
        "wire",
        "limits clock::Timestamp workflow storage::Properties storage::Value",
    ),
    ("store", "limits clock telemetry workflow storage wire"),
    (
        "coordinator",
        "limits clock telemetry workflow storage wire store",
    ),
    (
        "worker",
        "limits clock telemetry workflow storage wire store",
    ),
    (
        "control",
        "limits clock telemetry workflow storage wire store coordinator",
    ),
    ("api", "limits clock telemetry config workflow wire control"),
    (
        "cli",
        "limits clock telemetry config workflow storage wire store coordinator worker control api",
    ),
];

/// Files at the root that join the rooms and belong to none.
const JOINTS: [&str; 2] = ["lib", "main"];

/// Rooms without IO, clock or runtime, and the names that would bring one in.
const PURE_ROOMS: [&str; 1] = ["workflow"];
const IMPURE_NAMES: [&str; 8] = [
    "Clock",
    "SystemTime",
    "Instant",
    "tokio",
    "futures",
    "tracing",
    "async",
    "await",
];

/// Lines a file may have: code should be proofread in one sitting, tests are read case by case.
const CODE_LINES_MAX: usize = 600;
const TEST_LINES_MAX: usize = 900;

/// Files that may be longer, with the reason. The list may only shrink.
const LONGER: &[(&str, &str)] = &[];

// ---- The checks over the whole tree ----------------------------------------------------------

#[test]
fn rooms_use_only_the_rooms_below_them() {
    assert_tidy(&["src"], &["rs"], |path, text| match room_of(path) {
        room if JOINTS.contains(&room.as_str()) => Vec::new(),
        room => backward_uses(&room, depth_of(path), text),
    });
}

#[test]
fn pure_rooms_know_no_clock_and_no_runtime() {
    assert_tidy(&["src"], &["rs"], |path, text| {
        if PURE_ROOMS.contains(&room_of(path).as_str()) {
            impure_names(text)
        } else {
            Vec::new()
        }
    });
}

#[test]
fn files_are_short() {
    assert_tidy(&["src", "tests"], &["rs"], |path, text| {
        let excused = LONGER.iter().any(|(long, _)| Path::new(long) == path);
        length_problem(is_test(path), excused, text.lines().count())
            .into_iter()
            .collect()
    });
    for (long, reason) in LONGER {
        assert!(
            root().join(long).exists(),
            "{long} is gone: drop it from the list"
        );
        assert!(!reason.is_empty(), "{long} needs a reason");
    }
}

#[test]
fn no_reminder_is_left_behind() {
    let kinds = ["rs", "md", "toml", "proto", "yaml", "yml", "sh"];
    assert_tidy(&["src", "tests", "docs"], &kinds, |_, text| reminders(text));
}

#[test]
fn the_table_of_rooms_points_one_way() {
    for (row, (room, may_use)) in ROOMS.iter().enumerate() {
        for used in may_use.split_whitespace() {
            let used = used.split("::").next().unwrap_or(used);
            assert!(
                ROOMS[..row].iter().any(|(earlier, _)| *earlier == used),
                "{room} uses {used}, which is not above it"
            );
        }
    }
}

// ---- Reading the tree ------------------------------------------------------------------------

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Applies `check` to each file of these kinds in these folders, and fails with all it finds.
#[track_caller]
fn assert_tidy(folders: &[&str], kinds: &[&str], check: impl Fn(&Path, &str) -> Vec<String>) {
    let mut files = Vec::new();
    for folder in folders {
        collect(&root().join(folder), kinds, &mut files);
    }
    assert!(!files.is_empty(), "no files in {folders:?}");
    files.sort();
    let mut problems = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).expect("a source file is readable text");
        let path = file.strip_prefix(root()).expect("files are below the root");
        let found = check(path, &text);
        problems.extend(
            found
                .iter()
                .map(|problem| format!("{}: {problem}", path.display())),
        );
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

/// The files below a folder; none if it does not exist (`docs` may not).
fn collect(folder: &Path, kinds: &[&str], files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("the folder is readable").path();
        if path.is_dir() {
            collect(&path, kinds, files);
        } else if kinds
            .iter()
            .any(|kind| path.extension().is_some_and(|found| found == *kind))
        {
            files.push(path);
        }
    }
}

/// The room of `src/room.rs` or `src/room/...`.
fn room_of(path: &Path) -> String {
    let first = path.iter().nth(1).unwrap_or_default();
    Path::new(first)
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// How many modules a file of `src` lies below the root of the crate.
fn depth_of(path: &Path) -> usize {
    let below_src = path.iter().count() - 1;
    below_src - usize::from(path.ends_with("mod.rs"))
}

fn is_test(path: &Path) -> bool {
    path.iter()
        .any(|part| part == "tests" || part == "tests.rs")
}

// ---- The checks over one text ----------------------------------------------------------------

/// A path to an item of this crate, from its root: `["wire", "TaskMessage"]`.
#[derive(Debug, PartialEq)]
struct Use {
    line: usize,
    path: Vec<String>,
}

fn backward_uses(room: &str, depth: usize, text: &str) -> Vec<String> {
    let Some((_, may_use)) = ROOMS.iter().find(|(name, _)| *name == room) else {
        return vec![format!("the room {room:?} is not in the table of rooms")];
    };
    uses(text, depth)
        .into_iter()
        .filter(|found| {
            let first = found.path.first().map_or("", String::as_str);
            let mut allowed = may_use.split_whitespace();
            let allowed = allowed.any(|allowed| begins_with(&found.path, allowed));
            first != room && !allowed
        })
        .map(|found| {
            format!(
                "line {}: {room} must not use {}",
                found.line,
                found.path.join("::")
            )
        })
        .collect()
}

fn begins_with(path: &[String], beginning: &str) -> bool {
    let mut parts = path.iter();
    beginning
        .split("::")
        .all(|expected| parts.next().is_some_and(|part| part == expected))
}

/// Everything a file names by `crate::` or by enough `super::` to reach the root, in `use` lines,
/// code and macros alike. `depth` is how far the file lies below the root.
fn uses(text: &str, depth: usize) -> Vec<Use> {
    let mut found = Vec::new();
    scan(&tokens_of(text), depth, &mut found);
    found
}

#[track_caller]
fn tokens_of(text: &str) -> Vec<TokenTree> {
    let stream: TokenStream = text.parse().expect("the file is Rust");
    stream.into_iter().collect()
}

fn scan(tokens: &[TokenTree], depth: usize, found: &mut Vec<Use>) {
    let mut at = 0;
    while at < tokens.len() {
        let rest = &tokens[at..];
        if is_word(rest, "crate") && is_separator(&rest[1..]) {
            expand(&rest[3..], &[], found);
        }
        let ups = supers(rest);
        if ups == depth && ups > 0 {
            expand(&rest[3 * ups..], &[], found);
        }
        if let Some(TokenTree::Group(branches)) = rest.get(3 * ups)
            && (1..depth).contains(&ups)
        {
            // The branches of `super::{...}` may climb the rest of the way.
            scan(&inside(branches), depth - ups, found);
            at += 3 * ups + 1;
            continue;
        }
        match rest {
            // Within an inline module the root is one more step away.
            [
                TokenTree::Ident(word),
                TokenTree::Ident(_),
                TokenTree::Group(body),
                ..,
            ] if word == "mod" => {
                scan(&inside(body), depth + 1, found);
                at += 3;
            }
            [TokenTree::Group(body), ..] => {
                scan(&inside(body), depth, found);
                at += 1;
            }
            _ => at += (3 * ups).max(1),
        }
    }
}

/// Adds the paths that a use tree, or a path in an expression, spells out after `prefix`.
fn expand(tokens: &[TokenTree], prefix: &[String], found: &mut Vec<Use>) {
    let Some(first) = tokens.first() else {
        return;
    };
    let mut path = prefix.to_vec();
    match first {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
            let is_comma =
                |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ',');
            for branch in inside(group).split(is_comma) {
                expand(branch, prefix, found);
            }
            return;
        }
        TokenTree::Ident(name) => {
            path.push(name.to_string());
            if is_separator(&tokens[1..]) {
                return expand(&tokens[3..], &path, found);
            }
        }
        TokenTree::Punct(star) if star.as_char() == '*' => path.push("*".to_owned()),
        _ => {}
    }
    let line = first.span().start().line;
    found.push(Use { line, path });
}

/// How many `super::` stand here in a row.
fn supers(tokens: &[TokenTree]) -> usize {
    tokens
        .chunks(3)
        .take_while(|step| is_word(step, "super") && is_separator(&step[1..]))
        .count()
}

fn is_word(tokens: &[TokenTree], word: &str) -> bool {
    matches!(tokens, [TokenTree::Ident(found), ..] if found == word)
}

fn is_separator(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [TokenTree::Punct(first), TokenTree::Punct(second), ..]
        if first.as_char() == ':' && second.as_char() == ':')
}

fn inside(group: &proc_macro2::Group) -> Vec<TokenTree> {
    group.stream().into_iter().collect()
}

fn impure_names(text: &str) -> Vec<String> {
    fn visit(tokens: &[TokenTree], problems: &mut Vec<String>) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => visit(&inside(group), problems),
                TokenTree::Ident(name) if IMPURE_NAMES.iter().any(|impure| name == impure) => {
                    let line = name.span().start().line;
                    problems.push(format!("line {line}: a pure room must not know {name}"));
                }
                _ => {}
            }
        }
    }
    let mut problems = Vec::new();
    visit(&tokens_of(text), &mut problems);
    problems
}

fn length_problem(is_test: bool, excused: bool, lines: usize) -> Option<String> {
    let max = if is_test {
        TEST_LINES_MAX
    } else {
        CODE_LINES_MAX
    };
    match (lines > max, excused) {
        (true, false) => Some(format!("has {lines} lines, {max} are allowed: split it")),
        (false, true) => Some("is short enough now: drop it from the list".to_owned()),
        _ => None,
    }
}

/// Words that promise work. They are put together here so that this file may pass its own check.
fn reminders(text: &str) -> Vec<String> {
    let words = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X"),
    ];
    let macros = [concat!("to", "do!"), concat!("unimple", "mented!")];
    let mut problems = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '!';
        for word in line.split(|c| !is_part(c)) {
            let bare = word.trim_matches('!');
            if words.contains(&bare) || macros.iter().any(|name| word.starts_with(name)) {
                problems.push(format!("line {}: {word} is left behind", index + 1));
            }
        }
    }
    problems
}

// ---- The checks can fail ---------------------------------------------------------------------

#[test]
fn a_backward_use_is_found_in_every_spelling() {
    for text in [
        "use crate::control::Control;",
        "use crate::{limits, control::Control};",
        "use crate::{limits, wire::{self}, control::*};",
        "use crate::control;",
        "fn f() { let x = [crate::control::new()]; }",
        "mod tests { fn f() { g!(crate::control::NAME) } }",
        "macro_rules! m { () => { $crate::control::new() } }",
        "use super::super::control::Control;",
        "mod inner { use super::super::super::control; }",
        "use super::super::{limits, control};",
        "use super::{inner, super::control};",
    ] {
        let found = backward_uses("store", 2, text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(
            found[0].contains("line 1: store must not use control"),
            "{found:?}"
        );
    }
}

#[test]
fn allowed_uses_comments_and_texts_pass() {
    for text in [
        "use crate::wire::{TaskMessage, names};",
        "use crate::store::Error;",
        "use super::{control, inner::control};",
        "use super::control::Control; mod inner { use super::super::control; }",
        "// crate::control\n/// [`crate::control`]\nfn f() { g(\"crate::control\") }",
        "pub(crate) fn f() {} pub(super) fn g() {}",
        "use other::control; use other::crate_::control;",
    ] {
        let found = backward_uses("store", 2, text);
        assert!(found.is_empty(), "{text}: {found:?}");
    }
}

#[test]
fn an_arrow_to_one_item_opens_nothing_else() {
    let refused = |text| !backward_uses("workflow", 1, text).is_empty();
    assert!(!refused("use crate::clock::Timestamp;"));
    assert!(!refused(
        "fn f() { crate::clock::Timestamp::from_micros(0) }"
    ));
    assert!(refused("use crate::clock::{Clock, Timestamp};"));
    assert!(refused("use crate::clock;"));
    assert!(refused("use crate::clock::*;"));
    assert!(refused("use crate::{clock as c};"));
    assert!(refused("use super::clock::Clock;"));
}

#[test]
fn a_room_outside_the_table_is_found() {
    assert_eq!(backward_uses("attic", 1, "").len(), 1);
    assert_eq!(room_of(Path::new("src/attic.rs")), "attic");
    assert_eq!(room_of(Path::new("src/attic/box/mod.rs")), "attic");
    assert_eq!(depth_of(Path::new("src/attic.rs")), 1);
    assert_eq!(depth_of(Path::new("src/attic/mod.rs")), 1);
    assert_eq!(depth_of(Path::new("src/attic/box/mod.rs")), 2);
    assert_eq!(depth_of(Path::new("src/attic/box.rs")), 2);
}

#[test]
fn an_impure_name_is_found_in_code_only() {
    assert_eq!(
        impure_names("fn f() {\n g(std::time::Instant::now()) }").len(),
        1
    );
    assert_eq!(
        impure_names("async fn f() { tokio::spawn(g).await }").len(),
        3
    );
    assert_eq!(
        impure_names("// tokio\n/// An Instant.\nfn f() { g(\"tracing\", clock) }").len(),
        0
    );
}

#[test]
fn a_file_too_long_or_needlessly_excused_is_found() {
    assert!(length_problem(false, false, CODE_LINES_MAX).is_none());
    assert!(length_problem(false, false, CODE_LINES_MAX + 1).is_some());
    assert!(length_problem(true, false, TEST_LINES_MAX).is_none());
    assert!(length_problem(true, false, TEST_LINES_MAX + 1).is_some());
    assert!(length_problem(false, true, CODE_LINES_MAX + 1).is_none());
    assert!(length_problem(false, true, CODE_LINES_MAX).is_some());
    assert!(is_test(Path::new("src/wire/tests.rs")) && is_test(Path::new("tests/tidy.rs")));
    assert!(!is_test(Path::new("src/workflow/testkit.rs")));
}

#[test]
fn a_reminder_is_found_as_a_word_of_its_own() {
    let (word, call) = (concat!("TO", "DO"), concat!("to", "do!"));
    for left in [
        format!("// {word}: later"),
        format!("text {word}"),
        format!("({word}!)"),
        format!("{call}()"),
        format!("x = {call}(\"later\");"),
        concat!("unimple", "mented!()").to_owned(),
        concat!("// FIX", "ME").to_owned(),
    ] {
        assert_eq!(reminders(&left).len(), 1, "{left}");
    }
    for fine in [
        concat!("mktemp XX", "XX"),
        "let todo = 1;",
        "a todo-list",
        "method!()",
    ] {
        assert!(reminders(fine).is_empty(), "{fine}");
    }
}
