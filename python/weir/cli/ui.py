"""`weir ui`: the laboratory's page with the native engine behind it."""

from __future__ import annotations

import contextlib
import webbrowser
from collections.abc import Iterator
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from weir.base.errors import InputError
from weir.base.options import Option
from weir.cli import complete, options, output, plans
from weir.controllers.trust import TrustControllers
from weir.results.results import damage_reported, load
from weir.running.options import RESULTS, Out
from weir.scenario.plans import Seed, World, runs_per_case, scenario_plan
from weir.scenario.source import SIM, parse_assignments, read

if TYPE_CHECKING:
    from weir.laboratory.explorer import Explorer
    from weir.laboratory.job import Job
    from weir.laboratory.server import Server

_HELP = """Explore results in the laboratory's page, until Ctrl-C.

Serves the page on 127.0.0.1. The charts ask for as much detail as the screen can show, so that a \
run may have millions of packets. A scenario runs first, natively, and its progress is shown. \
Without an argument the page simulates alone."""

_EXAMPLES = """[bold]Examples[/bold]

  weir ui results/compare/latest

  weir ui two-flows --set topology.rate=1gbit --set measure.sample_interval=1ms

  weir ui lab-router --world kernel --virtual

  weir ui results/compare/latest --no-open --port 8899"""


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(ui)


def ui(
    what: Annotated[
        Path | None,
        typer.Argument(
            metavar="[RESULTS|SCENARIO]",
            help="A result directory, a scenario file, or the name of a scenario that comes with "
            "Weir.",
            autocompletion=complete.scenarios,
        ),
    ] = None,
    sets: options.Sets = None,
    repeat: Annotated[int | None, runs_per_case("1")] = None,
    seed: Seed = None,
    world: World = SIM,
    virtual: options.Virtual = False,
    kernel: options.Kernel = None,
    trust_controllers: TrustControllers = False,
    out: Out = RESULTS,
    port: Annotated[
        int, Option("Port on 127.0.0.1.", otherwise="a free one", least=0, most=65535)
    ] = 0,
    opened: Annotated[bool, Option("Open the page in the browser.", flag="--open")] = True,
    quiet: options.Quiet = False,
) -> None:
    """Serves the page and prints its address."""
    from weir.laboratory import page
    from weir.laboratory.job import Job
    from weir.laboratory.server import Server

    files = page.read()
    explorer, job = None, None
    if what is None or what.is_dir():
        given: dict[str, object] = {
            "--set": sets,
            "--repeat": repeat,
            "--seed": seed,
            "--kernel": kernel,
        }
        given |= {"--world": None if world == SIM else world, "--virtual": virtual or None}
        given |= {"--trust-controllers": trust_controllers or None}
        given |= {"--out": None if str(out) == RESULTS else out}
        _refuse(what, [name for name, value in given.items() if value is not None])
        if what is not None:
            explorer = _explorer(what)
    else:
        plans.choose_kernel(kernel, virtual=virtual)
        source = read(what, parse_assignments(sets or [], "--set"))
        source = source.in_world(plans.world_of(world, virtual=virtual))
        with plans.programs(trusted=trust_controllers):
            plan = scenario_plan(source, {}, repeat=repeat or 1, seed=seed)
        job = Job(plan, Path(out))
    with Server(port, files, explorer, job) as server:
        _serve(server, job, opened=opened, quiet=quiet)


def _serve(server: Server, job: Job | None, *, opened: bool, quiet: bool) -> None:
    """Serves the page until Ctrl-C, and runs the job meanwhile."""
    with contextlib.ExitStack() as stack:
        typer.echo(server.url)
        output.note("Ctrl-C ends it.", quiet=quiet)
        if opened and not stack.enter_context(in_browser(server.url)):
            output.note("No browser was found; open the address yourself.", quiet=quiet)
        try:
            if job is not None:
                job.start()
            server.serve_forever()
        except KeyboardInterrupt:
            output.note("stopped", quiet=quiet)
        finally:
            if job is not None:
                job.stop()


@contextlib.contextmanager
def in_browser(url: str) -> Iterator[bool]:
    """Opens an address in the browser; yields whether there is one.

    The browser's command line has the name of a file that leads to the address, and that only this
    user can read: others could list the command line, and the address has a token.
    """
    with TemporaryDirectory(prefix="weir-ui-") as folder:
        file = Path(folder) / "open.html"
        file.touch(mode=0o600)
        file.write_text(
            f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" '
            f'content="0;url={escape(url)}"><title>Weir</title>',
            encoding="utf-8",
        )
        yield webbrowser.open(file.as_uri())


def _refuse(directory: Path | None, given: list[str]) -> None:
    if given and directory is None:
        raise InputError(f"{given[0]}: there is nothing to run; name a scenario")
    if given:
        raise InputError(f"{given[0]}: {directory} has results, and nothing is run")


def _explorer(directory: Path) -> Explorer:
    """Returns what answers questions about results, which are checked first."""
    from weir.laboratory.explorer import Explorer

    with damage_reported(directory):
        explorer = Explorer(load(directory))
        if not explorer.runs:
            raise InputError(f"{directory}: no run succeeded, so there is nothing to show")
        explorer.about(explorer.runs[0]["run"])
    return explorer
