"""Results that are damaged or made up: parts are run again, tables refused, always in one line."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import polars as pl
import pytest
from conftest import Invoke
from made import sealed

import weir
from weir.base.errors import InputError
from weir.export import FORMATS
from weir.results import parquet
from weir.results.parts import Ended
from weir.results.results import TABLES
from weir.results.store import RunDirectory
from weir.running import runner
from weir.scenario.plans import Comparison
from weir.scenario.sweep import Plan


@pytest.fixture(scope="module")
def plan() -> Plan:
    return Comparison(stacks=("reno", "cubic"), duration="1s", loss="1%", repeat=2).plan()


@pytest.fixture(scope="module")
def whole(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> weir.Results:
    return weir.load(runner.run_plan(plan, tmp_path_factory.mktemp("whole")))


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def overwrite(text: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(text, encoding="utf-8")


def of_another_run(path: Path) -> None:
    (other,) = set(path.parent.parent.glob(f"1-*/{path.name}"))
    shutil.copy(other, path)


PARTS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "half a record": ("run.json", cut),
    "an empty record": ("run.json", overwrite("")),
    "a record that is none": ("run.json", overwrite("[]")),
    "a record without tables": ("run.json", overwrite('{"status": "ok"}')),
    "a record that is no text": ("run.json", lambda path: path.write_bytes(b"\xff\xfe")),
    "half a table": ("flows.arrow", cut),
    "an empty table": ("samples.arrow", overwrite("")),
    "no table": ("links.arrow", Path.unlink),
    "the table of another run": ("flows.arrow", of_another_run),
}


@pytest.mark.parametrize("damage", PARTS)
def test_a_damaged_part_is_run_again(
    damage: str, plan: Plan, whole: weir.Results, tmp_path: Path
) -> None:
    directory = RunDirectory.create(tmp_path, plan)
    for run in plan.runs[:2]:
        directory.keep([Ended(run, runner.execute(run.case.scenario, run.seed))])
    name, spoil = PARTS[damage]
    (file,) = directory.path.glob(f"parts/0-*/{name}")
    spoil(file)
    del directory
    again = RunDirectory.reopen(tmp_path, plan)
    assert [run.index for run in again.pending] == [0, 2, 3]
    del again
    resumed = weir.load(runner.run_plan(plan, tmp_path, resume=True))
    for table in TABLES:
        assert resumed.scan(table).collect().equals(whole.scan(table).collect()), table


@pytest.mark.parametrize("parts", [[[3, 0], [2], [1]], [[1, 2], [3, 0]], [[2, 1, 3, 0]]], ids=str)
def test_the_order_in_which_runs_end_changes_nothing(
    parts: list[list[int]], plan: Plan, whole: weir.Results, tmp_path: Path
) -> None:
    """Nor does it which of them end together, or that one failed before."""
    directory = RunDirectory.create(tmp_path, plan)
    directory.keep([Ended(plan.runs[index], {}, "out of memory") for index in (1, 0)])
    assert [run.index for run in directory.pending] == [0, 1, 2, 3]
    for part in parts:
        runs = [plan.runs[index] for index in part]
        directory.keep([Ended(r, runner.execute(r.case.scenario, r.seed)) for r in runs])
    del directory
    resumed = weir.load(runner.run_plan(plan, tmp_path, resume=True))
    for table in TABLES:
        assert resumed.scan(table).collect().equals(whole.scan(table).collect()), table


def test_what_gets_its_name_is_on_disk(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files before the folder that they are in, that before its own name."""
    synced: set[int] = set()
    renamed: list[str] = []
    fsync, rename = os.fsync, os.rename

    def watched_fsync(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    def watched_rename(source: Path, target: Path, **options: int) -> None:
        whole = [Path(source), *Path(source).glob("*")]
        unsynced = {p.name for p in whole if p.stat().st_ino not in synced and p.name != "parts"}
        assert not unsynced, f"{target} may be empty after a power cut: {unsynced}"
        renamed.append(Path(target).name)
        rename(source, target, **options)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "rename", watched_rename)
    monkeypatch.setattr(os, "replace", watched_rename)
    path = runner.run_plan(plan, tmp_path)
    assert {"runs.parquet", "flows.parquet", "manifest.json", path.name} <= set(renamed)
    assert any(name.startswith("0-") for name in renamed)


def test_six_commands_in_one_second_have_folders_of_their_own(plan: Plan, tmp_path: Path) -> None:
    barrier = Barrier(6)

    def create(_: int) -> RunDirectory:
        barrier.wait()
        return RunDirectory.create(tmp_path, plan)

    for _ in range(10):
        with ThreadPoolExecutor(6) as pool:
            directories = list(pool.map(create, range(6)))
        assert len({directory.path for directory in directories}) == 6
        for directory in directories:
            directory.discard()


def test_the_manifest_has_the_checksum_of_every_table(whole: weir.Results) -> None:
    tables = {file.name for file in whole.path.glob("*.parquet")}
    assert set(whole.manifest["tables"]) == tables
    assert json.loads((whole.path / "manifest.json").read_text())["tables"]["runs.parquet"]
    assert pl.read_parquet(whole.path / "runs.parquet").height == 4


def manifest_of(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "manifest.json").read_text(encoding="utf-8")))


def with_manifest(text: str | bytes) -> Callable[[Path], object]:
    content = text if isinstance(text, bytes) else text.encode()
    return lambda folder: (folder / "manifest.json").write_bytes(content)


def without(*keys: str | int) -> Callable[[Path], object]:
    """Leaves out a value of the manifest."""
    return changed(lambda inner: inner.pop(keys[-1]), *keys[:-1])


def holding(value: object, *keys: str | int) -> Callable[[Path], object]:
    """Puts another value into the manifest."""
    return changed(lambda inner: inner.__setitem__(keys[-1], value), *keys[:-1])


def changed(change: Callable[[Any], object], *keys: str | int) -> Callable[[Path], object]:
    def spoil(folder: Path) -> None:
        manifest = manifest_of(folder)
        inner: Any = manifest
        for key in keys:
            inner = inner[key]
        change(inner)
        (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")

    return spoil


def table(name: str, make: Callable[[pl.DataFrame], pl.DataFrame]) -> Callable[[Path], object]:
    """Replaces a table by another, with a checksum that fits, as in forged results."""

    def spoil(folder: Path) -> None:
        path = folder / f"{name}.parquet"
        make(pl.read_parquet(path)).write_parquet(path)
        sealed(weir.load(folder))

    return spoil


def of(name: str, **columns: object) -> Callable[[Path], object]:
    """Gives columns of a table one value, or the type that they are said to have."""
    types = {key: kind for key, kind in columns.items() if isinstance(kind, type)}
    values = {key: pl.lit(value) for key, value in columns.items() if key not in types}
    return table(name, lambda rows: rows.cast(types).with_columns(**values))  # type: ignore[arg-type]


def file(name: str, spoil: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda folder: spoil(folder / name)


def linked(name: str, target: str) -> Callable[[Path], object]:
    def spoil(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target)

    return spoil


def folder_instead(path: Path) -> None:
    path.unlink()
    path.mkdir()


def another_table(path: Path) -> None:
    shutil.copy(path.with_name("links.parquet"), path)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


DEEP = "[" * 100_000 + "]" * 100_000
HUGE = "9" * 5_000

BROKEN: dict[str, Callable[[Path], object]] = {
    "cut": cut,
    "empty": overwrite(""),
    "zeros": overwrite("\0" * 999),
    "text": overwrite("run,flow\n0,0\n"),
    "gone": Path.unlink,
    "fifo": fifo,
}

DAMAGED: dict[str, Callable[[Path], object]] = {
    # The manifest as a file.
    "manifest cut": file("manifest.json", cut),
    "manifest empty": with_manifest(""),
    "manifest zeros": with_manifest(bytes(1000)),
    "manifest no utf-8": with_manifest(b'{"schema": 1, "name": "\xff"}'),
    "manifest surrogate": holding("\udcff", "name"),
    "manifest deep": with_manifest(DEEP),
    "manifest huge number": with_manifest(f'{{"schema": {HUGE}}}'),
    "manifest infinite": with_manifest('{"schema": Infinity}'),
    "manifest list": with_manifest("[]"),
    "manifest null": with_manifest("null"),
    "manifest text": with_manifest('"results"'),
    "manifest bare": with_manifest('{"schema": 1}'),
    "manifest folder": file("manifest.json", folder_instead),
    "manifest fifo": file("manifest.json", fifo),
    "manifest endless": linked("manifest.json", "/dev/zero"),
    "manifest gone": file("manifest.json", Path.unlink),
    "manifest link to nothing": linked("manifest.json", "nowhere"),
    # What is in it.
    "schema text": holding("1", "schema"),
    "schema truth": holding(True, "schema"),
    "schema zero": holding(0, "schema"),
    "schema later": holding(2, "schema"),
    "no cases": without("cases"),
    "cases empty": holding([], "cases"),
    "cases null": holding(None, "cases"),
    "cases of numbers": holding([1, 2], "cases"),
    "case without label": without("cases", 0, "label"),
    "case label number": holding(7, "cases", 0, "label"),
    "case label unknown": holding("other", "cases", 0, "label"),
    "case labels alike": holding("reno", "cases", 1, "label"),
    "case point list": holding(["a"], "cases", 0, "point"),
    "case scenario text": holding("x", "cases", 0, "scenario"),
    "case scenario empty": holding({}, "cases", 0, "scenario"),
    "case flow number": holding(3, "cases", 0, "scenario", "flow"),
    "case flow of texts": holding(["x"], "cases", 0, "scenario", "flow"),
    "case measure text": holding("x", "cases", 0, "scenario", "measure"),
    "case duration number": holding(-1e308, "cases", 0, "scenario", "measure", "duration"),
    "case topology list": holding([], "cases", 0, "scenario", "topology"),
    "case world unknown": holding("moon", "cases", 0, "world"),
    "runs list": holding([], "runs"),
    "runs text": holding("4", "runs", "ok"),
    "runs failed list": holding(["x"], "runs", "failed"),
    "seeds text": holding("1", "seeds"),
    "seeds negative": holding([-1], "seeds"),
    "sweep unknown": holding(["topology.rate"], "sweep"),
    "sweep numbers": holding([1], "sweep"),
    "created text": holding("yesterday", "created"),
    "created impossible": holding("2026-99-99T99:99:99Z", "created"),
    "name number": holding(1, "name"),
    "health null": holding(None, "health"),
    "host null": holding(None, "host"),
    "complete text": holding("yes", "complete"),
    "incomplete": holding(False, "complete"),
    "tables list": holding([], "tables"),
    "tables no hash": holding({"runs.parquet": "0"}, "tables"),
    "tables elsewhere": holding({"../../x.parquet": "0" * 64}, "tables"),
    "wrong checksum": holding({"flows.parquet": "0" * 64}, "tables"),
    # Tables as files.
    **{
        f"{name} {kind}": file(f"{name}.parquet", spoil)
        for name in ("runs", "flows", "samples")
        for kind, spoil in BROKEN.items()
    },
    "flows endless": linked("flows.parquet", "/dev/zero"),
    "flows another table": file("flows.parquet", another_table),
    "flows a bit": file("flows.parquet", flip),
    # Forged tables with valid checksums.
    "runs without rows": table("runs", pl.DataFrame.clear),
    "runs twice": table("runs", lambda rows: pl.concat([rows, rows])),
    "runs without labels": table("runs", lambda rows: rows.drop("label")),
    "runs of another label": of("runs", label="other"),
    "runs of no label": of("runs", label=None),
    "runs with text for seeds": of("runs", seed=pl.String),
    "runs with text for runs": of("runs", run=pl.String),
    "runs with other status": of("runs", status="?"),
    "runs with huge numbers": of("runs", run=2**32 - 1),
    "flows without rows": table("flows", pl.DataFrame.clear),
    "flows without columns": table("flows", lambda rows: rows.select("run")),
    "flows of other runs": table("flows", lambda rows: rows.with_columns(pl.col("run") + 100)),
    "flows with text for goodput": of("flows", goodput_mbps=pl.String),
    "flows with no numbers": of("flows", goodput_mbps=float("nan")),
    "flows with infinite numbers": of("flows", goodput_mbps=float("inf")),
    "flows with huge numbers": of("flows", rtt_ms_mean=1e308, start_s=-1e300, end_s=1e300),
    "samples with text for times": of("samples", t_s=pl.String),
    "samples without flow": table("samples", lambda rows: rows.drop("flow")),
    "samples of other flows": table("samples", lambda rows: rows.with_columns(pl.col("flow") + 7)),
    "samples at negative times": of("samples", t_s=-1e300),
    "queues with text": table("queues", lambda rows: rows.cast(pl.String)),
    "links of other links": table("links", lambda rows: rows.with_columns(pl.col("link") + 9)),
    "requests without latency": table("requests", lambda rows: rows.drop("latency_ms")),
    "arrivals as text": table("arrivals", lambda rows: rows.select("run", "flow").cast(pl.String)),
    "events without kind": table("events", lambda rows: rows.drop("kind")),
}


IS_FULL = os.environ.get("WEIR_DAMAGE") == "full"
"""Every verb that reads results, with its figures drawn: minutes."""

EXPORTED = sorted(FORMATS) if IS_FULL else ("csv", "iperf3")
VERBS = (("report",), ("diff",), *(("export", "-f", kind, "-o", kind) for kind in EXPORTED))


@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_results_are_reported_in_one_line(
    damage: str,
    whole: weir.Results,
    tmp_path: Path,
    invoke: Invoke,
) -> None:
    """Whatever a verb makes of them: it works, or says in one line what is wrong."""
    folder = tmp_path / "damaged"
    shutil.copytree(whole.path, folder)
    DAMAGED[damage](folder)
    try:
        weir.load(folder)
    except InputError:
        verbs = VERBS[:1]  # the others get no further
    else:
        verbs = VERBS
    for verb, *more in verbs:
        places = (folder, whole.path) if verb == "diff" else (folder,)
        done = invoke(verb, *places, *more)
        details = (verb, *more, done.output[-2000:])
        assert done.exception is None or isinstance(done.exception, SystemExit), details
        assert done.exit_code in (0, 1, 2), details
        if done.exit_code == 2 or (done.exit_code == 1 and verb != "diff"):
            assert done.stderr.startswith("weir: "), details
            assert done.stderr.count("\n") == 1, details


SPOILT = [
    *("manifest cut", "manifest empty", "manifest zeros", "manifest gone", "wrong checksum"),
    *(f"{name} {kind}" for name in ("runs", "flows", "samples") for kind in BROKEN),
    *("flows a bit", "flows another table", "flows endless"),
]


@pytest.mark.parametrize("damage", SPOILT)
def test_damage_is_never_overlooked(damage: str, whole: weir.Results, tmp_path: Path) -> None:
    """Neither in the manifest nor in the tables."""
    folder = tmp_path / "damaged"
    shutil.copytree(whole.path, folder)
    DAMAGED[damage](folder)
    with pytest.raises(InputError, match=r"damaged|no results here"):
        weir.load(folder).verify()


BOMBS: dict[str, pl.DataFrame] = {
    "rows": pl.DataFrame({"run": pl.repeat(0, 2_000_000, eager=True)}),
    "a text": pl.DataFrame({"label": ["x" * 16_000_000]}),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_a_small_table_that_unpacks_to_much_is_refused(
    kind: str,
    whole: weir.Results,
    tmp_path: Path,
    invoke: Invoke,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "weir.results.parquet._HARMLESS_BYTES", 8 << 20
    )  # a larger bomb takes longer
    folder = tmp_path / "bomb"
    shutil.copytree(whole.path, folder)
    path = folder / "runs.parquet"
    BOMBS[kind].write_parquet(path)
    assert path.stat().st_size < 20_000
    sealed(weir.load(folder))
    done = invoke("report", folder)
    assert done.exit_code == 2, done.output
    assert "runs.parquet: damaged: " in done.stderr
    assert "bytes that unpack to 16" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_small_or_dense_table_is_no_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has to unpack to much, and to far more than its size."""
    small, dense = tmp_path / "small.parquet", tmp_path / "dense.parquet"
    BOMBS["rows"].write_parquet(small)
    pl.DataFrame({"run": range(1_000)}).write_parquet(dense)
    assert parquet.unpacked_bytes(small) == 16_000_000
    monkeypatch.setattr(parquet, "_HARMLESS_BYTES", 1)
    assert parquet.unpacked_bytes(dense) >= 8_000
    with pytest.raises(InputError, match="unpack to 16000000"):
        parquet.unpacked_bytes(small)


def test_a_footer_of_any_bytes_is_read_or_refused(whole: weir.Results, tmp_path: Path) -> None:
    intact = (whole.path / "runs.parquet").read_bytes()
    length = int.from_bytes(intact[-8:-4], "little")
    start = len(intact) - 8 - length
    path, rng = tmp_path / "x.parquet", random.Random(1)  # noqa: S311
    refused = 0
    for _ in range(500):
        damaged = bytearray(intact)
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(start, len(intact))] = rng.randrange(256)
        path.write_bytes(damaged)
        try:
            parquet.unpacked_bytes(path)
        except InputError:
            refused += 1
    assert 0 < refused < 500


def test_links_in_results_lead_no_file_elsewhere(
    whole: weir.Results, tmp_path: Path, invoke: Invoke
) -> None:
    """`weir report` writes into a folder that another user may have made."""
    folder, mine = tmp_path / "theirs", tmp_path / "mine"
    shutil.copytree(whole.path, folder)
    mine.mkdir()
    (mine / "file").write_text("mine", encoding="utf-8")
    for name in ("report.html", "report.partial"):
        (folder / name).symlink_to(mine / "file")
    assert invoke("report", folder).exit_code == 0
    assert (mine / "file").read_text(encoding="utf-8") == "mine"
    (folder / "figures").symlink_to(mine)
    done = invoke("report", folder, "--svg")
    assert done.exit_code == 2, done.output
    assert [file.name for file in mine.iterdir()] == ["file"]
