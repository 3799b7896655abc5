"""Names that a person gives to stacks: `fast=cubic(beta=0.8)`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from weir.base.errors import InputError
from weir.scenario.source import Source, split_list

EXAMPLE = "name=stack, as in fast=cubic(beta=0.8)"

_WRITTEN = re.compile(r"([^=(/:]*)=(.*)", re.DOTALL)
"""What stands before an `=` that is in no parentheses, path or parameter."""
_LABEL = re.compile(r"\w(?:[\w .+-]*[\w.+-])?")
_LONGEST = 40
_PROBE = """
name = "stacks"
[topology]
kind = "dumbbell"
[[flow]]
stack = "reno"
"""


@dataclass(frozen=True, slots=True)
class Named:
    """A stack with the name that tables and figures have for it."""

    name: str
    """The label; without one, the stack as it was written."""
    stack: str
    about: str = ""
    """What the name stands for, if the stack does not say it."""

    @property
    def written(self) -> str:
        """As a person writes it."""
        return self.stack if self.name == self.stack else f"{self.name}={self.stack}"


def named(text: str) -> Named:
    """Parses a stack that may have a label.

    >>> named("fast=cubic(beta=0.8)")
    Named(name='fast', stack='cubic(beta=0.8)', about='')
    >>> named("cubic(beta=0.8)")
    Named(name='cubic(beta=0.8)', stack='cubic(beta=0.8)', about='')

    Raises:
        InputError: the label, or the stack after it, is not valid.
    """
    found = _WRITTEN.fullmatch(text)
    if found is None:
        return Named(text, text)
    label, stack = found[1].strip(), found[2].strip()
    if not label or not stack:
        missing = "stack after" if label else "label before"
        raise InputError(f"{text}: the {missing} '=' is missing; write {EXAMPLE}")
    if not _LABEL.fullmatch(label) or len(label) > _LONGEST:
        raise InputError(
            f"{text}: label '{label}' is not allowed; use letters, digits, spaces and any of "
            f". _ + -, at most {_LONGEST} of them"
        )
    return Named(label, stack)


def each_once(given: Iterable[str]) -> list[Named]:
    """Parses stacks that are compared.

    Raises:
        InputError: one is not valid, or a label or a stack is given twice.
    """
    found: list[Named] = []
    for text in given:
        one = named(text)
        if any(one.name == other.name for other in found):
            raise InputError(f"{one.name} is given twice")
        again = next((other for other in found if one.stack == other.stack), None)
        if again is not None:
            raise InputError(f"{text}: {one.stack} is given twice, as {again.name} before")
        found.append(one)
    return found


def checked(given: Sequence[str], world: str) -> list[Named]:
    """The stacks of `--stack A,B --stack C`, each once, each checked, perhaps with labels.

    Raises:
        InputError, ScenarioError: one is not a stack of this world; the message says why.
    """
    Source(_PROBE, "--stack").in_world(world)
    texts = [text for one in given for text in split_list(one)]
    if not all(texts):
        raise InputError(f"--stack {','.join(given)}: a name is empty; write it as A,B,C")
    try:
        stacks = each_once(texts)
    except InputError as error:
        raise InputError(f"--stack: {error}") from None
    for one in stacks:
        probe = Source(_PROBE, "--stack", (("flow.0.stack", one.stack),))
        probe.in_world(world).at({})
    return stacks


def labels_of(stacks: Iterable[Named]) -> dict[str, str]:
    """Returns what the names stand for that are not the stacks themselves."""
    labelled = (one for one in stacks if one.about or one.name != one.stack)
    return {one.name: one.about or one.stack for one in labelled}


def explained(cases: Sequence[Mapping[str, object]]) -> str:
    """Says what the labels of the cases of results stand for; empty without labels."""
    known: dict[str, str] = {}
    for case in cases:
        labels = case.get("labels")
        known |= labels if isinstance(labels, dict) else {}
    return "; ".join(f"{label} is {stack}" for label, stack in known.items())
