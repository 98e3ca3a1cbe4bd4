use proptest::prelude::*;

use super::*;

/// Conditions of all shapes; most of them parse.
fn any_condition() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        "inputs\\.[ab](\\.[xyz]|\\[-?[0-3]\\]|\\['x'\\]){0,3}",
        "-?[1-9][0-9]{0,38}",
        "[0-9]{1,3}\\.[0-9]{0,3}(e-?[0-9]{1,3})?",
        "'[a-c]{0,2}'",
        Just("None".to_owned()),
        Just("True".to_owned()),
        "(all|any|count)\\(inputs(\\.\\*|\\['[ab]\\*'\\])(\\.[xy]){0,2}( [<>] 1)?\\)",
        "almost_all\\(inputs\\.\\*\\.x( in \\[1, None\\])?, [0-3]\\)",
    ];
    leaf.prop_recursive(5, 40, 3, |inner| {
        let operator = prop_oneof![
            Just("=="),
            Just("!="),
            Just("<"),
            Just("<="),
            Just(">"),
            Just(">="),
            Just("in"),
            Just("not in"),
            Just("and"),
            Just("or"),
        ];
        prop_oneof![
            (inner.clone(), operator, inner.clone()).prop_map(|(l, op, r)| format!("{l} {op} {r}")),
            inner.clone().prop_map(|e| format!("not {e}")),
            inner.clone().prop_map(|e| format!("({e})")),
            prop::collection::vec(inner.clone(), 0..3).prop_map(|e| format!("[{}]", e.join(", "))),
            prop::collection::vec(inner, 2..4).prop_map(|e| format!("({})", e.join(", "))),
        ]
    })
}

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        (-3_i64..3).prop_map(Json::from),
        "[a-c]{0,2}".prop_map(Json::from),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Json::from),
            prop::collection::btree_map("[xyz]", inner, 0..3)
                .prop_map(|fields| Json::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_text_makes_parsing_panic(text in any::<String>()) {
        let _ = Condition::parse(&text);
    }

    /// Near misses, which get further than arbitrary text does.
    #[test]
    fn no_heap_of_tokens_makes_parsing_panic(
        tokens in prop::collection::vec(
            prop::sample::select(vec![
                "inputs", "a", ".", "[", "]", "(", ")", ",", "*", "-", "==", "<", "in", "not",
                "and", "or", "all", "almost_all", "count", "1", "0x", "1e", ".5", "'x'", "'*'", "\"",
                "\\", "None", "is", "é", "\n", " ",
            ]),
            0..24,
        ),
    ) {
        for separator in ["", " "] {
            let text = tokens.join(separator);
            match Condition::parse(&text) {
                Ok(condition) => { let _ = condition.evaluate(&BTreeMap::new()); }
                Err(error) => prop_assert!((1..=text.chars().count() + 1).contains(&error.position)),
            }
        }
    }

    #[test]
    fn no_condition_over_any_inputs_makes_evaluating_panic(
        text in any_condition(), a in any_json(), b in any_json(),
    ) {
        let inputs = BTreeMap::from([("a", a), ("b", b)]);
        if let Ok(condition) = Condition::parse(&text) {
            let _ = condition.evaluate(&inputs);
            let _ = condition.check_references(&["a"]);
            let _ = condition.reads("a");
        }
    }

    /// What callers rely on when they leave out outputs that are not read.
    #[test]
    fn inputs_that_are_not_read_do_not_matter(
        text in any_condition(), a in any_json(), b in any_json(), other in any_json(),
    ) {
        if let Ok(condition) = Condition::parse(&text)
            && !condition.reads("b")
        {
            let with = |b| condition.evaluate(&BTreeMap::from([("a", a.clone()), ("b", b)]));
            prop_assert_eq!(with(b), with(other));
        }
    }

    #[test]
    fn equality_and_order_agree_for_numbers(left in any_number(), right in any_number()) {
        let inputs = BTreeMap::from([("l", left), ("r", right)]);
        let holds = |operator: &str| {
            parse(&format!("inputs.l {operator} inputs.r")).evaluate(&inputs).unwrap()
        };
        let (less, equal, greater) = (holds("<"), holds("=="), holds(">"));
        prop_assert_eq!(u8::from(less) + u8::from(equal) + u8::from(greater), 1);
        prop_assert_eq!(holds("<="), less || equal);
        prop_assert_eq!(holds(">="), greater || equal);
        prop_assert_eq!(holds("!="), !equal);
    }
}

fn any_number() -> impl Strategy<Value = Json> {
    prop_oneof![
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        (-3_i64..3).prop_map(Json::from),
        (-3_i32..3).prop_map(|n| Json::from(f64::from(n) / 2.0)),
        prop::num::f64::NORMAL.prop_map(Json::from),
        any::<bool>().prop_map(Json::from),
    ]
}
