"""Transfers as runs of a plan: one at a time, with tables like simulated ones."""

from __future__ import annotations

from typing import Protocol

import polars as pl

from weir.scenario.source import Effective
from weir.transfer.model import Network, Outcome, Transfer

Tables = dict[str, pl.DataFrame]

GIVEN_UP = "not tried: a transfer of this row took too long before"

_FLOWS = {
    "flow": pl.UInt32,
    "name": pl.String,
    "stack": pl.String,
    "completed": pl.Boolean,
    "failure": pl.String,
    "fct_s": pl.Float64,
    "took_s": pl.Float64,
    "file_bytes": pl.UInt64,
    "received_bytes": pl.UInt64,
    "send_cpu_s": pl.Float64,
    "receive_cpu_s": pl.Float64,
}
_EMPTY = {
    "samples": pl.Schema({"flow": pl.UInt32, "t_s": pl.Float64, "goodput_mbps": pl.Float64}),
    "links": pl.Schema({"monitored": pl.Boolean, "link": pl.String}),
    "requests": pl.Schema({"flow": pl.UInt32, "latency_ms": pl.Float64}),
    "events": pl.Schema({"t_s": pl.Float64}),
}


class TransferSite(Protocol):
    """What carries a transfer: a site."""

    def run(self, transfer: Transfer, network: Network, limit_s: float) -> Outcome:
        """Runs it and says what became of it."""
        ...


class TransferRunner:
    """Executes runs whose scenario is a transfer, as `runner.execute` does simulated ones.

    A row in which a transfer has taken too long is not tried again with files as large or larger.
    """

    def __init__(self, site: TransferSite) -> None:
        self._site = site
        self._given_up: dict[tuple[str, ...], int] = {}

    def __call__(self, scenario: Effective, *_: object) -> Tables:
        """Carries the file; a seed only tells repeats apart, for time here is real.

        Raises:
            WeirError: the network cannot be made here.
        """
        fields = scenario.fields
        transfer, network = Transfer(**fields["transfer"]), Network(**fields["network"])
        row = tuple(fields["row"])
        if transfer.size_bytes >= self._given_up.get(row, transfer.size_bytes + 1):
            outcome = Outcome(None, is_intact=False, received_bytes=0, failure=GIVEN_UP)
        else:
            outcome = self._site.run(transfer, network, fields["limit_s"])
            if outcome.timed_out:
                self._given_up[row] = transfer.size_bytes
        return tables(transfer, outcome)


def tables(transfer: Transfer, outcome: Outcome) -> Tables:
    """What a run leaves: one flow, whose completion time is that of an intact file."""
    flow = {
        "flow": 0,
        "name": "file",
        "stack": transfer.stack,
        "completed": outcome.is_intact,
        "failure": outcome.failure,
        "fct_s": outcome.seconds if outcome.is_intact else None,
        "took_s": outcome.seconds,
        "file_bytes": transfer.size_bytes,
        "received_bytes": outcome.received_bytes,
        "send_cpu_s": outcome.send_cpu_s,
        "receive_cpu_s": outcome.receive_cpu_s,
    }
    empty = {name: pl.DataFrame(schema=schema) for name, schema in _EMPTY.items()}
    return {
        "summary": pl.DataFrame({"flows": [1]}),
        "flows": pl.DataFrame([flow], schema=_FLOWS),
        **empty,
    }
