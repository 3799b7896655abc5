//! Controllers in files: the canonical form holds their text, and a host builds them.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use weir_cc::{BuildScripted, CongestionController, Reno, Script};
use weir_lab::{Scenario, World, check, run};
use weir_units::Bytes;

const TEXT: &str = "class Mine: ...\n";

#[derive(Debug)]
struct Renos;

impl BuildScripted for Renos {
    fn build(&self, _mss: Bytes, initial_window: Bytes) -> Box<dyn CongestionController> {
        Box::new(Reno::new(initial_window))
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("mine.py"), TEXT).expect("a file");
    folder
}

fn parse(text: &str, folder: &std::path::Path) -> Scenario {
    let source = folder.join("some.toml");
    Scenario::parse(text, &[], &source.to_string_lossy()).expect("a scenario")
}

const TWO: &str = "[[flow]]\nstack = 'mine.py:Mine'\n[[flow]]\nstack = 'newreno/mine.py:Mine'\n\
                   [measure]\nduration = '3s'\n";

#[test]
fn the_canonical_form_holds_the_text_of_the_file_beside_the_scenario() {
    let folder = folder("canonical");
    let scenario = parse(TWO, &folder);
    assert_eq!(scenario.file().controllers.get("mine.py").map(String::as_str), Some(TEXT));
    let before = scenario.to_json();
    fs::write(folder.join("mine.py"), "class Mine: pass\n").expect("a file");
    assert_eq!(Scenario::from_json(&before).expect("canonical").to_json(), before);
    assert_ne!(parse(TWO, &folder).to_json(), before);
}

#[test]
fn a_text_that_is_written_in_the_scenario_needs_no_file() {
    let written =
        format!("[controllers]\n'other.py' = '''{TEXT}'''\n[[flow]]\nstack = 'other.py:Mine'\n");
    let scenario = parse(&written, &folder("inline"));
    assert_eq!(scenario.file().controllers.get("other.py").map(String::as_str), Some(TEXT));
}

#[test]
fn a_scenario_without_such_controllers_has_no_such_key() {
    assert!(!parse("[[flow]]\n", &folder("none")).to_json().contains("controllers"));
}

#[test]
fn a_file_that_cannot_be_had_is_named() {
    let text = "[[flow]]\nstack = 'missing.py:Mine'\n";
    let error = Scenario::parse(text, &[], "some.toml").expect_err("no file").to_string();
    assert!(
        error.starts_with("some.toml, line 2: flow.0.stack: 'missing.py' cannot be"),
        "{error}"
    );
}

#[test]
fn it_runs_only_with_a_host_and_in_no_kernel() {
    let mut scenario = parse(TWO, &folder("hosted"));
    for world in [World::Sim, World::Udp] {
        let error = check(&scenario, world).expect_err("unhosted").to_string();
        assert!(error.contains("no Python here that could run 'mine.py:Mine'"), "{error}");
    }
    let mut asked = 0;
    let mut host = |script: &Script, text: &str| -> Result<Arc<dyn BuildScripted>, String> {
        asked += 1;
        assert_eq!((script.class(), text), ("Mine", TEXT));
        Ok(Arc::new(Renos))
    };
    scenario.host_scripts(&mut host).expect("a host");
    assert_eq!(asked, 1, "flows share what the host finds");
    let native = parse(&TWO.replace("mine.py:Mine", "reno"), &folder("hosted"));
    let [hosted, native] = [scenario.clone(), native]
        .map(|scenario| run(&scenario, 1, World::Sim).expect("a run").tables()[2].clone());
    assert_eq!(hosted.batch, native.batch, "samples");
    let kernel: World = "kernel".parse().expect("a world");
    let error = check(&scenario, kernel).expect_err("a kernel's").to_string();
    assert!(
        error.contains("needs Linux") || error.contains("stack = rack/mine.py:Mine"),
        "{error}"
    );
}

#[test]
fn the_hosts_error_names_the_key() {
    let mut scenario = parse(TWO, &folder("refused"));
    let error = scenario.host_scripts(&mut |_, _| Err("it is no class".to_owned()));
    let message = "scenario: flow.0.stack: 'rack/mine.py:Mine' is not allowed; it is no class";
    assert_eq!(error.expect_err("refused").to_string(), message);
}
