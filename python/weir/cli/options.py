"""Options common to most verbs."""

from __future__ import annotations

from typing import Annotated

import typer

from weir.cli.help import OUTPUT

Json = Annotated[
    bool,
    typer.Option(
        "--json", help="Print one JSON object on stdout instead of tables.", rich_help_panel=OUTPUT
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", help="No progress bar and no messages on stderr.", rich_help_panel=OUTPUT
    ),
]
