//! Scenario files and the texts of `tc`.

use weir_lab::{Scenario, tc_keys};

/// Reads the input as a scenario. No text causes a panic. The canonical form of a scenario is read as the same
/// scenario.
pub(crate) fn check_scenario(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    match Scenario::parse(&text, &[], "") {
        Ok(scenario) => {
            let canonical = scenario.to_json();
            let again = Scenario::from_json(&canonical).expect("a canonical form is read");
            assert_eq!(again.to_json(), canonical);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Reads the input as the options of `tc`, those of the reverse direction after a line feed. No text causes a panic.
/// What is read is accepted as keys of a scenario, or its error names a key.
pub(crate) fn check_tc(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (forward, reverse) = match text.split_once('\n') {
        Some((forward, reverse)) => (forward, Some(reverse)),
        None => (&*text, None),
    };
    match tc_keys(forward, reverse) {
        Ok(keys) => {
            let keys = keys.into_iter().map(|(key, value)| (format!("topology.{key}"), value));
            let read = Scenario::parse("[[flow]]\n", &keys.collect::<Vec<_>>(), "");
            if let Err(error) = read {
                assert!(!error.to_string().is_empty());
            }
        }
        Err(message) => assert!(!message.is_empty() && message.lines().count() == 1, "{message:?}"),
    }
}
