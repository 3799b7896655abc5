"""Cases in which something happens when the controller enters a phase.

A first run without that event finds the time. The second run has the same seed, so it is equal up
to the event.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from weir.base.errors import InputError
from weir.conform.cases.model import Trigger
from weir.running.runner import execute
from weir.scenario.source import Source

PLACE = "{trigger}"
"""What stands for the time in the keys of a case."""


class NoTriggerError(InputError):
    """The phase does not occur."""


def placed(source: Source, trigger: Trigger) -> Source:
    """The source with the time of the trigger in its keys.

    Raises:
        NoTriggerError: the first run has no such phase.
    """
    without = tuple((key, text) for key, text in source.overrides if PLACE not in text)
    first = replace(source, overrides=without).at({})
    samples = execute(first, first.seed, source.world)["samples"]
    starts = _starts(samples.filter(pl.col("flow") == 0), trigger.phase)
    if len(starts) < trigger.occurrence:
        raise NoTriggerError(f"the controller has no phase {trigger.phase} in the first run")
    at = f"{round(starts[trigger.occurrence - 1] * 1e6)}us"
    keys = tuple((key, text.replace(PLACE, at)) for key, text in source.overrides)
    return replace(source, overrides=keys)


def _starts(samples: pl.DataFrame, phase: str) -> list[float]:
    rows = samples.sort("t_s").select(
        "t_s", begins=(pl.col("phase") == phase) & (pl.col("phase").shift() != phase)
    )
    return rows.filter("begins")["t_s"].to_list()
