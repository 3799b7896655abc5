"""Stacks of other projects in the simulator, from the command line."""

from __future__ import annotations

import json

import pytest
import requires
from conftest import Invoke

_SMALL = ("--rate", "10mbit", "--rtt", "40ms", "--duration", "2s", "--repeat", "2")


def _rows(invoke: Invoke, *words: str) -> str:
    result = invoke("compare", *words, *_SMALL, "--json")
    requires.foreign_stacks(result.output)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_hosted_stacks_are_compared_with_ours_and_repeat_exactly(invoke: Invoke) -> None:
    stacks = ("rack/cubic", "quinn/cubic", "noq/cubic")
    printed = _rows(invoke, *stacks)
    rows = json.loads(printed)["rows"]
    assert [row["stack"] for row in rows] == list(stacks)
    assert all(row["goodput_mbps"]["mean"] > 7 for row in rows)
    assert _rows(invoke, *stacks) == printed


def test_controllers_of_ours_in_hosts_are_compared_or_refused(invoke: Invoke) -> None:
    small = ("--rate", "10mbit", "--rtt", "40ms", "--duration", "2s", "--repeat", "2", "--json")
    result = invoke("compare", "rack/vegas", "noq/weir-vegas", "quinn/weir-vegas", *small)
    requires.foreign_stacks(result.output)
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["rows"]
    assert [row["stack"] for row in rows] == ["rack/vegas", "noq/weir-vegas", "quinn/weir-vegas"]
    refused = invoke("compare", "quinn/weir-bbr", *small)
    assert refused.exit_code == 2
    assert "quinn 0.11 cannot run 'bbr': it ignores the pacing rate" in refused.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("quinn/cubic", "--world", "udp"), "only world sim hosts this stack"),
        (("noq/cubik",), "did you mean noq/cubic?"),
        (("noq/cubic", "--set", "flow.0.mss=1000"), "1200 to 65507 bytes"),
        (("noq/cubic", "--set", "flow.0.workload.kind=on-off"), "set a rate"),
    ],
)
def test_what_a_stack_cannot_do_is_refused(
    invoke: Invoke, words: tuple[str, ...], message: str
) -> None:
    _rows(invoke, "quinn/cubic")
    result = invoke("compare", *words, *_SMALL)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
