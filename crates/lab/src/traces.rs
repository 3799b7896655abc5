//! Trace files: a scenario names them, its canonical form holds their contents, so that a run needs
//! no file.

use std::path::Path;

use serde_json::{Map, Value};
use weir_net::DeliveryTrace;

use crate::error::Problem;
use crate::files::read_text;

/// Replaces every `rate_trace` that names a file by the times in it. Files are looked up next to
/// the scenario file `source`.
pub(crate) fn load(tree: &mut Map<String, Value>, source: &str) -> Result<(), Problem> {
    let folder = Path::new(source).parent().unwrap_or(Path::new(""));
    let Some(Value::Object(topology)) = tree.get_mut("topology") else { return Ok(()) };
    for name in ["forward", "reverse"] {
        if let Some(direction) = topology.get_mut(name) {
            load_direction(direction, &format!("topology.{name}"), folder)?;
        }
    }
    if let Some(radio) = topology.get_mut("radio") {
        for name in ["points", "trace"] {
            load_lines(radio, name, folder)?;
        }
    }
    let links = topology.get_mut("link").and_then(Value::as_array_mut).into_iter().flatten();
    for (index, link) in links.enumerate() {
        if let Some(direction) = link.get_mut("impair") {
            load_direction(direction, &format!("topology.link.{index}.impair"), folder)?;
        }
    }
    Ok(())
}

/// The trace that a list of times stands for.
pub(crate) fn trace(times: &[u64]) -> Result<DeliveryTrace, String> {
    let lines: Vec<String> = times.iter().map(u64::to_string).collect();
    DeliveryTrace::parse(&lines.join("\n")).map_err(|error| error.to_string())
}

/// The same for the keys of one direction, which stand in `section`.
pub(crate) fn load_direction(
    direction: &mut Value,
    section: &str,
    folder: &Path,
) -> Result<(), Problem> {
    let Some(Value::String(name)) = direction.get("rate_trace") else { return Ok(()) };
    let times = read(&folder.join(name))
        .map_err(|message| Problem::new(format!("{section}.rate_trace"), message))?;
    direction["rate_trace"] = times.into();
    Ok(())
}

/// Replaces the name of a file by its lines.
fn load_lines(radio: &mut Value, name: &str, folder: &Path) -> Result<(), Problem> {
    let Some(Value::String(file)) = radio.get(name) else { return Ok(()) };
    let text = read_text(&folder.join(file))
        .map_err(|message| Problem::new(format!("topology.radio.{name}"), message))?;
    radio[name] = text.lines().collect::<Vec<_>>().into();
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u64>, String> {
    let text = read_text(path)?;
    DeliveryTrace::parse(&text).map_err(|error| format!("'{}', {error}", path.display()))?;
    Ok(text.lines().filter_map(|line| line.trim().parse().ok()).collect())
}
