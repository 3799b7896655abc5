//! Expressions have Python's values.

use super::*;

/// Whether the assertion of `text` holds where every name is 10.
fn holds_for_ten(text: &str) -> Result<(), String> {
    let code = format!("assert {text}");
    let statements = parse(&code, 1, &mut BTreeSet::new()).map_err(|error| error.message)?;
    let mut variables = Variables::new();
    let mut execute = |one: &Statement| one.run(|_| 10, &mut variables);
    statements.iter().try_for_each(&mut execute).map_err(|unmet| unmet.detail)
}

#[test]
fn precedence_is_pythons() {
    for text in [
        "1 + 2 * 3 == 7",
        "(1 + 2) * 3 == 9",
        "-7 // 2 == -4 and -7 % 2 == 1",
        "7 // -2 == -4 and 7 % -2 == -1",
        "2 - 1 - 1 == 0",
        "not 1 == 2",
        "not 0 and not False",
        "0 or tcpi_snd_cwnd",
        "1 < 2 <= 2 < tcpi_snd_cwnd",
        "(tcpi_snd_cwnd == 10 or\n 1 // 0 == 1)",
        "TCP_CA_Recovery == 3 and 0x10 == 16",
        "tcpi_snd_cwnd == 10, tcpi_snd_cwnd",
        "(tcpi_options & TCPI_OPT_SACK) != 0",
        "1 | 2 + 4 == 7 and 6 & 3 | 8 == 10",
        "1 == 1 and \\\n 2 == 2",
    ] {
        assert_eq!(holds_for_ten(text), Ok(()), "{text}");
    }
    assert_eq!(holds_for_ten("1 < 3 < 2"), Err(String::new()));
    assert_eq!(holds_for_ten("tcpi_rtt == 9"), Err("tcpi_rtt = 10".into()));
}

#[test]
fn what_has_no_value_does_not_hold() {
    assert_eq!(holds_for_ten("1 // 0 == 1"), Err("a division by zero".into()));
    let large = "9223372036854775807 + 1 == 0";
    assert_eq!(holds_for_ten(large), Err("a value exceeds 64 bits".into()));
}

#[test]
fn other_code_is_refused() {
    let deep = format!("{}1", "(".repeat(60));
    let long = format!("1{}", "+1".repeat(300));
    for (text, part) in [
        ("1 / 2", "use '//'"),
        ("x", "name 'x' is not supported"),
        ("1 +", "the end of the code: expected a number"),
        ("(1", "expected ')'"),
        ("1 2", "'2': expected the end"),
        ("tcpi_rtt.real", "'.' has no meaning"),
        ("99999999999999999999", "is no integer"),
        (deep.as_str(), "more than 50 levels"),
        (long.as_str(), "more than 200 operands"),
    ] {
        let message = holds_for_ten(text).unwrap_err();
        assert!(message.contains(part), "{text}: {message}");
    }
}

#[test]
fn several_assertions_have_their_own_lines() {
    let code = "\nassert 1 == 1\nassert (1 ==\n 1); assert 2 == 2\n";
    let statements = parse(code, 7, &mut BTreeSet::new()).unwrap();
    let lines: Vec<u32> = statements.iter().map(|statement| statement.line).collect();
    assert_eq!(lines, [8, 9, 10]);
    assert_eq!(statements[1].text, "assert (1 == 1)");
}
