"""Cases of kind `script`: packets of the peer in, packets and windows of the stack out.

`RUNNER` is the one place where a runner of packet scripts is connected. It receives the script and
the stack and returns measured values by the names that the criteria use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

RunScript = Callable[[str, str], Mapping[str, float | None]]

RUNNER: RunScript | None = None


def run_script(script: str, stack: str) -> tuple[Mapping[str, float | None], str]:
    """The measured values, or why there are none."""
    if RUNNER is None:
        return {}, "this build has no runner of packet scripts"
    return RUNNER(script, stack), ""
