"""Runs sent to another executor in batches, so that many short runs share a message's cost.

A batch takes about half a second, whatever a run does: long enough for the way there and back to
cost little, short enough that little is lost with a worker. How long runs take is learned from the
batches that came back. Towards the end batches shrink, so that all workers end together (guided
self-scheduling, Polychronopoulos and Kuck 1987).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from threading import RLock
from typing import Any

import polars as pl

from weir.base.errors import ClusterError, RunError

Tables = Mapping[str, pl.DataFrame]

Work = tuple[Callable[..., Tables], tuple[Any, ...]]
"""A function that makes tables, and its arguments."""

BATCH_S = 0.5
_MOST_IN_A_BATCH = 64
_BATCHES_PER_SLOT = 2
"""One is being worked on while the next is already there."""
_MOST_WANTED = 4096
_WEIGHT_OF_NEWS = 0.5
_CANCELLED = "its scheduler is gone, or a user cancelled the runs there"


@dataclass(frozen=True, slots=True)
class Ended:
    """Result of a batch: for each run its tables, or its error."""

    results: list[Tables | str]
    seconds: float


def run_batch(works: list[Work], check: Callable[[], None]) -> Ended:
    """Runs a batch on a worker, unless `check` raises.

    A run that fails does not affect the others.
    """
    check()
    began = time.monotonic()
    return Ended([_result(*work) for work in works], time.monotonic() - began)


def _result(function: Callable[..., Tables], args: tuple[Any, ...]) -> Tables | str:
    try:
        return function(*args)
    except Exception as error:
        return str(error) or type(error).__name__


@dataclass(eq=False, slots=True)
class _Request:
    """A requested run."""

    work: Work
    answer: Future[Tables] = field(default_factory=Future)
    alone: bool = False
    """Whether it has a batch to itself, because one that it was in killed workers."""


class Batches(Executor):
    """Groups what is submitted for `pool`, whose `slots` work at the same time.

    `killed` tells from the exception of a batch that workers died of it. Such a batch is taken
    apart, so that only the run that did it fails. Any other exception of a batch means that nothing
    can be expected of the pool any more: all that is outstanding fails with a `ClusterError`.
    """

    def __init__(
        self,
        pool: Executor,
        slots: int,
        *,
        check: Callable[[], None],
        killed: Callable[[BaseException], bool],
    ) -> None:
        self.slots = slots
        self._pool = pool
        self._check = check
        self._killed = killed
        self._lock = RLock()
        self._queue: deque[_Request] = deque()
        self._out: dict[Future[Ended], list[_Request]] = {}
        self._run_s: float | None = None
        self._end: ClusterError | None = None

    @property
    def wanted(self) -> int:
        """How many runs should be outstanding, so that no slot waits and tables do not pile up."""
        ahead = 2 * _BATCHES_PER_SLOT * self.slots * self._usual
        return max(_BATCHES_PER_SLOT, min(ahead, _MOST_WANTED))

    def submit(  # type: ignore[override]
        self, function: Callable[..., Tables], /, *args: Any
    ) -> Future[Tables]:
        """Requests a run; it is sent when its batch is full, or when a worker is idle."""
        request = _Request((function, args))
        with self._lock:
            if self._end is not None:
                request.answer.set_exception(self._end)
                return request.answer
            self._queue.append(request)
            if not self._out or len(self._queue) >= self._usual:
                self._send()
        return request.answer

    def abandon(self, reason: ClusterError) -> None:
        """Gives up: all outstanding and later requests fail with `reason`."""
        with self._lock:
            self._end = self._end or reason
            left = [*self._queue, *(request for batch in self._out.values() for request in batch)]
            self._queue.clear()
            self._out = {future: [] for future in self._out}
        for request in left:
            request.answer.set_exception(self._end)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002
        """Cancels outstanding requests: after a shutdown no answer is needed."""
        self.abandon(ClusterError("cancelled"))
        # Not where runs are given up, which may be in the pool's own thread.
        for future in [*self._out]:
            future.cancel()

    @property
    def _usual(self) -> int:
        """How many runs a batch should have."""
        if self._run_s is None:
            return 1
        return max(1, min(_MOST_IN_A_BATCH, round(BATCH_S / max(self._run_s, 1e-6))))

    def _send(self) -> None:
        """Sends batches while there are requests and free slots."""
        most = _BATCHES_PER_SLOT * self.slots
        while self._queue and len(self._out) < most:
            batch = self._next(min(self._usual, -(-len(self._queue) // most)))
            future = self._pool.submit(run_batch, [request.work for request in batch], self._check)
            self._out[future] = batch
            future.add_done_callback(self._ended)

    def _next(self, size: int) -> list[_Request]:
        batch = [self._queue.popleft()]
        while len(batch) < size and self._queue and not (batch[0].alone or self._queue[0].alone):
            batch.append(self._queue.popleft())
        return batch

    def _ended(self, future: Future[Ended]) -> None:
        with self._lock:
            batch = self._out.pop(future, [])
        if not batch:  # given up meanwhile
            return
        error = ClusterError(_CANCELLED) if future.cancelled() else future.exception()
        if error is None:
            self._answer(batch, future.result())
        elif self._killed(error):
            self._take_apart(batch, error)
        else:
            self._lose(batch, error)
        with self._lock:
            self._send()

    def _answer(self, batch: list[_Request], ended: Ended) -> None:
        run_s = ended.seconds / len(batch)
        with self._lock:
            before = run_s if self._run_s is None else self._run_s
            self._run_s = before + _WEIGHT_OF_NEWS * (run_s - before)
        for request, result in zip(batch, ended.results, strict=True):
            if isinstance(result, str):
                request.answer.set_exception(RunError(result))
            else:
                request.answer.set_result(result)

    def _take_apart(self, batch: list[_Request], error: BaseException) -> None:
        with self._lock:
            if len(batch) > 1 and self._end is None:
                for request in batch:
                    request.alone = True
                self._queue.extendleft(reversed(batch))
                return
        for request in batch:
            request.answer.set_exception(RunError(str(error)))

    def _lose(self, batch: list[_Request], error: BaseException) -> None:
        reason = error if isinstance(error, ClusterError) else _cluster_error(error)
        self.abandon(reason)
        for request in batch:
            request.answer.set_exception(self._end or reason)


def _cluster_error(error: BaseException) -> ClusterError:
    return ClusterError(f"runs came back with {type(error).__name__}: {error}")
