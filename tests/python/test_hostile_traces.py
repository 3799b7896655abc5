"""`weir validate --truth` of made-up folders: one line per fault, never a traceback."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Invoke

PRIVATE = "root:$6$salt$hash:20000"
FLOW = {
    **{"cc": "reno", "start": 0, "dur": 1, "steady_goodput_mbps": 1, "mean_cwnd": 10},
    **{"peak_cwnd": 10, "mean_srtt_ms": 40, "retrans": 0},
}
PARAMS = {"RATE": "10mbit", "QLEN": "100", "DELAY": "10ms", "DUR": "1"}
DEEP = "[" * 100_000 + "]" * 100_000


def case(**changes: Any) -> dict[str, Any]:
    return {"params": PARAMS, "flows": [FLOW], "kernel": "6.12", **changes}


def flow(**changes: Any) -> dict[str, Any]:
    return case(flows=[{**FLOW, **changes}])


def params(**changes: Any) -> dict[str, Any]:
    return case(params={**PARAMS, **changes})


def summary(*cases: object, name: str = "a") -> Callable[[Path], object]:
    text = json.dumps({name if n == 0 else f"{name}-s{n + 1}": one for n, one in enumerate(cases)})
    return lambda folder: (folder / "summary.json").write_text(text, encoding="utf-8")


def text(content: str | bytes) -> Callable[[Path], object]:
    data = content if isinstance(content, bytes) else content.encode()
    return lambda folder: (folder / "summary.json").write_bytes(data)


def next_to(name: str, spoil: Callable[[Path], object]) -> Callable[[Path], object]:
    """A good summary, and another file."""

    def make(folder: Path) -> None:
        summary(case())(folder)
        spoil(folder / name)

    return make


def content(data: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(data)


def elsewhere(folder: Path) -> None:
    """A case whose name leads out of the folder."""
    (folder.parent / "secret.csv").write_text(f"{PRIVATE}\n{PRIVATE}\n", encoding="utf-8")
    summary(case(), name="../secret")(folder)


SERIES = b"t,cwnd0,srtt_ms0,gput0\n"
BOMB = gzip.compress(b"0,P,10\n" * 4_000_000)

FOLDERS: dict[str, Callable[[Path], object]] = {
    "nothing wrong": summary(case()),
    "nothing": lambda _: None,
    "summary folder": lambda folder: (folder / "summary.json").mkdir(),
    "summary fifo": lambda folder: os.mkfifo(folder / "summary.json"),
    "summary endless": lambda folder: (folder / "summary.json").symlink_to("/dev/zero"),
    "summary too long": text(b" " * ((16 << 20) + 1)),
    "summary no text": text(b"\xff\xfe"),
    "summary deep": text(DEEP),
    "summary deep inside": text(f'{{"a": {DEEP}}}'),
    "summary of another file": text(PRIVATE),
    "summary list": text("[]"),
    "summary empty": text("{}"),
    "a case of text": summary("x"),
    "no params": summary({"flows": [FLOW]}),
    "flows of numbers": summary(case(flows=[1])),
    "no flows": summary(case(flows=[])),
    "fewer flows": summary(case(flows=[FLOW, FLOW]), case()),
    "too many flows": summary(case(flows=[FLOW] * 2_000)),
    "a number that is text": summary(flow(retrans=PRIVATE)),
    "a number that is none": text(json.dumps({"a": flow(retrans=float("nan"))})),
    "an infinite number": text(json.dumps({"a": flow(mean_cwnd=float("inf"))})),
    "a huge number": text(json.dumps({"a": flow()}).replace('"dur": 1', f'"dur": 1{"0" * 400}')),
    "a number of many digits": text('{"a": ' + "9" * 5_000 + "}"),
    "times without end": summary(flow(dur=1e300)),
    "overlap list": summary(case(flows=[FLOW, FLOW], overlap=[1])),
    "overlap of text": summary(case(flows=[FLOW, FLOW], overlap={"goodput_mbps": ["x", "y"]})),
    "error of lists": summary({"params": {}, "error": [["x"]]}),
    "a name of controls": summary(case(), name="\x1b[31m\nx"),
    "a name of half a character": text('{"\\ud800": ' + json.dumps(case()) + "}"),
    "a name with zero": summary(case(), name="a\0b"),
    "a name with markup": summary({"params": PARAMS, "error": "[/red]"}, name="[bold]"),
    "a name that leads elsewhere": elsewhere,
    "a rate of text": summary(params(RATE="fast")),
    "a delay of text": summary(params(DELAY="-")),
    "a queue of text": summary(params(QLEN="many")),
    "a step of text": summary(params(STEP="x")),
    "a step of zero": summary(params(STEP="0")),
    "loss of text": summary(params(LOSS="x")),
    "loss of nothing": summary(params(LOSS="loss")),
    "a quote without end": summary(params(QDISC='"fq', QDISC2="'fq")),
    "a discipline of nothing": summary(params(QDISC="")),
    "switches of text": summary(params(SYSCTL="x=y=z '")),
    "parameters of text": summary(params(PARAM="x=y=z '")),
    "params of lists": summary(params(QDISC=["x"], RATE={"a": 1})),
    "series fifo": next_to("a.csv", os.mkfifo),
    "series endless": next_to("a.csv", lambda path: path.symlink_to("/dev/zero")),
    "series of another file": next_to("a.csv", content(PRIVATE.encode())),
    "series of text": next_to("a.csv", content(SERIES + f"{PRIVATE},1,1,1\n".encode())),
    "series too long": next_to("a.csv", content(SERIES + b"1,1,1,1\n" * (2 << 20))),
    "series of bytes": next_to("a.csv", content(SERIES + b"\xff\xfe,1,1,1\n")),
    "packets fifo": next_to("packets-a.csv.gz", os.mkfifo),
    "packets of another file": next_to("packets-a.csv.gz", content(PRIVATE.encode())),
    "packets cut": next_to("packets-a.csv.gz", content(gzip.compress(b"0,P,10\n" * 99)[:40])),
    "packets of text": next_to(
        "packets-a.csv.gz", content(gzip.compress(f"0,P,{PRIVATE}".encode()))
    ),
    "packets that inflate": next_to("packets-a.csv.gz", content(BOMB)),
    "packets of huge numbers": next_to(
        "packets-a.csv.gz", content(gzip.compress(b"0,P," + b"9" * 5_000))
    ),
}

REFUSED = [
    *("summary fifo", "summary endless", "summary too long", "a number that is none"),
    *("a name that leads elsewhere", "series endless", "series fifo", "series too long"),
    *("packets fifo", "packets that inflate", "too many flows", "times without end"),
]
"""What is never taken for traces."""


@pytest.mark.parametrize("kind", FOLDERS)
def test_hostile_traces_are_refused_in_lines(kind: str, invoke: Invoke, tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    FOLDERS[kind](folder)
    done = invoke("validate", "--reference", folder, "--seeds", "2", "--quiet")
    details = done.output[-2_000:]
    assert done.exception is None or isinstance(done.exception, SystemExit), details
    assert done.exit_code in (0, 1, 2), details
    if done.exit_code == 2:
        assert done.stderr.startswith("weir: "), details
        assert done.stderr.count("\n") == 1, details
    if kind == "nothing wrong":
        assert done.exit_code in (0, 1), details
    if kind in REFUSED:
        assert done.exit_code == 2, details
    for part in PRIVATE.split("$")[2:]:
        assert part not in done.output
    assert "\x1b[31m" not in done.output
