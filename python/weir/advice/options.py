"""Options of an advice: what is tried, and how often."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from weir import _native
from weir.advice import choices
from weir.base.errors import InputError
from weir.base.options import MEASUREMENT, Option
from weir.modelling.measured import Flow
from weir.scenario.labels import each_once
from weir.scenario.source import split_list


@dataclass(frozen=True, kw_only=True)
class AdviceOptions:
    """What is tried on the path. Lists are text with commas, quantities text with a unit."""

    stacks: Annotated[
        str | None,
        Option(
            "Controllers to try, also with a recovery scheme, as in `rack/bbr`, or with a label.",
            MEASUREMENT,
            metavar="NAME,...",
            default_text="eight of Linux, bbr3 and copa",
        ),
    ] = None
    size: Annotated[
        str | None,
        Option(
            "Bytes to transfer, as in `10mb`.",
            MEASUREMENT,
            metavar="SIZE",
            default_text="as measured",
        ),
    ] = None
    windows: Annotated[
        str | None, Option("Receiver's windows to try.", MEASUREMENT, metavar="SIZE,...")
    ] = None
    queues: Annotated[
        str | None,
        Option(
            "Queues of the bottleneck to try: a size or a discipline, as in `1bdp,fq-codel`.",
            MEASUREMENT,
            metavar="QUEUE,...",
        ),
    ] = None
    mss: Annotated[
        str | None, Option("Largest segments to try.", MEASUREMENT, metavar="BYTES,...")
    ] = None
    streams: Annotated[
        str | None,
        Option(
            "Numbers of connections to try that share the transfer.", MEASUREMENT, metavar="N,..."
        ),
    ] = None
    repeat: Annotated[int, Option("Runs each.", MEASUREMENT, short="-n", min=2)] = 8
    seed: Annotated[int, Option("Random seed.", MEASUREMENT, min=0)] = 1

    def names(self) -> list[str]:
        """Returns the controllers to try.

        Raises:
            InputError: there is no such controller, or the size is none.
        """
        self._check_size()
        names = _listed(self.stacks) or [*choices.KERNEL, *choices.OURS]
        try:
            stacks = each_once(names)
        except InputError as error:
            raise InputError(f"--stacks: {error}") from None
        for one in stacks:
            choices.refuse("--stacks", one.stack, "flow.0.stack")
        return names

    def settings(self) -> list[choices.Setting]:
        """Returns the settings to try that need no flow.

        Raises:
            InputError: a value is not allowed.
        """
        return [
            *choices.windows(_listed(self.windows)),
            *choices.queues(_listed(self.queues)),
            *choices.segments(_listed(self.mss)),
        ]

    def shared(self, flow: Flow) -> Iterator[choices.Setting]:
        """Yields the numbers of connections to try in place of the flow's one.

        Raises:
            InputError: a value is no such number, or the measured sender has its own rate.
        """
        return choices.streams(_listed(self.streams), flow, self.size)

    def _check_size(self) -> None:
        try:
            if self.size is not None and _native.parse_quantity("size", self.size) < 1:
                raise InputError(f"--size {self.size}: use at least one byte, as in 10mb")
        except ValueError as error:
            raise InputError(f"--size {error}") from None


def _listed(text: str | None) -> list[str]:
    return split_list(text) if text else []
