"""Options of commands that run in a guest in virtual time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from weir._native import parse_quantity
from weir.base.errors import InputError
from weir.base.options import Option
from weir.base.quantities import quantity
from weir.guest.machine import LEAST_MEMORY_MB, START_S

GROUP = "Virtual time"
"""Their group in `--help`."""

_MEGABYTE = 10**6
_FIRST_YEAR, _LAST_YEAR = 1971, 2200


@dataclass(frozen=True, kw_only=True)
class GuestOptions:
    """The guest of commands, and what limits them. Quantities are text with a unit."""

    out: Annotated[
        str | Path | None,
        Option(
            "Keep what was written in the working folder, in this folder.", GROUP, metavar="DIR"
        ),
    ] = None
    time_limit: Annotated[
        str, Option("End the commands after this virtual time.", GROUP, metavar="TIME")
    ] = "10min"
    wall_limit: Annotated[
        str | None, Option("End the guest after this real time.", GROUP, metavar="TIME")
    ] = None
    memory: Annotated[str, Option("Memory of the guest.", GROUP, metavar="SIZE")] = "768mb"
    kernel: Annotated[
        str | None,
        Option("Version of the guest kernel, as in 6.12.", GROUP, metavar="VERSION"),
    ] = None
    date: Annotated[
        str | None,
        Option(
            "The guest's date, as in 2026-11-25.", GROUP, metavar="DATE", default_text="2017-07-14"
        ),
    ] = None
    virtual_tsc: Annotated[
        bool,
        Option(
            "The instructions rdtsc and rdtscp read virtual time; all programs are slower.", GROUP
        ),
    ] = False

    def settings(self) -> dict[str, Any]:
        """Returns the keywords of `programs.run`.

        Raises:
            InputError: a quantity or the date is not valid.
        """
        limit = self.wall_limit
        return {
            "out": None if self.out is None else Path(self.out),
            "time_limit_s": quantity("time", "--time-limit", self.time_limit),
            "wall_limit_s": None if limit is None else quantity("time", "--wall-limit", limit),
            "memory_mb": self._megabytes(),
            "start_s": self._seconds(),
            "virtual_tsc": self.virtual_tsc,
        }

    def _seconds(self) -> int:
        """The beginning of the day (UTC), in seconds since 1970; the usual date without one."""
        if self.date is None:
            return START_S
        try:
            day = datetime.strptime(self.date, "%Y-%m-%d").replace(tzinfo=UTC)
        except ValueError:
            raise InputError(f"--date {self.date}: write YEAR-MONTH-DAY, as 2026-11-25") from None
        if not _FIRST_YEAR <= day.year <= _LAST_YEAR:
            raise InputError(f"--date {self.date}: use a year from {_FIRST_YEAR} to {_LAST_YEAR}")
        return int(day.timestamp())

    def _megabytes(self) -> int:
        try:
            size = parse_quantity("size", self.memory)
        except ValueError as error:
            raise InputError(f"--memory {self.memory}: {error}") from None
        if size < LEAST_MEMORY_MB * _MEGABYTE:
            raise InputError(f"--memory {self.memory}: a guest needs {LEAST_MEMORY_MB}mb or more")
        return int(size // _MEGABYTE)
