"""One plan that runs while the page shows how far it is."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from weir import _native
from weir.base.errors import WeirError
from weir.laboratory.explorer import Explorer
from weir.results.results import load
from weir.running import runner
from weir.scenario.sweep import Plan


class Job:
    """Runs a plan in a thread of its own, and then reads its results."""

    def __init__(self, plan: Plan, out: Path, jobs: int | None = None) -> None:
        self._plan, self._out, self._jobs = plan, out, jobs
        self._control = _native.RunControl()
        self._done = 0
        self._error: str | None = None
        self.explorer: Explorer | None = None
        self._thread = threading.Thread(target=self._work, name="weir-ui-job", daemon=True)

    def start(self) -> None:
        """Begins to run."""
        self._thread.start()

    def stop(self) -> None:
        """Breaks off what runs; finished runs are kept."""
        self._control.stop()
        if self._thread.ident is not None:
            self._thread.join()

    @property
    def state(self) -> dict[str, Any]:
        """How far it is, or why it failed."""
        if self._error is not None:
            return {"phase": "failed", "error": self._error}
        measure = self._plan.cases[0].scenario.fields["measure"]
        return {
            "phase": "running",
            "name": self._plan.name,
            "done": self._done,
            "total": len(self._plan.runs),
            "elapsed_s": self._control.elapsed_s,
            "duration_s": _native.parse_quantity("time", measure["duration"]),
        }

    def _work(self) -> None:
        try:
            path = runner.run_plan(
                self._plan, self._out, jobs=self._jobs, watch=self._watch, control=self._control
            )
            self.explorer = Explorer(load(path))
        except (WeirError, _native.ScenarioError, OSError) as error:
            self._error = str(error)

    def _watch(self, runs: int) -> None:
        if self._control.is_stopped:
            # As Ctrl-C in `weir run`: what has finished is kept.
            raise KeyboardInterrupt
        self._done += runs
