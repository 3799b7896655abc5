"""`weir kernel`: the guest kernel of `--world kernel --virtual`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from weir.base.grid import Grid
from weir.cli import options, output
from weir.kernel import build as building
from weir.kernel import cache, recipe
from weir.kernel.cache import Kernel

_BUILD_HELP = (
    "Build the guest kernel: Linux with all its congestion controls, in virtual time.\n\n"
    "The source is Debian's package linux-source-6.1, or linux-source-6.12. The kernel is kept in "
    "your cache directory. A build takes 5 to 15 minutes on one core. It needs 2 GB of disk, and "
    "20 MB afterwards. An interrupted build continues where it stopped."
)

_BUILD_EXAMPLES = """[bold]Examples[/bold]

  sudo apt-get install linux-source-6.1 gcc make bc bison flex

  weir kernel build --jobs 4

  weir kernel build --source /usr/src/linux-source-6.12.tar.xz

  weir kernel build --virtual-tsc

  weir compare reno cubic vegas --world kernel --virtual --kernel 6.12"""

_LIST_HELP = "List the guest kernels that have been built."

_RECORD_HELP = (
    "Record traces of Linux's TCP in guests, for [bold]weir validate --reference DIR[/bold].\n\n"
    "A trace is one flow for 30 s at 10 Mbit/s, 40 ms and a queue of one bandwidth-delay product. "
    "There is one for each of nine congestion controls, as in `tests/truth/virtual`."
)

_HELP = "Build and list guest kernels for [bold]--world kernel --virtual[/bold]."


def register(app: typer.Typer) -> None:
    """Adds the verbs."""
    app.callback(help=_HELP, no_args_is_help=True)(_root)
    app.command(help=_BUILD_HELP, epilog=_BUILD_EXAMPLES)(build)
    app.command("list", help=_LIST_HELP)(list_)
    app.command(help=_RECORD_HELP)(record)


def _root() -> None:
    """Options of all subcommands: none."""


def build(
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", "-j", min=1, help="Files compiled in parallel.", show_default="one per core"
        ),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Kernel source, as linux-source-6.1.tar.xz.",
            show_default="linux-source-6.1.tar.xz in /usr/src, or the newest there",
        ),
    ] = None,
    virtual_tsc: Annotated[
        bool,
        typer.Option(
            "--virtual-tsc", help="Build the kernel that weir link --virtual-tsc needs, next to it."
        ),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Build again, even if it exists.")] = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Builds the guest kernel if it does not exist."""
    with _progress(quiet=quiet) as report:
        kernel, is_new = building.build(
            source=source,
            jobs=jobs,
            report=report,
            force=force,
            virtual_tsc=virtual_tsc,
        )
    output.note("built" if is_new else "already built", quiet=quiet)
    used = cache.default(virtual_tsc=virtual_tsc)
    if used is not None and used.path != kernel.path:
        output.note(f"runs use {used.version} by default: {used.path}", quiet=quiet)
    _print("kernel build", [kernel], as_json=json)


def list_(json: options.Json = False, quiet: options.Quiet = False) -> None:
    """Prints every guest kernel."""
    found = cache.kernels()
    if not found and not json:
        output.note(f"none in {cache.home()}: {cache.HINT}", quiet=quiet)
        return
    _print("kernel list", found, as_json=json)


def record(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Folder for the traces.")],
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", "-j", min=1, help="Guests in parallel.", show_default="one per core"
        ),
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(
            metavar="VERSION", help="Guest kernel, as in 6.12.", show_default=recipe.DEFAULT_SERIES
        ),
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Runs every case and writes the folder."""
    if kernel is not None:
        cache.choose(kernel)
    from weir.recordings.record import CASES
    from weir.recordings.record import record as record_all
    from weir.running.runner import default_jobs

    def report(name: str) -> None:
        output.note(f"{name} ({list(CASES).index(name) + 1} of {len(CASES)})", quiet=quiet)

    record_all(directory, jobs=jobs or default_jobs(), report=report)


def _print(command: str, kernels: list[Kernel], *, as_json: bool) -> None:
    rows = [
        {
            "version": kernel.version,
            "recipe": kernel.recipe,
            "is_current": kernel.is_current or kernel.has_virtual_tsc,
            "virtual_tsc": kernel.has_virtual_tsc,
            "path": str(kernel.path),
            "source": kernel.record.get("source"),
            "built": kernel.record.get("built"),
        }
        for kernel in kernels
    ]
    if as_json:
        output.print_json(command, rows)
        return
    cells = [(row["version"], _use(row), row["built"], row["path"]) for row in rows]
    headers = ("kernel", "for this version of Weir", "built", "path")
    output.show(Grid("", headers, [tuple(map(str, c)) for c in cells], names=4).rich())


def _use(row: dict[str, Any]) -> str:
    if row["virtual_tsc"]:
        return "with --virtual-tsc"
    return "yes" if row["is_current"] else "no"


@contextmanager
def _progress(*, quiet: bool) -> Iterator[building.Report]:
    """Yields a progress callback: a bar at a terminal, a line per step elsewhere."""
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

        def report(step: str, done: int, total: int) -> None:
            if done == 0 and not at_terminal:
                output.note(f"{step} …", quiet=quiet)
            count = f"{done} of about {total} files" if total else ""
            # `total` is an estimate: 100 % is shown only at the end of the step.
            progress.update(
                task,
                description=step,
                completed=min(done, total * 0.99) if total else 0,
                total=total or None,
                count=count,
            )

        yield report
