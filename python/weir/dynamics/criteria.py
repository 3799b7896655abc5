"""What counts as a fair division and as capacity taken back, unless a caller says otherwise.

The constants stand apart from the functions of `dynamics`, whose imports take longer than a report
about single flows should wait.
"""

from __future__ import annotations

from typing import Literal

EPSILON = 0.2
HOLD_S = 5.0
SHORTEST_BIN_S = 0.1
COARSE_BIN_S = 1.0
"""A second bin, over which the oscillations of usual algorithms average out."""
RECLAIMED = 0.9

Rule = Literal["ratio", "share"]
