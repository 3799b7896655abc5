"""Our links and the guest's own netem; skipped where no guest kernel has been built."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import requires
from conftest import Invoke

import weir
from weir.scenario.source import NETEM, VIRTUAL

TOLERANCE = 0.02
"""Two runs differ in when a packet comes, by microseconds, and so in where a sawtooth ends."""


def figures(out: Path, world: str, loss: str) -> tuple[dict[str, float], weir.Results]:
    """Goodput, and the means of window and round-trip time, of one flow of Reno."""
    found = weir.compare(
        "reno",
        queue="34p",
        duration="20s",
        warmup="5s",
        loss=loss,
        repeat=1,
        world=world,
        out=out,
        show_progress=False,
    )
    steady = found.samples.filter(found.samples["t_s"] >= 5)
    means: Any = [steady[name].drop_nulls().mean() for name in ("cwnd_bytes", "srtt_ms")]
    goodput = found.flows["goodput_mbps"][0]
    return dict(zip(("goodput", "cwnd", "srtt"), (goodput, *means), strict=True)), found


@requires.guest
@pytest.mark.timeout(300)
def test_netem_and_our_links_do_the_same_to_reno(tmp_path: Path) -> None:
    ours, with_links = figures(tmp_path / "weir", VIRTUAL, "0%")
    theirs, with_netem = figures(tmp_path / "netem", NETEM, "0%")
    assert theirs == pytest.approx(ours, rel=TOLERANCE)
    used = [float(found.runs["utilisation"][0]) for found in (with_links, with_netem)]
    assert used[1] == pytest.approx(used[0], rel=TOLERANCE)
    # What netem does not tell is not there.
    assert with_netem.links.height == with_netem.queues.height == 0
    assert with_netem.flows["loss_ratio"].null_count() == 1
    assert with_netem.flows["queue_delay_ms_mean"].null_count() == 1
    settings = with_netem.runs["settings"][0]
    report = settings.partition("netem in place of our links: ")[2]
    sent, dropped, lost = (int(part.split()[0]) for part in report.split(", "))
    assert sent > 10_000
    assert dropped > 0
    assert lost == 0
    assert with_netem.manifest["command"].endswith("--world kernel --virtual --router netem")


@requires.guest
@pytest.mark.timeout(300)
def test_netem_loses_at_random_and_reports_it(tmp_path: Path) -> None:
    _, found = figures(tmp_path, NETEM, "1%")
    report = found.runs["settings"][0].partition("netem in place of our links: ")[2]
    sent, _, lost = (int(part.split()[0]) for part in report.split(", "))
    assert lost / (sent + lost) == pytest.approx(0.01, rel=0.5)
    assert found.flows["retransmits"][0] > 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "queue = 50kb: netem's counts packets; write it so, as in queue = 34p"),
        (("--queue", "34p", "--set", "topology.forward.jitter=1ms"), "an impairment other than"),
        (("--queue", "34p", "--set", "topology.queue.kind=codel"), "netem's is drop-tail"),
        (("--queue", "34p", "--set", "flow.0.ends=weir"), "it is not the kernel's"),
        (("--queue", "34p", "--set", "topology.burst=20kb"), "a token bucket"),
    ],
)
def test_what_netem_cannot_stand_in_for_is_refused(
    invoke: Invoke, words: tuple[str, ...], said: str
) -> None:
    guest = ("--world", "kernel", "--virtual", "--router", "netem")
    result = invoke("compare", "reno", *words, *guest, "--dry-run")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "router netem: flow 'flow0': " in result.stderr
    assert said in result.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--router", "netem"),
            "--router netem: only guests have it; add --world kernel --virtual",
        ),
        (("--world", "kernel", "--router", "netem"), "add --world kernel --virtual"),
        (("--router", "cisco"), "--router cisco: unknown; allowed: weir, netem"),
    ],
)
def test_a_router_that_is_not_there(invoke: Invoke, words: tuple[str, ...], said: str) -> None:
    result = invoke("compare", "reno", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


@requires.guest
def test_netem_records_no_packets(invoke: Invoke, tmp_path: Path) -> None:
    guest = ("--queue", "34p", "--world", "kernel", "--virtual", "--router", "netem")
    result = invoke("compare", "reno", *guest, "--pcap", tmp_path / "x")
    assert result.exit_code == 2
    assert "world kernel-netem records no packets" in result.stderr
