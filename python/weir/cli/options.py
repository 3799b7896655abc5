"""Options of nearly every verb."""

from __future__ import annotations

from typing import Annotated

import typer

Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on stdout instead of tables.")
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress bar, no remarks on stderr.")
]
