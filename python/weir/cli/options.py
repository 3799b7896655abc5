"""The options that only the command line has, and several verbs share."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from weir.base.errors import InputError
from weir.base.options import MEASUREMENT, OUTPUT, Option, flag
from weir.kernel.recipe import DEFAULT_SERIES

OURS, GUESTS_OWN = ROUTERS = ("weir", "netem")
"""What shapes the traffic between the hosts in a guest."""


def virtual(run: str, panel: str) -> Option:
    """`--virtual`, whose help begins with `run`."""
    about = "in a guest in virtual time, without root. `weir stack kernel` builds its kernel."
    return Option(f"{run} {about}", panel)


Json = Annotated[bool, Option("Print one JSON object on stdout instead of tables.", OUTPUT)]
Quiet = Annotated[bool, Option("No progress bar and no messages on stderr.", OUTPUT, short="-q")]
DryRun = Annotated[bool, Option("List the runs without starting them.", OUTPUT)]
NoReport = Annotated[bool, Option("Draw no report.", OUTPUT)]
Open = Annotated[bool, Option("Open the page in the browser.", OUTPUT, flag="--open")]
Sets = Annotated[
    list[str] | None,
    Option(
        "Set any key of the scenario; may be repeated.",
        MEASUREMENT,
        metavar="KEY=VALUE",
        flag="--set",
    ),
]
Sweep = Annotated[
    list[str] | None,
    Option(
        "Run once per value of a key; several sweeps form their cross product.",
        MEASUREMENT,
        metavar="KEY=A,B,C",
    ),
]
Virtual = Annotated[bool, virtual("With --world kernel: run", MEASUREMENT)]
Kernel = Annotated[
    str | None,
    Option(
        "With {virtual}: version of the guest kernel, as in 6.12.",
        MEASUREMENT,
        metavar="VERSION",
        default_text=DEFAULT_SERIES,
    ),
]
Router = Annotated[
    str,
    Option(
        "With {virtual}: traffic shaper. netem is the guest kernel's own, to check Weir's.",
        MEASUREMENT,
        metavar="|".join(ROUTERS),
    ),
]


def check_output(file: Path | None) -> None:
    """Refuses, before anything runs, a path that could not be a file afterwards.

    Raises:
        InputError: it is a directory, or is in none.
    """
    if file is not None and (file.is_dir() or not file.absolute().parent.is_dir()):
        what = "is a directory" if file.is_dir() else "its directory does not exist"
        raise InputError(f"{file}: {what}; give the path of a file to write")


@contextmanager
def as_typed() -> Iterator[None]:
    """Names arguments in errors as options: `--max-wait forever:` for `max_wait='forever':`."""
    try:
        yield
    except InputError as error:
        arguments, colon, text = str(error).partition(": ")
        if not _ARGUMENTS.fullmatch(arguments):
            raise
        options = [
            flag(name) + (f" {shlex.quote(value)}" if value else "")
            for name, value in _ARGUMENT.findall(arguments)
        ]
        raise type(error)(f"{' '.join(options)}{colon}{text}") from None


_ARGUMENT = re.compile(r"([a-z]+(?:_[a-z]+)*)(?:='([^']*)')?")
_ARGUMENTS = re.compile(rf"{_ARGUMENT.pattern}(, {_ARGUMENT.pattern})*")
