"""Weir: a laboratory for reliable transport and congestion control.

>>> import weir
>>> results = weir.compare("reno", "cubic", rate="10mbit", rtt="40ms")  # doctest: +SKIP
>>> results.flows  # doctest: +SKIP
"""

from weir._native import ScenarioError, version
from weir.api import compare, run
from weir.errors import InputError, RunError, RunInterruptedError, StoreError, WeirError
from weir.results import Results, load
from weir.studies import study

__all__ = [
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
