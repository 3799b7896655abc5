"""Shrinks a scenario that shows a failure: fewer keys, fewer events, rounder numbers, shorter.

Each step tries something simpler and keeps it if the failure is still there, until no step helps
(Zeller and Hildebrandt 2002, one change at a time). Keys are left out in their order, items of
lists from the last one, numbers are written with one digit, or with two. The order is fixed, so
that the result is too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from weir.search.space import Keys, plain

_NUMBER = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)(?=(?:[a-zA-Z]*|%)(?![\w.]))")
_DURATION = "measure.duration"
_WARMUP = "measure.warmup"
_MOST_ROUNDS = 6
_SHORTEST_S = 5.0
"""Shorter runs show how flows start, whatever else goes wrong."""


@dataclass
class Shrinker:
    """Simplifies keys as long as `fails` holds, with `most` checks at most."""

    fails: Callable[[Keys], bool]
    most: int
    checks: int = 0
    _known: dict[str, bool] = field(default_factory=dict)

    def shrink(self, keys: Keys) -> dict[str, str]:
        """The simplest keys that still fail."""
        best = dict(keys)
        for _ in range(_MOST_ROUNDS):
            before = best
            for step in (_without_keys, _without_items, _rounder):
                best = self._apply(step, best)
            if best == before:
                break
        # At last, so that what only a short run shows is not taken for the failure.
        return self._apply(_shorter, best)

    def _apply(
        self, step: Callable[[dict[str, str]], Iterator[dict[str, str]]], best: dict[str, str]
    ) -> dict[str, str]:
        """Restarts a step after each success, as what is left has changed."""
        while (simpler := next(filter(self._still, step(best)), None)) is not None:
            best = simpler
        return best

    def _still(self, keys: dict[str, str]) -> bool:
        name = repr(keys)
        if name not in self._known:
            if self.checks >= self.most:
                return False
            self.checks += 1
            self._known[name] = self.fails(keys)
        return self._known[name]


def _without_keys(keys: dict[str, str]) -> Iterator[dict[str, str]]:
    for key in keys:
        if key != _DURATION and key != _WARMUP and not key.endswith(".stack"):
            yield {name: value for name, value in keys.items() if name != key}


def _without_items(keys: dict[str, str]) -> Iterator[dict[str, str]]:
    for key, value in keys.items():
        if value.startswith("[") and "{" not in value:
            items = value.strip("[]").split(", ")
            for index in reversed(range(len(items))):
                if len(items) > 1:
                    rest = items[:index] + items[index + 1 :]
                    yield {**keys, key: f"[{', '.join(rest)}]"}


def _rounder(keys: dict[str, str]) -> Iterator[dict[str, str]]:
    for key, value in keys.items():
        if key.endswith(".stack"):
            continue
        for digits in (1, 2):
            found = _NUMBER.sub(lambda match, d=digits: _rounded(match[1], d), value)  # type: ignore[misc]
            if found != value:
                yield {**keys, key: found}


def _rounded(text: str, digits: int) -> str:
    return plain(float(f"{float(text):.{digits}g}"))


def _shorter(keys: dict[str, str]) -> Iterator[dict[str, str]]:
    """Half the time, and half the warm-up."""
    if _DURATION not in keys:
        return
    halved = dict(keys)
    for key in (_DURATION, _WARMUP):
        if key in keys:
            seconds = float(keys[key].removesuffix("s")) / 2
            halved[key] = f"{_rounded(str(seconds), 3)}s"
    if float(halved[_DURATION].removesuffix("s")) >= _SHORTEST_S:
        yield halved
