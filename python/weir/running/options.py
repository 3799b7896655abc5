"""Options of everything that runs a plan. It imports nothing large."""

from __future__ import annotations

from concurrent.futures import Executor
from pathlib import Path
from typing import Annotated

from weir.base.options import MEASUREMENT, OUTPUT, Option

RESULTS = "results"
"""Default results folder, relative to the working directory."""

Out = Annotated[
    str | Path, Option("Parent of the new result directory.", OUTPUT, metavar="DIR", short="-o")
]
Jobs = Annotated[
    int | None,
    Option(
        "Number of runs in parallel.",
        MEASUREMENT,
        default_text="one per core; 1 in real time",
        short="-j",
        min=1,
    ),
]
Resume = Annotated[
    bool, Option("Continue an interrupted call with the same arguments.", MEASUREMENT)
]
RunsOn = Annotated[
    Executor | None,
    Option("What runs the simulations, in place of threads of this process.", python_only=True),
]
Dask = Annotated[
    str | None,
    Option(
        "Send the runs to a Dask cluster: its scheduler's address, or its scheduler file.",
        MEASUREMENT,
        metavar="ADDRESS|FILE",
    ),
]
ShowProgress = Annotated[
    bool, Option("Whether to show a bar on a terminal or in a notebook.", python_only=True)
]
Pcap = Annotated[
    str | Path | None,
    Option(
        "Record the packets at both ends of the bottleneck, one pcapng file per run, in the "
        "worlds `sim` and `kernel`.",
        OUTPUT,
        metavar="DIR",
    ),
]
