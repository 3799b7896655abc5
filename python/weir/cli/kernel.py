"""`weir kernel`: the guest kernel of `--world kernel --virtual`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from weir.cli import options, output
from weir.grid import Grid
from weir.kernel import build as building
from weir.kernel import cache
from weir.kernel.cache import Kernel

_BUILD_HELP = (
    "Build the guest kernel, once: Linux with every congestion control and virtual time.\n\n"
    "It is compiled from Debian's package linux-source-6.1 and kept in the user's cache "
    "directory. It takes 5 to 15 minutes of one core, 2 GB of disk meanwhile and 20 MB afterwards. "
    "A build that was interrupted goes on where it stopped."
)

_BUILD_EXAMPLES = """[bold]Examples[/bold]

  sudo apt-get install linux-source-6.1 gcc make bc bison flex

  weir kernel build --jobs 4

  weir compare reno cubic vegas --world kernel --virtual"""

_LIST_HELP = "Say which guest kernels have been built, and where they are."

_RECORD_HELP = (
    "Record traces of Linux's TCP in guests, for [bold]weir validate --truth DIR[/bold].\n\n"
    "One flow for 30 s at 10 Mbit/s and 40 ms through a queue of one bandwidth-delay product, for "
    "each of nine congestion controls: what `tests/truth/virtual` holds."
)

_HELP = "The guest kernel of [bold]--world kernel --virtual[/bold]: Linux in virtual time."


def register(app: typer.Typer) -> None:
    """Adds the verbs."""
    app.callback(help=_HELP, no_args_is_help=True)(_root)
    app.command(help=_BUILD_HELP, epilog=_BUILD_EXAMPLES)(build)
    app.command("list", help=_LIST_HELP)(list_)
    app.command(help=_RECORD_HELP)(record)


def _root() -> None:
    """What all share: nothing."""


def build(
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", "-j", min=1, help="Files compiled at a time.", show_default="one per core"
        ),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Sources to use, as linux-source-6.1.tar.xz.",
            show_default="the newest in /usr/src",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Build once more what is there already.")
    ] = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Builds what is not there."""
    from weir.runner import default_jobs

    with _progress(quiet=quiet) as tell:
        kernel, is_new = building.build(
            source=source, jobs=jobs or default_jobs(), tell=tell, force=force
        )
    output.remark("built" if is_new else "it is there already", quiet=quiet)
    used = cache.newest()
    if used is not None and used.path != kernel.path:
        output.remark(f"runs use {used.version}, which is newer: {used.path}", quiet=quiet)
    _print("kernel build", [kernel], as_json=json)


def list_(json: options.Json = False, quiet: options.Quiet = False) -> None:
    """Prints every guest kernel."""
    found = cache.kernels()
    if not found and not json:
        output.remark(f"none in {cache.home()}: {cache.HINT}", quiet=quiet)
        return
    _print("kernel list", found, as_json=json)


def record(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where the traces go.")],
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="Guests at a time.", show_default="one per core"),
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Runs every case and writes the folder."""
    from weir.kernel.record import CASES
    from weir.kernel.record import record as record_all
    from weir.runner import default_jobs

    def tell(name: str) -> None:
        output.remark(f"{name} ({list(CASES).index(name) + 1} of {len(CASES)})", quiet=quiet)

    record_all(directory, jobs=jobs or default_jobs(), tell=tell)


def _print(command: str, kernels: list[Kernel], *, as_json: bool) -> None:
    rows = [
        {
            "version": kernel.version,
            "recipe": kernel.recipe,
            "is_current": kernel.is_current,
            "path": str(kernel.path),
            "source": kernel.record.get("source"),
            "built": kernel.record.get("built"),
        }
        for kernel in kernels
    ]
    if as_json:
        output.print_json(command, rows)
        return
    cells = [
        (row["version"], "this one" if row["is_current"] else "another", row["built"], row["path"])
        for row in rows
    ]
    headers = ("kernel", "for which Weir", "built", "where")
    output.show(Grid("", headers, [tuple(map(str, c)) for c in cells], names=4).rich())


@contextmanager
def _progress(*, quiet: bool) -> Iterator[building.Tell]:
    """A bar at a terminal, one line per step elsewhere."""
    console = Console(stderr=True, highlight=False)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[count]}", markup=False),
        TimeElapsedColumn(),
    )
    at_terminal = console.is_terminal and not quiet
    with Progress(*columns, console=console, disable=not at_terminal, transient=True) as progress:
        task = progress.add_task("", total=None, count="")

        def tell(step: str, done: int, total: int) -> None:
            if done == 0 and not at_terminal:
                output.remark(f"{step} …", quiet=quiet)
            count = f"{done} of about {total} files" if total else ""
            # More files than expected are no reason to say that the step is over.
            progress.update(
                task,
                description=step,
                completed=min(done, total * 0.99) if total else 0,
                total=total or None,
                count=count,
            )

        yield tell
