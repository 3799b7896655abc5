"""Packet scripts in a guest: one boot for all of them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from weir.guest import world
from weir.guest.job import JOB
from weir.guest.machine import Machine
from weir.guest.script_files import Departure, ScriptFile
from weir.kernel import cache

_SEED = 1
"""Initial sequence numbers and ports depend on it; scripts do not."""

Run = Callable[[Sequence[ScriptFile]], list[Departure | None]]


def prepared(stack: str | None) -> tuple[str, Run]:
    """Returns the name of the guest's kernel, and what runs scripts there.

    Raises:
        KernelError: there is no guest kernel.
    """
    kernel = cache.needed()

    def run(files: Sequence[ScriptFile]) -> list[Departure | None]:
        texts = [file.path.read_text(encoding="utf-8") for file in files]
        asked = {"packet_scripts": texts, "stack": stack}
        with tempfile.TemporaryDirectory(prefix="weir-guest-") as folder:
            job = Path(folder)
            (job / JOB).write_text(json.dumps(asked), encoding="utf-8")
            status = world.boot(kernel, job, Machine(_SEED))
        return [None if found is None else tuple(found) for found in status["departures"]]

    return f"kernel-{kernel.version}", run
