"""Every JSON document that is written fits the schema that ships with it."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import Invoke, free_port, started
from jsonschema import Draft202012Validator, ValidationError
from made import compared
from referencing import Registry, Resource

import weir
from weir import export
from weir.base.errors import RunError
from weir.cells.protocol import Settings, StudyResult
from weir.results import manifest, schemas
from weir.studies import catalogue

ROOT = Path(__file__).parents[2]
SHORT = ("--repeat", "1", "--quiet", "--json")
PRINTED = re.compile(r'(?:print_json|list_plan)\(\s*"(?P<command>[a-z-]+)')


def registry() -> Registry[Any]:
    documents = [schemas.read(name) for name in schemas.names()]
    return Registry().with_resources((d["$id"], Resource.from_contents(d)) for d in documents)


def check(name: str, document: Any) -> None:
    Draft202012Validator(schemas.read(name), registry=registry()).validate(document)


def printed(invoke: Invoke, name: str, *words: str | Path) -> dict[str, Any]:
    """What a verb prints, after it has been checked."""
    result = invoke(*words)
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    check(name, document)
    assert document["rows"]
    return document


def test_every_schema_is_one() -> None:
    assert len(schemas.names()) > 15
    for name in schemas.names():
        Draft202012Validator.check_schema(schemas.read(name))
        assert schemas.read(name)["$id"] == f"{name}.json"
    with pytest.raises(KeyError, match="there is no schema 'nonsense'"):
        schemas.read("nonsense")


def test_the_check_of_manifests_knows_every_keyword_of_their_schema() -> None:
    def keywords(schema: dict[str, Any]) -> set[str]:
        inner = [schema.get("items", {}), schema.get("additionalProperties", {})]
        inner += schema.get("properties", {}).values()
        return set(schema).union(*(keywords(one) for one in inner if isinstance(one, dict) and one))

    assert keywords(schemas.read("manifest")) <= manifest.KEYWORDS


def test_everything_that_is_printed_has_a_schema() -> None:
    """Looks for the commands in the sources, so that a new verb is not forgotten."""
    sources = (ROOT / "python" / "weir" / "cli").glob("*.py")
    texts = [source.read_text(encoding="utf-8") for source in sources]
    commands = {match["command"] for text in texts for match in PRINTED.finditer(text)}
    assert len(commands) > 12
    known = {command.partition(" ")[0] for command in commands}
    assert known <= set(schemas.names())


@pytest.mark.parametrize("options", [(), ("--flows", "2"), ("--sweep", "topology.rtt=10ms,20ms")])
def test_what_compare_prints(invoke: Invoke, options: tuple[str, ...]) -> None:
    words = ("compare", "reno", "cubic", "--duration", "2s", "-n", "2", "--quiet", "--json")
    assert "difference" in printed(invoke, "compare", *words, *options)["rows"][-1]
    check("manifest", weir.load("results/compare/latest").manifest)


def test_what_run_prints(invoke: Invoke) -> None:
    two = ("run", "two-flows", "--set", "measure.duration=25s", "--set", "measure.warmup=0s")
    assert printed(invoke, "run", *two, *SHORT)["rows"][0]["changes"]
    radio = printed(invoke, "run", "run", "radio-chain", "--set", "measure.duration=1s", *SHORT)
    assert radio["rows"][0]["flows"]
    check("manifest", weir.load("results/radio-chain/latest").manifest)


def test_what_a_run_of_many_connections_prints(invoke: Invoke) -> None:
    short = ("--set", "flow.0.workload.arrivals=50", *SHORT)
    (dctcp, *_) = printed(invoke, "run", "run", "web-search", *short)["rows"]
    assert dctcp["arrivals"][0]["n"] == 50


def test_what_a_difference_prints(invoke: Invoke) -> None:
    for queue in ("1bdp", "4bdp"):
        words = ("compare", "reno", "--duration", "5s", "-n", "3", "--queue", queue, "--out", queue)
        assert invoke(*words, "--quiet").exit_code == 0
    for other, code in (("1bdp", 0), ("4bdp", 1)):
        result = invoke("diff", "1bdp/compare/latest", f"{other}/compare/latest", "--json")
        assert result.exit_code == code, result.output
        document = json.loads(result.stdout)
        check("diff", document)
        assert bool(document["changes"]) == bool(code)


def test_what_a_dry_run_prints(invoke: Invoke) -> None:
    swept = ("--sweep", "topology.rtt=10ms,20ms", "--dry-run", "--json")
    printed(invoke, "compare", "compare", "reno", *swept)
    printed(invoke, "run", "run", "two-flows", *swept)
    printed(invoke, "validate", "validate", "--radio", "--dry-run", "--json")


def test_what_runs_in_real_time_print(invoke: Invoke) -> None:
    file = ("--size", "100kb", "--duration", "5s", "--world", "udp")
    row = printed(invoke, "compare", "compare", "reno", *file, *SHORT)["rows"][0]
    assert "health" in row
    check("manifest", weir.load("results/compare/latest").manifest)


def test_what_a_bundle_and_a_citation_print(invoke: Invoke) -> None:
    printed(invoke, "compare", "compare", "reno", *SHORT)
    results = "results/compare/latest"
    printed(invoke, "cite", "cite", results, "--json")
    printed(invoke, "bundle", "bundle", results, "--out", "b.crate.zip", "--json")
    printed(invoke, "bundle", "bundle", "--check", "b.crate.zip", "--json")


def test_what_a_study_prints(invoke: Invoke) -> None:
    printed(invoke, "study", "study", "lab-udp", *SHORT)


def test_what_all_published_numbers_print(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(name: str, _settings: Settings) -> StudyResult:
        raise RunError(f"{name} cannot run here")

    monkeypatch.setattr(catalogue, "run", refused)
    document = printed(invoke, "study", "study", "--published", "--quiet", "--json")
    assert len(document["items"]) == 159
    assert document["warnings"]


def test_what_a_validation_prints(invoke: Invoke) -> None:
    words = ("--radio", "--size", "small", "--case", "airtimes-1000b-2m-1m", "--quiet", "--json")
    document = printed(invoke, "validate", "validate", *words)
    assert document["score"]


def test_what_conform_prints(invoke: Invoke) -> None:
    scripts = ROOT / "tests" / "packetdrill" / "slow-start"
    printed(invoke, "conform", "conform", scripts, "--json")


def test_what_says_what_there_is(invoke: Invoke) -> None:
    printed(invoke, "list", "list", "--json")
    result = invoke("doctor", "--json")
    check("doctor", json.loads(result.stdout))
    rows = printed(invoke, "stack", "stack", "list", "--json")["rows"]
    assert {row["kind"] for row in rows} >= {"contender", "bpf"}


def test_what_a_relay_prints(invoke: Invoke) -> None:
    words = ("relay", "--check", "--delay", "2ms", "--duration", "0.1s", "--json")
    check("relay", json.loads(invoke(*words).stdout))


def test_what_both_ends_of_a_transfer_print(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "file.bin").write_bytes(bytes(100_000))
    address = f"127.0.0.1:{free_port(socket.SOCK_DGRAM)}"
    words = ("--bind", address, "--once", "--json", "--dir", str(tmp_path / "in"))
    with started("recv", *words) as receiver:
        assert receiver.stderr is not None
        assert "listening" in receiver.stderr.readline()
        with started("send", str(tmp_path / "file.bin"), address, "--json") as sender:
            answer, problem = sender.communicate(timeout=60)
        assert sender.returncode == 0, problem
        heard, _ = receiver.communicate(timeout=60)
    for name, text in [("send", answer), ("recv", heard)]:
        document = json.loads(text)
        check(name, document)
        assert document["rows"][0]["size_bytes"] == 100_000


@pytest.mark.parametrize("wanted", ["flent", "iperf3", "qlog"])
def test_exported_files(tmp_path: Path, wanted: str) -> None:
    results = compared(tmp_path / "results", "bbr", duration="2s", repeat=1, flows=2, loss="2%")
    files = export.export(results, wanted, tmp_path / "out")
    assert files
    for file in files:
        check(wanted, _document(file))


def _document(file: Path) -> Any:
    if file.suffix == ".gz":
        text = subprocess.run(["gzip", "-dc", str(file)], capture_output=True, check=True).stdout  # noqa: S607
        return json.loads(text)
    return json.loads(file.read_text(encoding="utf-8"))


def test_a_schema_refuses_what_does_not_belong(invoke: Invoke) -> None:
    """So that the tests above can fail."""
    words = ("compare", "reno", "--duration", "1s", *SHORT)
    document = printed(invoke, "compare", *words)
    document["rows"][0]["goodput_mbps"].pop("n")
    with pytest.raises(ValidationError):
        check("compare", document)
    with pytest.raises(ValidationError):
        check("compare", {**document, "rows": [], "more": 1})
