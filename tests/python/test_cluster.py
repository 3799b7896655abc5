"""A real Dask cluster of two worker processes, one of which does not live to see the end."""

from __future__ import annotations

import filecmp
import json
import signal
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from shutil import copytree, ignore_patterns
from threading import Thread
from typing import Any

import polars as pl
import pytest
from conftest import Invoke, started
from distributed import Client

import weir
from bench.workers import Process, Workers, cluster, kill, wait_until
from weir.base.errors import ClusterError, InputError
from weir.results.results import TABLES
from weir.running import cluster as clusters
from weir.running import runner
from weir.running.execution import Execution
from weir.scenario.plans import scenario_plan
from weir.scenario.source import SIM, Effective, Source, read
from weir.scenario.sweep import Plan
from weir.search import goals
from weir.search.findings import Target
from weir.search.hunt import SearchOptions, search

SCENARIO = """
name = "many"
[topology]
rate = "10mbit"
forward = { loss = "0.5%" }
[[flow]]
stack = "reno"
start_jitter = "50ms"
[measure]
duration = "10s"
repeat = 10
[sweep]
"flow.0.stack" = ["reno", "cubic", "bbr"]
"topology.rtt" = ["10ms", "30ms"]
"""
RUNS = 60


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "many.toml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture
def plan(scenario: Path) -> Plan:
    return scenario_plan(read(scenario), {})


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of all runs, made without a cluster."""
    plan = scenario_plan(Source(SCENARIO, "many"), {})
    assert len(plan.runs) == RUNS
    return runner.run_plan(plan, tmp_path_factory.mktemp("local"))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    """A cluster of two workers that all of them survive."""
    with cluster(tmp_path_factory.mktemp("cluster"), 2) as (workers, _):
        wait_until(lambda: workers.log.read_text().count("Registered to") == 2)
        yield workers


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[tuple[Workers, list[Process]]]:
    """A cluster of two workers that a test may kill."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    with cluster(folder, 2) as (workers, processes):
        wait_until(lambda: workers.log.read_text().count("Registered to") == 2)
        yield workers, processes


def same_tables(one: Path, other: Path) -> None:
    names = sorted(f"{name}.parquet" for name in TABLES)
    assert sorted(file.name for file in one.glob("*.parquet")) == names
    assert filecmp.cmpfiles(one, other, names, shallow=False) == (names, [], [])


def test_a_killed_worker_costs_nothing_but_time(
    plan: Plan, local: Path, tmp_path: Path, mortal: tuple[Workers, list[Process]]
) -> None:
    workers, processes = mortal
    done = 0

    def watch(runs: int) -> None:
        nonlocal done
        done += runs
        if done >= RUNS // 2 and processes[0].poll() is None:
            kill(processes[0])

    with clusters.connected(str(workers.file)) as executor:
        path = runner.run_plan(plan, tmp_path / "dask", executor=executor, watch=watch)
    assert processes[0].poll() is not None, "it was killed"
    assert done == RUNS
    results = weir.load(path)
    assert results.manifest["runs"] == {"planned": RUNS, "ok": RUNS, "failed": {}}
    assert results.runs["trace_hash"].n_unique() > RUNS // 2, "the runs are not all alike"
    same_tables(local, path)


def test_a_search_that_loses_a_worker_finds_the_same(
    tmp_path: Path, mortal: tuple[Workers, list[Process]]
) -> None:
    workers, processes = mortal
    (hunt,) = goals.hunts(["bufferbloat"], "scalable", None)
    target = Target.of(hunt, {}, (("measure.duration", "5s"),), SIM)
    options = SearchOptions(budget="64", stop=False, shrink=False)
    alone = search(target, options, Execution(out=tmp_path, jobs=1, show_progress=False))

    def tell(_: str) -> None:
        if processes[0].poll() is None:
            kill(processes[0])

    how = Execution(out=tmp_path, dask=str(workers.file), show_progress=False)
    shared = search(target, options, how, tell)
    assert processes[0].poll() is not None, "it was killed"
    assert replace(alone, journal="") == replace(shared, journal="")


def test_no_worker_left_is_reported_and_resume_continues_anywhere(
    plan: Plan, local: Path, tmp_path: Path, mortal: tuple[Workers, list[Process]]
) -> None:
    workers, processes = mortal

    def watch(runs: int) -> None:
        if runs and not (tmp_path / "gone").exists():
            (tmp_path / "gone").touch()
            for process in processes:
                kill(process)

    with (
        pytest.raises(
            ClusterError, match=r"no workers for 2 s; \d+ of 60 runs are kept .*--resume"
        ),
        clusters.connected(str(workers.file), patience_s=2.0) as executor,
    ):
        runner.run_plan(plan, tmp_path / "dask", executor=executor, watch=watch)
    kept = weir.load(tmp_path / "dask" / "many" / "latest").manifest["runs"]["ok"]
    assert 0 < kept < RUNS
    same_tables(local, runner.run_plan(plan, tmp_path / "dask", resume=True))


def test_a_scheduler_that_is_gone_is_reported(
    scenario: Path, tmp_path: Path, mortal: tuple[Workers, list[Process]]
) -> None:
    """In one line, whatever Dask has to say."""
    workers, _ = mortal
    out = tmp_path / "out"
    long = ("--set", "measure.duration=60s", "--repeat", 10)
    with started("run", scenario, *long, "--dask", workers.file, "--out", out) as process:
        wait_until(lambda: len([*out.glob("many/.*/parts/*/run.json")]) >= 2)
        kill(workers.scheduler)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 1, said
    assert "the cluster can do no more: its scheduler is gone" in said
    assert "of 60 runs are kept in" in said
    assert said.count("\n") == 1


def test_the_command_prints_the_same_as_at_home(
    invoke: Invoke, scenario: Path, pair: Workers
) -> None:
    few = ("--set", "measure.duration=1s", "--repeat", 2, "--quiet", "--json")
    local = invoke("run", scenario, *few)
    remote = invoke("run", scenario, *few, "--dask", pair.file)
    assert remote.exit_code == 0, remote.stderr
    assert remote.stdout == local.stdout != ""
    compared = ("compare", "reno", "cubic", "--duration", "1s", "--repeat", 2, "--quiet", "--json")
    address = json.loads(pair.file.read_text())["address"]
    assert invoke(*compared, "--dask", address).stdout == invoke(*compared).stdout != ""


def test_from_python_it_is_an_argument(scenario: Path, tmp_path: Path, pair: Workers) -> None:
    sets = {"measure.duration": "1s"}
    asked: dict[str, Any] = {"sets": sets, "repeat": 2, "show_progress": False}
    local = weir.run(scenario, out=tmp_path / "local", **asked)
    remote = weir.run(scenario, out=tmp_path / "remote", dask=str(pair.file), **asked)
    same_tables(local.path, remote.path)


def test_a_run_that_fails_fails_alone(plan: Plan, pair: Workers) -> None:
    sound = plan.runs[0].case.scenario
    with clusters.connected(str(pair.file)) as executor:
        answers = [executor.submit(runner.execute, sound, seed) for seed in range(8)]
        bad = executor.submit(runner.execute, Effective({}), 1)
        assert "at least one [[flow]] is needed" in str(bad.exception(30))
        tables = answers[3].result(30)
    assert tables["flows"].equals(runner.execute(sound, 3)["flows"])
    assert isinstance(tables["samples"], pl.DataFrame)


def test_ctrl_c_keeps_what_is_done_and_cancels_the_rest(
    scenario: Path, tmp_path: Path, pair: Workers
) -> None:
    out = tmp_path / "out"
    long = ("--set", "measure.duration=60s", "--repeat", 10)
    words = ("run", scenario, *long, "--dask", pair.file, "--out", out)
    with started(*words) as process:
        wait_until(lambda: len([*out.glob("many/.*/parts/*/run.json")]) >= 2)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "give the same command with --resume" in said
    assert said.count("\n") == 1
    with Client(scheduler_file=str(pair.file), set_as_default=False) as client:
        wait_until(lambda: not any(client.processing().values()))


def test_another_version_is_refused(tmp_path: Path, pair: Workers) -> None:
    """A worker whose Weir says that it is another version."""
    other = tmp_path / "other"
    source = Path(weir.__file__).parent
    copytree(source, other / "weir", symlinks=True, ignore=ignore_patterns("__pycache__"))
    module = other / "weir" / "running" / "cluster.py"
    module.write_text(module.read_text().replace("_native.version()", '"0.0.7"'))
    before = pair.log.read_text().count("Registered to")
    other_worker = pair.start(path=other)
    wait_until(lambda: pair.log.read_text().count("Registered to") > before)
    with (
        pytest.raises(InputError, match=rf"has weir 0\.0\.7, this machine {weir.__version__}"),
        clusters.connected(str(pair.file)),
    ):
        pass
    kill(other_worker)


def test_a_worker_that_comes_later_is_asked_too() -> None:
    """With every batch, as it is not there when the others are asked."""
    own = clusters.identity()
    clusters.WorkerCheck(own)()
    with pytest.raises(ClusterError, match="a worker simulates otherwise than this machine"):
        clusters.WorkerCheck({**own, "probe": "another"})()
    with pytest.raises(ClusterError, match=r"has polars .*, this machine 0\.1"):
        clusters.WorkerCheck({**own, "polars": "0.1"})()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--dask", "nowhere.json"), "no such scheduler file"),
        (("--dask", "tcp://127.0.0.1:9"), "no scheduler answers there"),
        (("--dask", "tcp://127.0.0.1:9", "--jobs", 2), "--jobs has no effect with --dask"),
        (("--dask", "tcp://127.0.0.1:9", "--world", "udp"), "only simulated runs"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    invoke: Invoke, arguments: tuple[object, ...], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "_CONNECT_S", 0.5)
    result = invoke("compare", "reno", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "another program answers there"),
        (b"220", "another program answers there"),
        (None, r"no scheduler answers there \(timed out\)"),
    ],
)
def test_a_port_of_another_program_is_refused(said: bytes | None, message: str) -> None:
    """Dask would reserve as much memory as these bytes say, or wait."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        answering = Thread(target=_answer, args=(server, said))
        answering.start()
        with pytest.raises(InputError, match=message), clusters.connected(f"{host}:{port}"):
            pass
        answering.join(10)


def _answer(server: socket.socket, said: bytes | None) -> None:
    stream, _ = server.accept()
    with stream:
        if said is None:
            stream.recv(1)
        else:
            stream.sendall(said)


def test_a_cluster_without_workers_is_reported(tmp_path: Path) -> None:
    with (
        cluster(tmp_path, 0) as (workers, _),
        pytest.raises(InputError, match=r"no worker has come within 0\.1 s"),
        clusters.connected(str(workers.file), patience_s=0.1),
    ):
        pass
