"""What `weir tune` works on: a scenario with ranges, its default, and networks to judge on."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from weir import _native
from weir.base.errors import InputError
from weir.scenario.source import Source, Sweep, is_stack, parse_sweep
from weir.scenario.sweep import without_labels
from weir.search import space as spaces
from weir.search.space import Keys, Space

_HEADERS_BYTES = 52
"""IP, TCP and timestamps."""
_MSS = 1448
_WINDOW = re.compile(r"\b(go-back-n|selective-repeat|none)\(\{")


@dataclass(frozen=True)
class Problem:
    """The networks, and what varies on them."""

    source: Source
    space: Space
    sweep: Sweep
    default: Keys | None
    """What the answer is compared with; None if its scenario is not valid."""
    seed: int

    @classmethod
    def of(
        cls, source: Source, file_keys: Mapping[str, Any], sweep: Sweep, default: str | None
    ) -> Problem:
        """Takes the ranges out of a source's overrides.

        Raises:
            InputError, ScenarioError: a range or a key is not valid.
        """
        varied, fixed = spaces.split(source.overrides)
        space = spaces.space({**varied, **file_keys})
        plain = replace(source, overrides=fixed)
        base = plain.effective()
        own = space.default()
        if default is not None:
            own = {**own, "flow.0.stack": default}
            plain.at(own, [default], base)
        bare = {key: re.sub(r"\([^()]*\)", "", stack) for key, stack in own.items()}
        known = next((keys for keys in (own, bare) if _is_valid(plain, keys)), None)
        middle = space.at([0.5] * len(space.genes))
        plain.at(middle, list(middle.values()), base)
        swept, _ = without_labels({**base.sweep, **sweep})
        return cls(plain, space, swept, known, base.seed)

    @property
    def window(self) -> str:
        """The bandwidth-delay product in words, if a window varies on a path with one."""
        stacks = [v.template for v in self.space.keys if is_stack(v.key)]
        fields = self.source.effective().fields
        rate, rtt = (fields["topology"].get(name) for name in ("rate", "rtt"))
        has_window = any(_WINDOW.search(stack) for stack in stacks)
        if not has_window or rate is None or rtt is None:
            return ""
        bits = _native.parse_quantity("rate", str(rate)) * _native.parse_quantity("time", str(rtt))
        packet = int(fields["flow"][0].get("mss") or _MSS) + _HEADERS_BYTES
        product = bits / 8 / packet
        return f"The bandwidth-delay product is {product:.1f} segments of {packet} bytes"


def held_out(sweep: Sweep, given: Sequence[str]) -> Sweep:
    """The networks that judge: those given, or those between neighbouring values of the sweep."""
    if given:
        return {**sweep, **parse_sweep(given, "--held-out")}
    between = {
        key: tuple(m for a, b in itertools.pairwise(values) if (m := _between(key, a, b)))
        for key, values in sweep.items()
    }
    return {key: between[key] or values for key, values in sweep.items()}


def _between(key: str, one: str, other: str) -> str | None:
    """The quantity in the middle of two."""
    for low, high in ((one, other), (other, one)):
        try:
            (gene,) = spaces.space({key: f"{{{low}..{high}}}"}).genes
        except InputError:
            continue
        middle = gene.text(0.5)
        return middle if gene.is_number and middle not in (one, other) else None
    return None


def _is_valid(source: Source, keys: Keys) -> bool:
    try:
        source.at(keys, list(keys.values()))
    except (_native.ScenarioError, InputError):
        return False
    return True
