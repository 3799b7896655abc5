//! Every script of `tests/packetdrill` passes against Weir's transport, or is known not to.

use std::fs;
use std::path::{Path, PathBuf};

use weir_packetdrill::{ExceptionKind, Script, Simulated, parse, run};

/// The scripts below `folder`, in order of their names.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("listed").path()).collect();
    paths.sort();
    let nested =
        paths.into_iter().flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] });
    nested.filter(|path| path.extension().is_some_and(|ending| ending == "pkt")).collect()
}

fn scripts() -> Vec<(PathBuf, Script)> {
    let folder = std::env::var("WEIR_SCRIPTS").map_or_else(
        |_| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/packetdrill"),
        PathBuf::from,
    );
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("readable");
        let script = parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (path, script)
    };
    files(&folder).into_iter().map(read).collect()
}

#[test]
fn every_script_holds() {
    let scripts = scripts();
    assert!(!scripts.is_empty());
    let mut failures = Vec::new();
    for (path, script) in &scripts {
        let exception = script.head.exception("sim");
        if exception.is_some_and(|exception| exception.kind == ExceptionKind::Skip) {
            continue;
        }
        let result = run(script, &mut Simulated::new(&script.settings));
        match (result, exception) {
            (Ok(()), None) | (Err(_), Some(_)) => {}
            (Ok(()), Some(_)) => failures.push(format!("{}: passes", path.display())),
            (Err(error), None) => failures.push(format!("{}: {error}", path.display())),
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

#[test]
fn every_script_says_what_it_is() {
    for (path, script) in scripts() {
        let head = &script.head;
        let complete = !head.cases.is_empty() && !head.source.is_empty() && !head.title.is_empty();
        assert!(complete, "{}: case, source and title belong in the head", path.display());
    }
}
