"""The server of `weir ui`, for tests that ask it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from weir.laboratory.explorer import Explorer
from weir.laboratory.job import Job
from weir.laboratory.page import PageFile
from weir.laboratory.server import Server


@contextmanager
def serving(
    files: dict[str, PageFile], explorer: Explorer | None, job: Job | None = None
) -> Iterator[Server]:
    """A server that runs until the block ends."""
    with Server(0, files, explorer, job) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
