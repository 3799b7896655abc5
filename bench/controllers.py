"""What a controller in Python costs: `python -m bench.controllers`.

The same bulk flow over the same bottleneck, once under `reno` in Rust and once under the same
algorithm in `reno.py` next to this file; every segment is acknowledged, so that there are as many
calls as data packets. Each run is a process of its own, and of several the median counts.
"""

from __future__ import annotations

import json as json_
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer

from bench import command, measure
from weir.base.grid import Grid
from weir.cli import output, screen

RENO = Path(__file__).parent / "reno.py"
"""A whole controller in Python."""

_STACKS = {"native": "rack/reno", "Python": "rack/reno.py:Reno"}
_WHAT_COUNTS = (
    "CPU time of the whole run, simulator and tables included; one call of on_ack for each ACK."
)


def bench(
    repeat: Annotated[int, typer.Option(min=1, help="Runs per row; the median counts.")] = 3,
    duration: Annotated[str, typer.Option(help="Simulated time of a run.")] = "20s",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measures what a controller in Python costs per acknowledgement, next to the native one."""
    rows = [_row(kind, stack, duration, repeat) for kind, stack in _STACKS.items()]
    for row in rows:
        row["cpu_ratio_to_native"] = row["cpu_us_per_ack"] / rows[0]["cpu_us_per_ack"]
    if json:
        output.print_json("bench-controllers", rows)
        return
    headers = ("controller", "stack", "ACKs", "CPU s", "ACKs/s", "µs per ACK", "cost × native")
    cells = [
        (
            row["controller"],
            row["stack"],
            f"{row['acks']}",
            f"{row['cpu_s']:.2f}",
            f"{row['acks_per_cpu_s']:,.0f}",
            f"{row['cpu_us_per_ack']:.2f}",
            f"{row['cpu_ratio_to_native']:.1f}",
        )
        for row in rows
    ]
    title = f"A flow of 100 Mbit/s for {duration}, median of {repeat}"
    screen.show(Grid(title, headers, cells, names=2, note=_WHAT_COUNTS).rich())


def _row(kind: str, stack: str, duration: str, repeat: int) -> dict[str, Any]:
    runs = [measure.scenario(_scenario(stack, duration)) for _ in range(repeat)]
    acks, cpu_s = runs[0]["data_packets"], median(run["cpu_s"] for run in runs)
    return {
        "controller": kind,
        "stack": stack,
        "repeats": repeat,
        "acks": acks,
        "cpu_s": cpu_s,
        "acks_per_cpu_s": acks / cpu_s,
        "cpu_us_per_ack": 1e6 * cpu_s / acks,
    }


def _scenario(stack: str, duration: str) -> str:
    text = json_.dumps(RENO.read_text(encoding="utf-8"))
    return f"""
        name = "bench"
        [topology]
        rate = "100mbit"
        rtt = "20ms"
        queue = "1bdp"
        [[flow]]
        stack = "{stack}"
        delayed_ack = "off"
        [measure]
        duration = "{duration}"
        [controllers]
        "reno.py" = {text}
    """


if __name__ == "__main__":
    command.run(bench, "bench.controllers")
