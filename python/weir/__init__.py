"""Weir: a laboratory for reliable transport and congestion control.

>>> import weir
>>> results = weir.compare("reno", "bbr", rate="10mbit", rtt="40ms", duration="20s", repeat=3)
>>> delay = [results.estimate(stack, "queue_delay_ms_mean").mean for stack in ("reno", "bbr")]
>>> delay[1] < delay[0]
True
>>> results.flows.height
6
"""

from typing import TYPE_CHECKING

from weir._native import ControllerError, ScenarioError, version
from weir.base import lazy
from weir.base.errors import InputError, RunError, RunInterruptedError, StoreError, WeirError

if TYPE_CHECKING:
    from weir.api.results import Results, load
    from weir.api.studies import study
    from weir.api.verbs import compare, run
    from weir.controllers.congestion import CongestionControl

__all__ = [
    "CongestionControl",
    "ControllerError",
    "InputError",
    "Results",
    "RunError",
    "RunInterruptedError",
    "ScenarioError",
    "StoreError",
    "WeirError",
    "__version__",
    "compare",
    "load",
    "run",
    "study",
]

__version__ = version()

if not TYPE_CHECKING:  # a checker that saw this would let any name pass
    # These bring the libraries of data frames and statistics along, and a file transfer needs none.
    _HOMES = {
        "CongestionControl": "weir.controllers.congestion",
        "Results": "weir.api.results",
        "compare": "weir.api.verbs",
        "load": "weir.api.results",
        "run": "weir.api.verbs",
        "study": "weir.api.studies",
    }

    __getattr__, __dir__ = lazy.names(__name__, _HOMES)
