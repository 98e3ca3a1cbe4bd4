use super::*;
use crate::limits::{CONDITION_BYTES_MAX, CONDITION_DEPTH_MAX};

#[track_caller]
fn refusal(text: &str) -> ParseError {
    match Condition::parse(text) {
        Ok(condition) => panic!("{text} was accepted: {condition:?}"),
        Err(error) => error,
    }
}

/// (text, position, part of the message)
#[track_caller]
fn assert_refused(table: &[(&str, usize, &str)]) {
    for (text, position, part) in table {
        let error = refusal(text);
        assert!(
            error.position == *position && error.message.contains(part),
            "{text}: expected {part:?} at {position}, got: {error}"
        );
    }
}

#[test]
fn numbers_are_written_as_in_python() {
    assert_true(&[
        "0x_fF == 255 == 0XFF",
        "0o17 == 15 == 0O1_7",
        "0b101 == 5 == 0B1_01",
        "1_000 == 1000",
        "00 == 0 == 0_0",
        "1. == 1.0 == 1 == 1e0 == 01.0 == 1_0.0_0e-0_1",
        ".5 == 0.5 == 5E-1 == 5e-01",
        "1.e2 == 100 == 1e+2",
        "- 1 == -1 == -0x1 == -1.0",
    ]);
    assert_refused(&[
        ("inputs.a == 01", 13, "no leading zeros"),
        ("1__0", 2, "only between two digits"),
        ("1_", 2, "only between two digits"),
        ("0x", 3, "base 16 are missing"),
        ("0b2", 3, "base 2 are missing"),
        ("0b12", 4, "cannot follow a number"),
        ("1abc", 2, "cannot follow a number"),
        ("1e", 2, "cannot follow a number"),
        ("1j", 2, "cannot follow a number"),
        (
            "1 < 170141183460469231731687303715884105728",
            5,
            "end at 2**127 - 1",
        ),
    ]);
}

#[test]
fn a_minus_stands_only_before_a_number() {
    assert_refused(&[
        ("1 < -inputs.a.x", 5, "only before a number"),
        ("--1", 1, "only before a number"),
        ("-True", 1, "only before a number"),
        ("-(1)", 1, "only before a number"),
        ("inputs.a - 1", 10, "no arithmetic"),
        ("inputs.train-1.ok", 13, "inputs[\"name\"]"),
    ]);
}

#[test]
fn texts_have_the_escapes_of_python() {
    assert_true(&[
        r#"'a"b' == "a\"b""#,
        r"'\x41\u0042\U00000043' == 'ABC'",
        r"'\101\60\0' == 'A0\x00'",
        r"'\400' == 'Ā'",
        r"'\a\b\f\v' == '\x07\x08\x0c\x0b'",
        r"'\n\t\r' == '\12\11\15'",
        r"'\q' == '\\q'",
        r"'\é' == '\\é'",
        r"'\8' == '\\8'",
        r#"'it\'s' == "it's""#,
        "'a\\\nb' == 'ab'",
        "'a\\\r\nb' == 'ab'",
    ]);
    assert_refused(&[
        (r"'\x4'", 2, "exactly 2 hex digits"),
        (r"'a\u00g0'", 3, "exactly 4 hex digits"),
        (r"'\ud800'", 2, "no character with the code 0xd800"),
        (r"'\U00110000'", 2, "no character with the code 0x110000"),
        (r"'\N{BULLET}'", 2, "no names"),
        ("inputs.a == 'open", 13, "no closing '"),
        ("'a\nb'", 1, "no closing '"),
        (r"'\", 1, "no closing '"),
        ("'''a'''", 1, "not in triple"),
        ("r'a'", 1, "no prefix"),
        ("inputs.a == Rb'a'", 13, "no prefix"),
        ("'a' 'b'", 5, "put an operator between"),
    ]);
    // A keyword may touch a quote; it is no prefix.
    assert_true(&["'a'in'abc'", "not''"]);
}

#[test]
fn lists_and_tuples_may_end_in_a_comma() {
    assert_true(&[
        "[1, 2,] == [1, 2]",
        "(1, 2,) == (1, 2)",
        "(1,) != 1",
        "(1) == 1",
        "1 in (1,)",
        "[[1], (2,), []] == [[1], (2,), []]",
    ]);
    assert_refused(&[
        ("[,]", 2, "expected a value, found ','"),
        ("(1, , 2)", 5, "expected a value, found ','"),
        ("[1 2]", 4, "expected ',' or ']'"),
        ("[1, 2", 6, "']' is missing"),
        ("(1", 3, "')' is missing"),
        ("1)", 2, "nothing is open"),
        ("1, 2", 2, "in parentheses"),
        ("[x for x in inputs]", 2, "\"x\" is unknown"),
        ("[1 for x in inputs]", 4, "no loops"),
    ]);
}

#[test]
fn nothing_outside_the_language_is_accepted() {
    assert_refused(&[
        ("", 1, "empty"),
        (" \n", 3, "empty"),
        ("inputs.a <", 11, "expected a value, found the end"),
        ("== 1", 1, "expected a value, found '=='"),
        ("inputs.a = 1", 10, "'=='"),
        ("inputs.a === 1", 12, "'=='"),
        ("!inputs.a", 1, "'not'"),
        ("inputs.a && 1", 10, "'and'"),
        ("inputs.a || 1", 10, "'or'"),
        ("inputs.a + 1", 10, "no arithmetic"),
        ("inputs.a * 2", 10, "no arithmetic"),
        ("inputs.a is None", 10, "in place of 'is'"),
        ("inputs.a if 1 else 2", 10, "no 'if'"),
        ("inputs.a AND 1", 10, "written small"),
        ("inputs.a not 1", 14, "followed by 'in'"),
        ("1 == not 1", 6, "unknown"),
        ("inputs.a.f()", 11, "only all, any"),
        ("open('f')", 1, "no function \"open\""),
        ("lambda: 1", 1, "not part of the language"),
        ("foo $", 1, "\"foo\" is unknown"),
        ("é € 1", 1, "\"é\" is unknown"),
        ("'é' € 1", 5, "not part of the language"),
        ("{1: 2}", 1, "no dicts"),
        ("inputs.a # why", 10, "no comments"),
        ("[1][0]", 4, "only inputs have"),
        ("'a'.b", 4, "only inputs have"),
    ]);
}

#[test]
fn paths_start_at_an_input_and_step_by_constants() {
    assert_refused(&[
        ("inputs", 1, "alone is no value"),
        ("'a' in inputs", 8, "alone is no value"),
        ("inputs[0]", 7, "names, not numbers"),
        ("inputs[inputs.a]", 8, "quoted name or a whole number"),
        ("inputs.a[inputs.b]", 10, "quoted name or a whole number"),
        ("inputs.a[1.0]", 10, "quoted name or a whole number"),
        ("inputs.a[True]", 10, "quoted name or a whole number"),
        ("inputs.a[0:1]", 11, "slices"),
        ("inputs.a[0, 1]", 11, "expected ',' or ']'"),
        ("inputs.a[0", 11, "']' is missing"),
        ("inputs.a.0", 9, "written as [0]"),
        ("inputs.a.", 10, "expected a name after '.'"),
        ("inputs.a.*", 10, "expected a name after '.'"),
        ("inputs.'a'", 8, "expected a name after '.', found a text"),
        ("inputs.a.in", 10, "write [\"in\"]"),
        ("inputs.class.x", 8, "write [\"class\"]"),
    ]);
}

#[test]
fn globs_stand_within_one_aggregate_each() {
    assert_refused(&[
        ("inputs.*.ok", 1, "put it within all"),
        ("1 and inputs['t-*'].ok", 7, "put it within all"),
        ("all(inputs.a.ok)", 1, "there is none in it"),
        ("all(1)", 1, "there is none in it"),
        ("all(inputs['a*'].x == inputs['b*'].x)", 23, "one pattern"),
        ("all(any(inputs.*.ok))", 5, "within another aggregate"),
        (
            "all(inputs.*.ok or count(inputs.*.ok))",
            20,
            "within another aggregate",
        ),
        ("all()", 1, "takes one expression"),
        ("all(inputs.*.ok, 1)", 1, "takes one expression"),
        ("almost_all(inputs.*.ok)", 1, "a whole number from 0"),
        ("almost_all(inputs.*.ok, -1)", 1, "a whole number from 0"),
        ("almost_all(inputs.*.ok, 1.0)", 1, "a whole number from 0"),
        (
            "almost_all(inputs.*.ok, inputs.a.n)",
            1,
            "a whole number from 0",
        ),
        ("almost_all(inputs.*.ok, 1, 2)", 1, "a whole number from 0"),
        ("1 < count", 5, "is a function"),
        ("all(inputs.*.ok", 16, "')' is missing"),
        ("sum(inputs.*.x) > 1", 1, "no function \"sum\""),
    ]);
    // `inputs.*` is the pattern "*"; an aggregate after another is free to choose.
    parse("all(inputs.*.x == inputs['*'].y) and any(inputs['a*'].x)");
}

#[test]
fn a_condition_may_be_folded_over_lines() {
    assert_true(&["inputs.a.one == 1\n  and\r\n\tinputs.a.yes\n"]);
}

#[test]
fn the_length_is_bounded() {
    let longest = format!("inputs.a == '{}'", "x".repeat(CONDITION_BYTES_MAX - 14));
    assert_eq!(longest.len(), CONDITION_BYTES_MAX);
    parse(&longest);
    let error = refusal(&format!("{longest} "));
    assert_eq!(error.position, CONDITION_BYTES_MAX + 1);
    assert!(
        error.message.contains("8193 bytes, 8192 are allowed"),
        "{error}"
    );
    // Positions count characters, not bytes.
    assert_eq!(
        refusal(&"é".repeat(CONDITION_BYTES_MAX)).position,
        CONDITION_BYTES_MAX / 2 + 1
    );
}

#[test]
fn the_depth_is_bounded() {
    for (open, inner, close) in [("(", "1", ")"), ("[", "1", "]"), ("not ", "1", "")] {
        let nested = |depth: usize| format!("{}{inner}{}", open.repeat(depth), close.repeat(depth));
        parse(&nested(CONDITION_DEPTH_MAX))
            .evaluate(&BTreeMap::new())
            .unwrap();
        let error = refusal(&nested(CONDITION_DEPTH_MAX + 1));
        assert_eq!(
            error.position,
            CONDITION_DEPTH_MAX * open.len() + 1,
            "{open:?}"
        );
        assert!(error.message.contains("deeper than 64"), "{error}");
    }
    // Brackets that are closed again do not count.
    parse(&vec!["(not [1])"; CONDITION_DEPTH_MAX + 1].join(" and "));
}

#[test]
fn hostile_nesting_is_refused_without_a_deep_stack() {
    let run = || {
        for unit in [
            "(", "[", "not ", "all(", "inputs[", "[(", "not (", "-", "inputs.",
        ] {
            let text = unit.repeat(CONDITION_BYTES_MAX / unit.len());
            assert!(Condition::parse(&text).is_err(), "{unit}");
        }
        for unit in ["1<", "1 or ", "1 and "] {
            let text = unit.repeat(CONDITION_BYTES_MAX / unit.len() - 1) + "1";
            parse(&text).evaluate(&BTreeMap::new()).unwrap();
        }
        let path = format!("inputs.a{}", ".x".repeat(4_000));
        assert_eq!(parse(&path).evaluate(&BTreeMap::new()), Ok(false));
        let levels = format!(
            "{}1{}",
            "(1 and not [".repeat(21),
            "] == 1 or 1)".repeat(21)
        );
        parse(&levels).evaluate(&BTreeMap::new()).unwrap();
    };
    // A quarter of the smallest stack a thread of this program has.
    let thread = std::thread::Builder::new()
        .stack_size(512 * 1024)
        .spawn(run);
    thread.unwrap().join().unwrap();
}

#[test]
fn references_must_be_dependencies() {
    let check = |text: &str, dependencies: &[&str]| parse(text).check_references(dependencies);
    assert_eq!(
        check("inputs.a.x and inputs['grp/c'].ok", &["a", "grp/c"]),
        Ok(())
    );
    assert_eq!(check("all(inputs['none*'].ok)", &["a"]), Ok(()));
    let problems = check(
        "inputs.z or [not (1, inputs.y.x < inputs.a)] == inputs.z",
        &["a"],
    );
    let problems = problems.unwrap_err();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].contains("inputs[\"z\"]"), "{problems:?}");
    assert!(problems[1].contains("inputs[\"y\"]"), "{problems:?}");
    assert_eq!(
        check("all(inputs.*.x == inputs.z)", &["a"])
            .unwrap_err()
            .len(),
        1
    );
    assert!(check("1 == 1", &["a"]).unwrap_err()[0].contains("reads no input"));
}

#[test]
fn a_condition_knows_what_it_reads() {
    let condition = parse("inputs.a.x and any(inputs['grp/*'].ok == inputs['b'].ok)");
    for name in ["a", "b", "grp/", "grp/c"] {
        assert!(condition.reads(name), "{name}");
    }
    for name in ["c", "x", "grp", "A"] {
        assert!(!condition.reads(name), "{name}");
    }
    assert_eq!(
        condition.source(),
        "inputs.a.x and any(inputs['grp/*'].ok == inputs['b'].ok)"
    );
}
