"""`weir stack`: guest kernels, programs of other projects, congestion controls in BPF."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console, Group
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from weir.base.errors import InputError
from weir.base.grid import Grid
from weir.cli import options, output, screen, table
from weir.cli.help import Verb
from weir.contenders import build as contenders
from weir.contenders import catalogue
from weir.controllers import kernel_cc
from weir.kernel import build as kernels
from weir.kernel import cache, recipe
from weir.kernel.cache import Kernel

_HELP = """Guest kernels run Linux's TCP in virtual time ([bold]--world kernel --virtual[/bold]).
Programs of other projects are stacks [bold]contender:NAME[/bold] of that world. A congestion
control in BPF becomes one of this machine's kernel."""

_KERNEL_HELP = """Build a guest kernel: Linux with all its congestion controls, in virtual time.

VERSION is that of Debian's package: 6.1 for linux-source-6.1, or 6.12. The kernel is kept in your
cache directory. A build takes 5 to 15 minutes on one core. It needs 2 GB of disk, and 20 MB
afterwards. An interrupted build continues where it stopped."""

_KERNEL_EXAMPLES = """[bold]Examples[/bold]

  sudo apt-get install linux-source-6.1 gcc make bc bison flex

  weir stack kernel --jobs 4

  weir stack kernel 6.12

  weir stack kernel --virtual-tsc

  weir compare reno cubic vegas --world kernel --virtual --kernel 6.12"""

_CONTENDER_HELP = """Build programs of other projects that no package has.

They are kept in your cache directory. [bold]weir stack list[/bold] lists all, with what is missing
on this machine."""

_CONTENDER_EXAMPLES = """[bold]Examples[/bold]

  weir stack contender quiche quic-go s2n-quic

  weir stack contender quinn --version 0.11.12"""

_BPF_HELP = """Register the congestion control in FILE with the running kernel.

FILE is C source with a [bold]struct tcp_congestion_ops[/bold] (.c), an object compiled from it
(.o), or the name of one that comes with Weir: vegas. Any program can then select it by name, until
it is removed or the machine restarts. Requires root, a kernel with BTF, and bpftool. C source also
requires clang and libbpf's headers."""

_BPF_EXAMPLES = """[bold]Examples[/bold]

  weir stack bpf vegas

  weir stack bpf mine.bpf.c

  iperf3 -c example.org -C bpf_vegas"""

_LIST_HELP = "List guest kernels, programs of other projects and congestion controls in BPF."

_REMOVE_HELP = """Unregister the BPF congestion control NAME.

Open connections keep it until they close. To remove a guest kernel, remove its folder."""

_REMOVE_EXAMPLES = """[bold]Examples[/bold]

  weir stack remove bpf_vegas"""

_STATES = {
    "built-in": "part of this kernel",
    "registered": "registered, in BPF",
    "leaving": "removed; open connections still use it",
    "ships": "not installed; comes with Weir",
}


def register(app: Verb) -> None:
    """Adds the verbs."""
    app.callback(help=_HELP, no_args_is_help=True)(_root)
    app.command(help=_KERNEL_HELP, epilog=_KERNEL_EXAMPLES)(kernel)
    app.command(help=_CONTENDER_HELP, epilog=_CONTENDER_EXAMPLES)(contender)
    app.command(help=_BPF_HELP, epilog=_BPF_EXAMPLES)(bpf)
    app.command("list", help=_LIST_HELP)(list_)
    app.command(help=_REMOVE_HELP, epilog=_REMOVE_EXAMPLES)(remove)


def _root() -> None:
    """Options of all subcommands: none."""


@table.with_options_of(kernels.build)
def kernel(
    version: Annotated[
        str | None,
        typer.Argument(
            metavar="VERSION", help="Version of Linux.", show_default=recipe.DEFAULT_SERIES
        ),
    ] = None,
    *,
    json: options.Json = False,
    quiet: options.Quiet = False,
    **given: Any,
) -> None:
    """Builds the guest kernel if it does not exist."""
    if version is not None and given["source"] is not None:
        raise InputError(f"--source {given['source']}: {version} names a source; leave out one")
    if version is not None:
        given["source"] = source = recipe.source_of(version)
        if not source.is_file():
            package = source.name.removesuffix(".tar.xz")
            raise InputError(f"{version}: there is no {source}; apt-get install {package}")
    with _progress(quiet=quiet) as report:
        made, is_new = kernels.build(**given, report=report)
    output.note("built" if is_new else "already built", quiet=quiet)
    used = cache.default(virtual_tsc=given["virtual_tsc"])
    if used is not None and used.path != made.path:
        output.note(f"runs use {used.version} by default: {used.path}", quiet=quiet)
    if json:
        output.print_json("stack kernel", [_kernel_row(made)])
    else:
        screen.show(_kernel_grid([made]).rich())


@table.with_options_of(contenders.build)
def contender(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Programs to build.")],
    *,
    quiet: options.Quiet = False,
    **given: Any,
) -> None:
    """Builds the programs if they do not exist."""
    if given["version"] is not None and len(names) > 1:
        raise InputError(f"--version {given['version']}: name one program, not {len(names)}")
    for name in names:
        contenders.build(name, lambda line: output.note(line, quiet=quiet), **given)


def bpf(
    file: Annotated[str, typer.Argument(metavar="NAME|FILE", help="vegas, C, or a BPF object.")],
    quiet: options.Quiet = False,
) -> None:
    """Registers the congestion controls and prints their names."""
    for name in kernel_cc.install(file):
        output.note(f"registered {name}; `weir stack remove {name}` removes it", quiet=quiet)


def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name in the kernel.")],
    quiet: options.Quiet = False,
) -> None:
    """Unregisters a congestion control."""
    kernel_cc.remove(name)
    output.note(f"removed {name}", quiet=quiet)


def list_(json: options.Json = False, quiet: options.Quiet = False) -> None:
    """Prints all three kinds."""
    found, programs, controls = cache.kernels(), catalogue.rows(), _control_rows()
    if json:
        rows = [{"kind": "kernel", **_kernel_row(one)} for one in found]
        rows += [{"kind": "contender", **one} for one in programs]
        rows += [{"kind": "bpf", **one} for one in controls]
        output.print_json("stack list", rows)
        return
    if not found:
        output.note(f"no guest kernel in {cache.home()}: {cache.HINT}", quiet=quiet)
    keys = ("name", "parameters", "description", "missing")
    cells = [tuple(one[key] for key in keys) for one in programs]
    headers = ("name", "parameters", "what it is", "missing")
    states = [(str(r["name"]), _STATES[str(r["state"])], str(r["id"] or "")) for r in controls]
    grids = [
        *([_kernel_grid(found)] if found else []),
        Grid("programs of other projects", headers, cells, names=3),
        Grid("congestion controls", ("name", "state", "BPF map"), states, names=2),
    ]
    screen.show(Group(*(grid.rich() for grid in grids)))


def _control_rows() -> list[dict[str, str | int | None]]:
    """The congestion controls of this kernel and those that Weir can add."""
    rows: list[dict[str, str | int | None]] = [
        {"name": item.name, "state": item.state, "id": item.id} for item in kernel_cc.listed()
    ]
    there = {row["name"] for row in rows}
    shipped = [name for name in kernel_cc.shipped() if f"bpf_{name}" not in there]
    rows += [{"name": name, "state": "ships", "id": None} for name in shipped]
    return rows


def _kernel_row(one: Kernel) -> dict[str, Any]:
    return {
        "version": one.version,
        "recipe": one.recipe,
        "is_current": one.is_current or one.has_virtual_tsc,
        "virtual_tsc": one.has_virtual_tsc,
        "path": str(one.path),
        "source": one.record.get("source"),
        "built": one.record.get("built"),
    }


def _kernel_grid(found: list[Kernel]) -> Grid:
    cells = [(one.version, _use(one), str(one.record.get("built")), str(one.path)) for one in found]
    headers = ("kernel", "for this version of Weir", "built", "path")
    return Grid("guest kernels", headers, cells, names=4)


def _use(one: Kernel) -> str:
    if one.has_virtual_tsc:
        return "with --virtual-tsc"
    return "yes" if one.is_current else "no"


@contextmanager
def _progress(*, quiet: bool) -> Iterator[kernels.Report]:
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
