"""Runs in batches, over a pool that a test plays."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import polars as pl
import pytest

from weir.base.errors import ClusterError, RunError
from weir.running.batches import BATCH_S, Batches, Ended, Work, run_batch


class KilledError(Exception):
    """What the pool says when a batch has killed its workers."""


class Pool(Executor):
    """Keeps what is submitted until a test answers it."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[Work], Future[Any]]] = []

    def submit(self, function: Any, /, *args: Any, **_: Any) -> Future[Any]:
        assert function is run_batch
        self.asked.append((args[0], Future()))
        return self.asked[-1][1]

    def sizes(self) -> list[int]:
        return [len(works) for works, _ in self.asked]

    def answer(self, seconds_per_run: float) -> None:
        """Ends the oldest batch, whose runs took so long each."""
        works, future = self.asked.pop(0)
        results = [function(*args) for function, args in works]
        future.set_result(Ended([*results], seconds_per_run * len(works)))

    def fail(self, error: Exception) -> None:
        self.asked.pop(0)[1].set_exception(error)


def run(number: int) -> dict[str, pl.DataFrame]:
    return {"flows": pl.DataFrame({"flow": [number]})}


def batches(pool: Pool, slots: int = 2, check: Callable[[], None] = lambda: None) -> Batches:
    return Batches(pool, slots, check=check, killed=lambda error: isinstance(error, KilledError))


def test_batches_grow_to_half_a_second_and_shrink_at_the_end() -> None:
    pool = Pool()
    executor = batches(pool)
    answers = [executor.submit(run, number) for number in range(100)]
    assert pool.sizes() == [1, 1, 1, 1], "how long a run takes is not known yet"
    sizes = []
    while pool.asked:
        sizes.append(pool.sizes()[0])
        pool.answer(BATCH_S / 10)
    assert max(sizes) == 10
    assert sizes[-1] == 1
    assert sum(sizes) == 100
    assert [answer.result(0)["flows"]["flow"][0] for answer in answers] == list(range(100))


@pytest.mark.parametrize(("run_s", "most"), [(BATCH_S / 10, 10), (1e-9, 64), (60.0, 1)])
def test_as_many_runs_are_wanted_as_keep_all_slots_at_work(run_s: float, most: int) -> None:
    pool = Pool()
    executor = batches(pool)
    _ = executor.submit(run, 1)
    pool.answer(run_s)
    assert executor.wanted == 2 * 2 * 2 * most
    executor.slots = 0
    assert executor.wanted > 0


def test_a_batch_that_kills_workers_is_taken_apart() -> None:
    pool = Pool()
    executor = batches(pool, slots=1)
    first, second = (executor.submit(run, number) for number in range(2))
    pool.answer(BATCH_S / 10)
    pool.answer(BATCH_S / 10)
    assert first.done()
    assert second.done()
    answers = [executor.submit(run, number) for number in range(8)]
    pool.answer(BATCH_S / 10)
    assert (together := pool.sizes()[0]) > 1
    pool.fail(KilledError("it died"))
    while pool.asked:
        function_and_args, _ = pool.asked[0]
        if function_and_args[0][1] == (3,):
            pool.fail(KilledError("it died"))
        else:
            pool.answer(BATCH_S / 10)
    assert together <= 4
    failed = [number for number, answer in enumerate(answers) if answer.exception(0)]
    assert failed == [3]
    assert isinstance(answers[3].exception(0), RunError), "the others go on"


def test_any_other_end_of_a_batch_is_the_end_of_all() -> None:
    pool = Pool()
    executor = batches(pool)
    answers = [executor.submit(run, number) for number in range(9)]
    pool.fail(ModuleNotFoundError("no weir here"))
    answers.append(executor.submit(run, 9))
    for answer in answers:
        with pytest.raises(ClusterError, match="ModuleNotFoundError: no weir here"):
            answer.result(0)
    executor.shutdown()
    assert all(future.cancelled() for _, future in pool.asked)


def test_a_shutdown_cancels_the_answers() -> None:
    pool = Pool()
    with batches(pool) as executor:
        answer = executor.submit(run, 1)
    assert isinstance(answer.exception(0), ClusterError)


def test_a_run_that_fails_spares_the_others_of_its_batch() -> None:
    ended = run_batch([(run, (1,)), (run, ()), (run, (2,))], lambda: None)
    one, failed, other = ended.results
    assert isinstance(failed, str)
    assert "missing" in failed
    assert not isinstance(one, str)
    assert not isinstance(other, str)
    assert (one["flows"]["flow"][0], other["flows"]["flow"][0]) == (1, 2)


def test_nothing_is_done_where_the_check_refuses() -> None:
    def refuse() -> None:
        raise ClusterError("not here")

    with pytest.raises(ClusterError, match="not here"):
        run_batch([(run, (1,))], refuse)
