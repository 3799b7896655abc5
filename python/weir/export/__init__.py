"""Results in the formats of other programs: `weir export`.

A run directory goes in, a folder of files comes out, which has its name only when it is complete.
docs/interchange.md says what each format holds.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from weir.base.errors import InputError, StoreError
from weir.base.options import Option, documented
from weir.controllers import trust
from weir.controllers.trust import TrustControllers
from weir.export import flent, iperf3, packets, qlog, spreadsheet
from weir.export.runs import ExportedRun, chosen
from weir.results.results import Results
from weir.results.store import slug

Writer = Callable[[Results, Sequence[ExportedRun], Path], None]
"""Writes what it has of some runs into a folder."""

FORMATS: Mapping[str, Writer] = {
    "csv": spreadsheet.write,
    "flent": flent.write,
    "iperf3": iperf3.write,
    "pcapng": packets.write,
    "qlog": qlog.write,
}


@documented()
def export(
    results: Results,
    wanted: Annotated[
        str, Option("Format to write.", metavar="|".join(FORMATS), short="-f", flag="--format")
    ],
    out: Annotated[
        str | Path | None,
        Option("The new folder.", metavar="DIR", short="-o", default_text="NAME-FORMAT"),
    ] = None,
    *,
    case: Annotated[
        str | None, Option("This case only.", metavar="LABEL", default_text="all")
    ] = None,
    repeat: Annotated[int | None, Option("This repeat only.", default_text="all", min=0)] = None,
    trust_controllers: TrustControllers = False,
) -> list[Path]:
    """Writes `results` in one of `FORMATS` into a new folder, and returns its files.

    Runs that failed have nothing to export. Some formats simulate a run once more for its packets.

    Args:
        results: The results.

    >>> from weir import compare
    >>> files = export(compare("reno", duration="5s", repeat=1), "iperf3", "iperf3")
    >>> [file.suffix for file in files]
    ['.json']

    Raises:
        InputError: there is no such format, case or repeat, the folder is there already, or the
            runs do not have what the format holds.
        StoreError: the files cannot be written.
        RunError: a simulation that is run once more for its packets came out differently.
    """
    if wanted not in FORMATS:
        raise InputError(f"--format {wanted}: there is none; there are {', '.join(FORMATS)}")
    runs = chosen(results, case, repeat)
    folder = Path(out) if out is not None else Path(f"{slug(results.manifest['name'])}-{wanted}")
    if folder.exists():
        raise InputError(f"--out {folder}: it is there already, and nothing is overwritten")
    partial = folder.with_name(f".{folder.name}.partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        with trust.deciding(trust.trust_all if trust_controllers else None):
            FORMATS[wanted](results, runs, partial)
        partial.rename(folder)
    except OSError as error:
        raise StoreError(f"--out {folder}: cannot be written: {error.strerror}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return sorted(folder.iterdir())
