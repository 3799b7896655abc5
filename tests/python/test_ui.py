"""`weir ui`: who may ask, what is answered, and how it ends."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import signal
import socket
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import made
import numpy as np
import polars as pl
import pytest
from conftest import until
from loopback import serving
from typer.testing import Result

import weir
from weir.base.errors import InputError
from weir.cli.ui import in_browser
from weir.laboratory import page
from weir.laboratory.detail import Series, detail
from weir.laboratory.explorer import Explorer
from weir.laboratory.job import Job
from weir.laboratory.server import HEADER, MOST_CONNECTIONS, Server
from weir.scenario.plans import scenario_plan
from weir.scenario.source import read

Invoke = Callable[..., Result]
FILES = {"/": page.PageFile(b"<html>", "text/html")}
SETS = {
    "flow.1.start": "1s",
    "measure.duration": "6s",
    "measure.warmup": "1s",
    "measure.sample_interval": "1ms",
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> weir.Results:
    """Two flows with a value per acknowledgement."""
    sets = {**SETS, "measure.acks": "1000000"}
    out = tmp_path_factory.mktemp("ui")
    return weir.run("two-flows", sets=sets, repeat=2, out=out, jobs=1, show_progress=False)


@pytest.fixture(scope="module")
def server(results: weir.Results) -> Iterator[Server]:
    with serving(FILES, Explorer(results)) as started:
        yield started


def ask(
    server: Server, path: str, *, method: str = "GET", host: str | None = None, **headers: str
) -> tuple[int, bytes]:
    """The status and the body of an answer; `X_Weir_Token` is a header, and so on."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        connection.putrequest(method, path, skip_host=True)
        connection.putheader("Host", host or f"127.0.0.1:{server.port}")
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def asked(server: Server, path: str, **headers: str) -> tuple[int, Any]:
    """The same with the token; the answer from JSON."""
    status, body = ask(server, path, X_Weir_Token=server.token, **headers)
    return status, json.loads(body)


def test_the_token_opens_the_data(server: Server) -> None:
    status, state = asked(server, "/api/state")
    assert status == 200
    assert state["phase"] == "ready"
    assert [run["seed"] for run in state["runs"]] == [1, 2]
    assert re.fullmatch(
        rf"http://127\.0\.0\.1:{server.port}/#token={re.escape(server.token)}", server.url
    )
    assert len(server.token) >= 32


@pytest.mark.parametrize("path", ["/api/state", "/api/run?run=0", "/api/detail", "/nothing"])
@pytest.mark.parametrize("given", [None, "", "wrong", "ü"])
def test_without_the_token_there_is_no_data(server: Server, path: str, given: str | None) -> None:
    headers = {} if given is None else {"X_Weir_Token": given}
    status, body = ask(server, path, **headers)
    assert status == 403
    assert HEADER in json.loads(body)["error"]


@pytest.mark.parametrize("path", ["/", "/api/state"])
@pytest.mark.parametrize(
    "headers",
    [
        {"host": "attacker.example"},
        {"host": "attacker.example:{port}"},
        {"host": "127.0.0.1"},
        {"host": "127.0.0.1:1"},
        {"Origin": "http://attacker.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Host": "attacker.example"},
    ],
    ids=str,
)
def test_a_page_of_another_origin_is_refused(
    server: Server, path: str, headers: dict[str, str]
) -> None:
    """Also with the token, so that neither check is the only one."""
    filled = {name: value.format(port=server.port) for name, value in headers.items()}
    status, body = ask(server, path, X_Weir_Token=server.token, **filled)
    assert status == 403
    assert "error" in json.loads(body)


def test_its_own_origin_is_allowed(server: Server) -> None:
    for name in ("127.0.0.1", "localhost"):
        own = f"{name}:{server.port}"
        headers = {"Origin": f"http://{own}", "Sec_Fetch_Site": "same-origin"}
        status, _ = ask(server, "/api/state", host=own, X_Weir_Token=server.token, **headers)
        assert status == 200


def test_no_answer_allows_other_origins_or_frames(server: Server) -> None:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port)) as connection:
        connection.request("GET", "/")
        answer = connection.getresponse()
        names = {name.lower() for name in answer.headers}
        assert answer.status == 200
        assert not {name for name in names if name.startswith("access-control")}
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "HEAD"])
def test_other_methods_are_refused(server: Server, method: str) -> None:
    status, _ = ask(server, "/api/state", method=method, X_Weir_Token=server.token)
    assert status == 501


@pytest.mark.parametrize(
    "path", ["/../../etc/passwd", "/%2e%2e/secret", "/lab.js/../x", "/api", "/api/files"]
)
def test_no_request_names_a_file(server: Server, path: str) -> None:
    status, answer = asked(server, path)
    assert (status, answer) == (404, {"error": "there is no such address"})


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("run=7&from=0&to=1&bins=1", "run=7: there is no such run"),
        ("run=-1", "run=-1: must be a whole number"),
        ("run=" + "9" * 500, "run=99999999999999999999: must be"),
        ("", "run=: must be"),
        ("run=0&from=x&to=1&bins=9", "from=x: must be a time"),
        ("run=0&from=0&to=nan&bins=9", "to=nan: must be a time"),
        ("run=0&from=0&to=inf&bins=9", "to=inf: must be a time"),
        ("run=0&from=0&to=1&bins=0", "bins=0: must be a whole number from 1 to 4000"),
        ("run=0&from=0&to=1&bins=4001", "bins=4001: must be a whole number from 1 to 4000"),
        ("run=0&from=0&to=1&bins=²", "bins="),
        ("a" * 2000, "longer than 1000 characters"),
    ],
)
def test_a_wrong_question_names_what_is_allowed(server: Server, query: str, message: str) -> None:
    from urllib.parse import quote

    status, answer = asked(server, "/api/detail?" + quote(query, safe="=&"))
    assert status == 400
    assert message in answer["error"]


def test_silent_connections_make_space_for_those_that_prove_themselves(
    results: weir.Results,
) -> None:
    """A local program without the token keeps no browser out."""
    with serving(FILES, Explorer(results)) as server, contextlib.ExitStack() as stack:
        address = "127.0.0.1", server.port
        silent = [
            stack.enter_context(socket.create_connection(address, 5))
            for _ in range(MOST_CONNECTIONS)
        ]
        time.sleep(0.1)
        browser = http.client.HTTPConnection(*address, timeout=5)
        stack.callback(browser.close)
        for _ in range(2):
            browser.request("GET", "/api/state", headers={HEADER: server.token})
            answer = browser.getresponse()
            assert (answer.status, bool(answer.read())) == (200, True)
            for _ in range(MOST_CONNECTIONS):
                silent.append(stack.enter_context(socket.create_connection(address, 5)))
        assert silent[0].recv(1) == b"", "the oldest that has proved nothing"
        assert len(server._open) <= MOST_CONNECTIONS


def groups(packed: bytes) -> dict[tuple[str, int], pl.DataFrame]:
    """An answer as the page reads it."""
    (length,) = struct.unpack_from("<I", packed)
    assert (4 + length) % 8 == 0
    at, found = 4 + length, {}
    for header in json.loads(packed[4 : 4 + length]):
        columns = {}
        for name in header["columns"]:
            columns[name] = np.frombuffer(packed, "<f8", header["rows"], at)
            at += 8 * header["rows"]
        found[header["of"], header["index"]] = pl.DataFrame(columns)
    assert at == len(packed)
    return found


@pytest.mark.parametrize(("start", "end", "bins"), [(0.0, 6.0, 50), (1.3, 4.9, 111), (2.0, 2.7, 9)])
@pytest.mark.parametrize("run", [0, 1])
def test_bins_are_those_of_polars(
    server: Server, results: weir.Results, run: int, start: float, end: float, bins: int
) -> None:
    query = f"run={run}&from={start}&to={end}&bins={bins}"
    _, body = ask(server, f"/api/detail?{query}", X_Weir_Token=server.token)
    found = groups(body)
    assert {("flow", 0), ("flow", 1), ("acks", 0), ("link", 0)} <= set(found)
    width, binned = (end - start) / bins, 0
    for (of, index), shown in found.items():
        table, key = {
            "flow": ("samples", "flow"),
            "acks": ("acks", "flow"),
            "link": ("queues", "link"),
        }[of]
        rows = results.scan(table).filter(
            pl.col("run") == run, pl.col(key) == index, pl.col("t_s").is_between(start, end)
        )
        if f"{shown.columns[1]}.low" not in shown.columns:
            assert rows.collect().height <= 2 * bins
            continue
        binned += 1
        assert shown.height <= bins
        for name in shown.columns[1:]:
            if "." in name:
                continue
            value = pl.col(name).cast(pl.Float64)
            expected = (
                # The end of the range is in its last bin.
                rows.group_by(
                    ((pl.col("t_s") - start) / width).floor().clip(0, bins - 1).alias("bin")
                )
                .agg(
                    value.mean().alias("mean"), value.min().alias("low"), value.max().alias("high")
                )
                .sort("bin")
                .collect()
            )
            middle = start + (expected["bin"].to_numpy() + 0.5) * width
            np.testing.assert_allclose(shown["t_s"], middle, rtol=1e-12)
            for ours, theirs in ((name, "mean"), (f"{name}.low", "low"), (f"{name}.high", "high")):
                wanted = expected[theirs].to_numpy().astype(float)
                np.testing.assert_allclose(shown[ours], wanted, rtol=1e-9, err_msg=ours)
    assert binned >= 5


def test_few_rows_are_shown_as_they_are(server: Server, results: weir.Results) -> None:
    query = "run=0&from=3&to=3.05&bins=100"
    _, body = ask(server, f"/api/detail?{query}", X_Weir_Token=server.token)
    shown = groups(body)["flow", 0]
    assert not [name for name in shown.columns if "." in name]
    own = results.samples.filter(pl.col("run") == 0, pl.col("flow") == 0).sort("t_s")
    first, last = shown["t_s"][0], shown["t_s"][-1]
    near = own.filter(pl.col("t_s").is_between(first, last))
    assert first < 3 < 3.05 < last
    assert shown["cwnd_bytes"].to_list() == near["cwnd_bytes"].to_list()


def test_rows_are_shown_with_one_more_on_each_side() -> None:
    series = Series(np.arange(10.0), {"a": np.arange(10.0)})
    for start, end, expected in ((3, 5, [2, 3, 4, 5, 6]), (0, 1, [0, 1, 2]), (8, 9, [7, 8, 9])):
        shown = detail(series, start, end, 10)
        assert shown.t_s.tolist() == shown.mean["a"].tolist() == expected


def test_unknown_values_are_left_out_of_bins() -> None:
    nan = float("nan")
    series = Series(np.arange(9.0), {"x": np.array([1, nan, 3, nan, nan, nan, 5, 9, 1.0])})
    shown = detail(series, 0, 9, 3)
    assert shown.low is not None
    assert shown.high is not None
    for values, expected in (
        (shown.mean, [2, nan, 5]),
        (shown.low, [1, nan, 1]),
        (shown.high, [3, nan, 9]),
    ):
        np.testing.assert_array_equal(values["x"], expected)


def test_the_next_drop_is_that_of_the_table(server: Server, results: weir.Results) -> None:
    queues = results.queues.filter(pl.col("run") == 0).sort("link", "t_s")
    more = queues.filter(pl.col("drops").cast(pl.Int64).diff().over("link") > 0)["t_s"].sort()
    assert more.len() > 3
    after = 0.0
    for expected in more.unique().sort()[:4]:
        _, answer = asked(server, f"/api/next?run=0&what=drops&after={after}")
        assert answer == {"t_s": expected}
        after = expected
    assert asked(server, "/api/next?run=0&what=drops&after=99")[1] == {"t_s": None}
    assert asked(server, "/api/next?run=0&what=cats&after=0")[0] == 400


def _job(tmp_path: Path, **sets: str) -> Job:
    overrides = tuple({**SETS, **sets}.items())
    return Job(scenario_plan(read("two-flows", overrides), {}, repeat=1), tmp_path, 1)


def _phase(server: Server) -> str:
    return str(asked(server, "/api/state")[1]["phase"])


def test_a_scenario_runs_and_is_then_shown(tmp_path: Path) -> None:
    job = _job(tmp_path)
    with serving(FILES, None, job) as server:
        job.start()
        until(lambda: _phase(server) == "ready")
        assert asked(server, "/api/run?run=0")[1]["duration_s"] == 6
    job.stop()
    assert (tmp_path / "two-flows" / "latest").exists()


def test_a_run_that_is_stopped_leaves_nothing(tmp_path: Path) -> None:
    job = _job(tmp_path, **{"measure.duration": "100000s", "measure.sample_interval": "1s"})
    with serving(FILES, None, job) as server:
        job.start()
        until(lambda: asked(server, "/api/state")[1]["elapsed_s"] > 0)
        state = asked(server, "/api/state")[1]
        assert (state["phase"], state["done"], state["total"]) == ("running", 0, 1)
        assert state["elapsed_s"] <= state["duration_s"] == 100_000
        assert asked(server, "/api/run?run=0") == (400, {"error": "there are no results yet"})
        job.stop()
    assert [entry for entry in (tmp_path / "two-flows").rglob("*") if entry.is_file()] == []


def test_a_failed_run_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    job = Job(
        scenario_plan(read("two-flows", tuple(SETS.items())), {}, repeat=1), tmp_path / "file", 1
    )
    with serving(FILES, None, job) as server:
        job.start()
        until(lambda: _phase(server) == "failed")
        state = asked(server, "/api/state")[1]
    assert str(tmp_path / "file") in state["error"]


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page as `make lab` writes it, but for its contents."""
    folder = tmp_path / "dist"
    folder.mkdir()
    policy = "default-src 'none'; script-src 'self'"
    (folder / "index.html").write_text(f'<html><head><meta content="{policy}"></head>')
    (folder / "lab.js").write_text("script")
    monkeypatch.setattr(page, "_FOLDERS", (folder,))
    return folder


def test_the_served_page_may_ask_this_server_only(built: Path) -> None:
    files = page.read()
    assert set(files) == {"/", "/index.html", "/lab.js"}
    assert b"default-src 'none'; connect-src 'self'; script-src" in files["/"].content
    assert b'name="weir-engine"' in files["/"].content
    assert b"connect-src" not in (built / "index.html").read_bytes()


def test_a_page_that_was_not_built_is_named(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "_FOLDERS", (tmp_path / "nowhere",))
    result = invoke("ui", "--no-open")
    assert result.exit_code == 2
    assert "run make lab" in result.stderr


def test_another_page_is_refused(built: Path) -> None:
    (built / "index.html").write_text("<html><head></head>")
    with pytest.raises(InputError, match="make lab"):
        page.read()


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nothing"], "nothing: no such file, and there is no scenario"),
        (["two-flows", "--set", "topology.rate=fast"], "topology.rate"),
        (["two-flows", "--virtual"], "--virtual: world sim has no guests"),
        (["two-flows", "--world", "moon"], "moon"),
        (["."], "no results here"),
        (["--port", "70000"], "65535"),
        (["--seed", "3"], "--seed 3: there is nothing to run"),
    ],
    ids=str,
)
def test_wrong_arguments_are_one_line(invoke: Invoke, args: list[str], message: str) -> None:
    result = invoke("ui", "--no-open", *args)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert result.stdout == ""


@pytest.mark.usefixtures("built")
def test_results_are_not_run_again(invoke: Invoke, results: weir.Results) -> None:
    options = (
        ["--seed", "3"],
        ["--set", "a=b"],
        ["--repeat", "2"],
        ["--world", "udp"],
        ["--out", "x"],
    )
    for option in (*options, ["--trust-controllers"]):
        result = invoke("ui", "--no-open", results.path, *option)
        assert result.exit_code == 2
        given = " ".join(option)
        assert f"{given}: {results.path} has results" in " ".join(result.stderr.split())


@pytest.mark.usefixtures("built")
def test_damaged_results_are_one_line(invoke: Invoke, tmp_path: Path) -> None:
    own = made.compared(tmp_path / "out", "reno")
    (own.path / "samples.parquet").write_bytes(b"nothing")
    result = invoke("ui", "--no-open", own.path)
    assert result.exit_code == 2
    assert "samples.parquet: damaged" in " ".join(result.stderr.split())


@pytest.mark.usefixtures("built")
def test_runs_of_no_case_are_one_line(invoke: Invoke, tmp_path: Path) -> None:
    own = made.compared(tmp_path / "out", "reno")
    made.change(own, "runs", pl.lit("another").alias("label"))
    result = invoke("ui", "--no-open", own.path)
    assert result.exit_code == 2
    assert "not as Weir writes results (StopIteration" in " ".join(result.stderr.split())


@pytest.mark.usefixtures("built")
def test_a_used_port_is_named(invoke: Invoke) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = invoke("ui", "--no-open", "--port", port)
    assert result.exit_code == 2
    assert f"--port {port}: " in result.stderr


@pytest.mark.parametrize("args", [[], ["two-flows", "--set", "measure.duration=100000s"]], ids=str)
def test_ctrl_c_ends_it_with_success(built: Path, args: list[str]) -> None:
    code = (
        "import pathlib, sys; from weir.laboratory import page; from weir.cli import app; "
        f"page._FOLDERS = (pathlib.Path({str(built)!r}),); "
        f"app(['ui', '--no-open', *{args!r}], prog_name='weir')"
    )
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=built) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("http://127.0.0.1:")
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            _, stderr = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 0
    assert "Traceback" not in stderr
    assert "stopped" in stderr


def test_no_command_line_has_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = list[str]()

    def open_one(url: str) -> bool:
        opened.append(url)
        return True

    monkeypatch.setattr("webbrowser.open", open_one)
    with in_browser("http://127.0.0.1:8899/#secret&x=1") as is_open:
        assert is_open
        (url,) = opened
        assert "secret" not in url
        file = Path(urlsplit(url).path)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        assert 'content="0;url=http://127.0.0.1:8899/#secret&amp;x=1"' in file.read_text()
    assert not file.parent.exists()


def test_a_file_may_lead_to_the_page_and_show_none_of_it(server: Server) -> None:
    foreign = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    statuses = [
        ask(server, path, **foreign, Sec_Fetch_Dest=dest, X_Weir_Token=server.token)[0]
        for path, dest in (("/", "document"), ("/", "iframe"), ("/api/state", "document"))
    ]
    assert statuses == [200, 403, 403]
