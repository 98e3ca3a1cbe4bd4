use super::*;

#[test]
fn truth_is_that_of_python() {
    assert_true(&[
        "inputs.a",
        "inputs.a.one",
        "inputs.a.half",
        "inputs.a.text",
        "inputs.a.list",
    ]);
    assert_true(&["[0]", "(None,)", "-1", "'0'", "0.1", "True", "true"]);
    assert_false(&["inputs.b", "inputs.a.none", "inputs.a.no", "inputs.a.empty"]);
    assert_false(&[
        "[]", "()", "0", "-0.0", "''", "None", "null", "False", "false",
    ]);
}

#[test]
fn what_is_not_there_is_none() {
    assert_true(&[
        "inputs.a.missing == None",
        "inputs.a.missing.deeper[3]['x'] == None",
        "inputs.b.x == None",
        "inputs.unknown == None",
        "inputs.a.list[3] == None",
        "inputs.a.list[-4] == None",
        "inputs.a.list[170141183460469231731687303715884105727] == None",
        "inputs.a.list[-170141183460469231731687303715884105727] == None",
        // Nothing within what has no fields or indexes.
        "inputs.a.one.x == None",
        "inputs.a.text.x == None",
        "inputs.a.text[0] == None",
        "inputs.a.list.x == None",
        "inputs.a.dict[0] == None",
    ]);
    assert_fails(&[
        "inputs.a.missing < 1",
        "inputs.b.x >= 0",
        "1 in inputs.a.missing",
    ]);
}

#[test]
fn paths_lead_into_lists_and_dicts() {
    assert_true(&[
        "inputs['a']['dict']['k'].deep == 'v'",
        "inputs.a.list[0] == 1",
        "inputs.a.list[-1] == 3",
        "inputs.a.nested[0][1] == 2",
        "inputs.a.nested[ 1 ] . x == 1",
        "(inputs.a.dict).k['deep'] == 'v'",
    ]);
}

#[test]
fn numbers_are_compared_exactly() {
    assert_true(&[
        "inputs.a.one == 1.0 == True",
        "inputs.a.no == 0 == 0.0 == -0.0",
        "inputs.a.big == 9007199254740993",
        "inputs.a.big != 9007199254740992.0",
        "inputs.a.big > 9007199254740992.0",
        "9007199254740992.0 < inputs.a.big",
        "9007199254740994.0 > inputs.a.big",
        "inputs.a.huge == 18446744073709551615",
        "inputs.a.huge < 18446744073709551616.0",
        "inputs.a.small == -9223372036854775808.0",
        "inputs.a.one < 1.5",
        "-1 > -1.5",
        "-2 < -1.5",
        "True < 2",
        "False < True",
        "inputs.a.huge < 1e999",
        "-1e999 < inputs.a.small",
        "1e999 == 1e999",
        "0.1 != 0.3",
        "170141183460469231731687303715884105727 < 170141183460469231731687303715884105728.0",
    ]);
}

#[test]
fn order_exists_within_numbers_texts_and_lists() {
    assert_true(&[
        "inputs.a.text < 'help'",
        "'Z' < 'a'",
        "'' < 'a' < 'aa' < 'b'",
        "'\u{ffff}' < '\u{10000}'",
        "inputs.a.list < [1, 2, 4]",
        "inputs.a.list > [1, 2]",
        "[] <= inputs.a.empty",
        "[None, 1] < [None, 2]",
        "(1, 'a') < (1, 'b')",
        "[1] < (1, 2)",
        "[[1], 2] > [[0, 9], 9]",
    ]);
    assert_fails(&[
        "inputs.a.text < 5",
        "None < None",
        "None < 1",
        "inputs.a.dict < inputs.a.dict",
        "[1, None] < [1, 2]",
        "'1' >= 1",
    ]);
}

#[test]
fn equality_is_defined_for_everything() {
    assert_true(&[
        "inputs.a.list == [1, 2.0, 3]",
        "inputs.a.list == [True, 2, 3]",
        "inputs.a.list == (1, 2, 3)",
        "[(1,), 2] == ([1], 2)",
        "(1, 2) == (1, 2)",
        "() == []",
        "inputs.a.dict == inputs.a.dict",
        "inputs.a.dict != inputs.a.dict.k",
        "inputs.a.nested == [[1, 2], inputs.a.nested[1]]",
        "inputs.a.text != 5",
        "'1' != 1",
        "None == null",
        "None != False",
        "None != 0",
    ]);
}

#[test]
fn membership_is_that_of_texts_lists_and_keys() {
    assert_true(&[
        "'ell' in inputs.a.text",
        "'' in ''",
        "2 in inputs.a.list",
        "2.0 in inputs.a.list",
        "True in inputs.a.list",
        "'k' in inputs.a.dict",
        "'v' not in inputs.a.dict",
        "5 not in inputs.a.dict",
        "None not in inputs.a.dict",
        "[1, 2] in inputs.a.nested",
        "inputs.a.text in ('hello', 'bye')",
        "inputs.a.text not in []",
        "None in [inputs.b]",
        "1 in [1] in [[1]]",
    ]);
    assert_fails(&[
        "1 in inputs.a.text",
        "None in inputs.a.text",
        "1 in 1",
        "1 in None",
        "1 not in True",
        "[1] in inputs.a.dict",
        "(1, 'x') in inputs.a.dict",
        "inputs.a.dict in inputs.a.dict",
    ]);
}

#[test]
fn comparisons_chain_and_stop_at_the_first_that_fails() {
    assert_true(&[
        "0 < inputs.a.one < 2",
        "1 == 1.0 == True != 0",
        "3 > 2 > 1 < 5",
    ]);
    assert_false(&["0 < 1 < 1", "2 < 1 < inputs.a.text", "1 < 2 > 3"]);
    assert_fails(&["1 < 2 < inputs.a.text"]);
    // Not `(1 < 2) == True`, but `1 < 2 and 2 == True`.
    assert_false(&["1 < 2 == True"]);
}

#[test]
fn logic_returns_an_operand_and_looks_no_further_than_needed() {
    assert_true(&[
        "(inputs.a.text and 5) == 5",
        "(inputs.a.none or 'x') == 'x'",
        "(0 or []) == []",
        "(0 and inputs.a.text < 5) == 0",
        "(inputs.a.one or inputs.a.text < 5) == 1",
        "True or inputs.a.text < 5",
        "inputs.b != None and inputs.b.x > 1 or inputs.a.one",
    ]);
    assert_fails(&["inputs.a.text < 5 or True", "not inputs.a.text < 5"]);
}

#[test]
fn not_binds_looser_than_comparison_and_tighter_than_and() {
    assert_true(&[
        "not 1 == 2",
        "not not inputs.a.one",
        "not 0 and 1",
        "not (1 and 0)",
    ]);
    assert_true(&["True or True and False", "not False or True"]);
    assert_false(&["not 1 == 1", "not 1 or 0", "(not 1) == True"]);
}

#[test]
fn aggregates_go_over_the_matching_inputs() {
    let inputs = BTreeMap::from([
        ("t-1", json!({"ok": true, "x": 1})),
        ("t-2", json!({"ok": false, "x": 2})),
        ("t-3", json!({"ok": true, "x": 3})),
        ("other", Json::Null),
    ]);
    for (text, expected) in [
        ("all(inputs['t-*'].x > 0)", true),
        ("all(inputs['t-*'].ok)", false),
        ("all(inputs.*.ok)", false),
        ("any(inputs['t-*'].x == 3)", true),
        ("any(inputs['t-[12]'].x == 3)", false),
        ("count(inputs['t-*'].ok) == 2", true),
        ("count(inputs.*) == 3", true),
        ("1 < count(inputs['t-*'].ok) < 3 and inputs['t-1'].ok", true),
        ("almost_all(inputs['t-*'].ok, 0)", false),
        ("almost_all(inputs['t-*'].ok, 1)", true),
        ("almost_all(inputs.*.ok, 1)", false),
        ("almost_all(inputs.*.ok, 2,)", true),
        // Each mention of the glob is the same input.
        ("any(inputs['t-*'].x > 1 and inputs['t-*'].ok)", true),
        ("any(inputs['t-*'].x == 2 and inputs['t-*'].ok)", false),
        ("all(inputs['t-*'].x <= inputs['t-3'].x)", true),
        // No match at all.
        ("all(inputs['none*'].ok)", true),
        ("any(inputs['none*'].ok)", false),
        ("count(inputs['none*'].ok) == 0", true),
        ("almost_all(inputs['none*'].ok, 0)", true),
    ] {
        assert_eq!(parse(text).evaluate(&inputs), Ok(expected), "{text}");
    }
}

#[test]
fn a_type_error_for_one_input_is_an_error_wherever_it_stands() {
    for names in [["t-1", "t-2"], ["t-2", "t-1"]] {
        let inputs = BTreeMap::from([(names[0], json!({"x": 9})), (names[1], Json::Null)]);
        let error = parse("any(inputs['t-*'].x > 5)")
            .evaluate(&inputs)
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "for inputs[{:?}]: '>' at character 21 does not work between None and int",
                names[1]
            )
        );
    }
}

#[test]
fn errors_name_the_operator_its_place_and_the_types() {
    let error = evaluate("inputs.a.one and inputs.a.text < 5").unwrap_err();
    assert_eq!(
        error.to_string(),
        "'<' at character 32 does not work between str and int"
    );
    let error = evaluate("1 not in inputs.a.text").unwrap_err();
    assert_eq!(
        error.to_string(),
        "'not in' at character 3 does not work between int and str"
    );
}
