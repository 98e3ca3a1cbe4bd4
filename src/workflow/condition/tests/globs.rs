use proptest::prelude::*;

use super::super::glob::Glob;

#[test]
fn globs_mean_what_they_mean_to_fnmatch() {
    for (pattern, matching, others) in [
        ("*", &["", "a", "grp/t-0", "é"][..], &[][..]),
        (
            "train-*",
            &["train-", "train-1", "train-a/b"],
            &["train", "xtrain-1"],
        ),
        ("*-end", &["-end", "a-end", "-end-end"], &["end", "-end-"]),
        ("a*b*c", &["abc", "aXbYc", "abbcbc"], &["ab", "acb", "abcd"]),
        ("**", &["", "a"], &[]),
        ("?", &["a", "é", "/"], &["", "ab"]),
        ("a?c", &["abc"], &["ac", "abbc"]),
        ("[ab]", &["a", "b"], &["c", "", "ab", "[ab]"]),
        ("[!ab]", &["c", "é", "/", "!"], &["a", "b", ""]),
        ("[^a]", &["^", "a"], &["b"]),
        ("[a-c]x", &["ax", "bx", "cx"], &["dx", "-x"]),
        ("[à-ü]", &["é"], &["e"]),
        ("[-a]", &["-", "a"], &["b"]),
        ("[a-]", &["-", "a"], &["b"]),
        ("[a-c-e]", &["b", "-", "e"], &["d"]),
        ("[c-a]", &[], &["a", "b", "c", "-"]),
        ("[!c-a]", &["a", "b", "c", "-"], &["", "ab"]),
        ("[]a]", &["]", "a"], &["b"]),
        ("[!]a]", &["b"], &["]", "a"]),
        ("[*]", &["*"], &["a", ""]),
        ("[[]x", &["[x"], &["x"]),
        ("[ab", &["[ab"], &["a"]),
        ("[!]", &["[!]"], &["a"]),
        ("a[", &["a["], &["a"]),
        ("{a,b}", &["{a,b}"], &["a", "b"]),
        ("\\*", &["\\", "\\x"], &["*"]),
        ("A", &["A"], &["a"]),
        ("", &[""], &["a"]),
    ] {
        let glob = Glob::new(pattern);
        for name in matching {
            assert!(glob.matches(name), "{pattern:?} should match {name:?}");
        }
        for name in others {
            assert!(!glob.matches(name), "{pattern:?} should not match {name:?}");
        }
    }
}

#[test]
fn only_names_without_wildcards_are_plain() {
    for plain in ["train-1", "a[b", "grp/c", "", "]", "[!]"] {
        assert!(Glob::new(plain).is_plain(), "{plain:?}");
    }
    for pattern in ["*", "a?", "[ab]", "[*]"] {
        assert!(!Glob::new(pattern).is_plain(), "{pattern:?}");
    }
}

/// Goal: a pattern made to be slow costs no more than the product of the lengths. Method: about
/// 2**2000 ways exist to lay the runs; only a matcher that does not try them comes back.
#[test]
fn many_runs_do_not_multiply() {
    let glob = Glob::new(&format!("{}b", "*a".repeat(2_000)));
    assert!(!glob.matches(&"a".repeat(4_000)));
    assert!(glob.matches(&format!("{}b", "a".repeat(4_000))));
}

/// The textbook definition, exponential but plainly right.
fn matches_by_definition(pattern: &[char], name: &[char]) -> bool {
    match pattern.split_first() {
        None => name.is_empty(),
        Some(('*', rest)) => (0..=name.len()).any(|cut| matches_by_definition(rest, &name[cut..])),
        Some((expected, rest)) => name.split_first().is_some_and(|(found, name)| {
            (*expected == '?' || expected == found) && matches_by_definition(rest, name)
        }),
    }
}

proptest! {
    #[test]
    fn matching_agrees_with_its_definition(pattern in "[ab*?]{0,8}", name in "[ab]{0,10}") {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        let expected = matches_by_definition(&chars(&pattern), &chars(&name));
        prop_assert_eq!(Glob::new(&pattern).matches(&name), expected);
    }
}
