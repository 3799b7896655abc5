"""The table of an advice, for a terminal and for a report."""

from __future__ import annotations

from weir.advice.decision import Decision, Role
from weir.advice.predictions import Prediction
from weir.base.grid import Grid
from weir.estimates.quantity import Quantity
from weir.modelling.measured import Flow

HEADERS = (
    "controller",
    "goodput, Mbit/s",
    "gain",
    "RTT P95, ms",
    "completion, s",
    "CUBIC next to it",
    "values are",
    "advice",
)
NOTE = (
    "In brackets: 95 % intervals, of one transfer where it is predicted, of the mean where it was "
    "measured. CUBIC next to it: the goodput of a CUBIC flow on the same path, over its goodput "
    "next to another CUBIC flow."
)


def cells(decision: Decision, one: Prediction) -> list[str]:
    """The cells of an option, in the order of the headers."""
    role = decision.role(one)
    return [
        one.option.name,
        _text(one.goodput_mbps),
        _text(one.gain),
        _text(one.rtt_ms_p95),
        _text(one.fct_s),
        "–" if one.neighbour is None else f"{one.neighbour:.2f}",
        "measured" if one.runs else "predicted",
        "" if role is Role.OTHER else str(role),
    ]


def ranking(decision: Decision, flow: Flow) -> Grid:
    """The options, the one with the most goodput first."""
    rows = [cells(decision, one) for one in decision.found]
    stack = f"{flow.stack}{', assumed' if flow.is_assumed else ''}"
    note = f"{NOTE} Gain: goodput over that of {stack}, which was measured."
    is_all = all(one.runs for one in decision.found)
    title = "Measured on the path" if is_all else "Predicted on the model of the path"
    return Grid(title, HEADERS, rows, notes=2, note=note)


def _text(quantity: Quantity | None) -> str:
    return quantity.text(3) if quantity else "–"
