"""`weir ui`: the laboratory's page with the native engine behind it."""

from __future__ import annotations

import contextlib
import webbrowser
from collections.abc import Iterator
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weir.base.disk import write_text
from weir.base.errors import InputError
from weir.base.options import Option, chosen
from weir.cli import complete, options, output, plans, table
from weir.cli.help import Verb
from weir.controllers.trust import TrustControllers
from weir.laboratory.explorer import Explorer
from weir.laboratory.job import Job
from weir.laboratory.replay import replay
from weir.report.animation import Excerpt, animation
from weir.results.results import damage_reported, load
from weir.running.options import RESULTS, Out
from weir.scenario.plans import Seed, World, runs_per_case, scenario_plan
from weir.scenario.source import SIM, parse_assignments, read

if TYPE_CHECKING:
    from weir.laboratory.server import Server

_HELP = """\
Serves the page on 127.0.0.1, until Ctrl-C. The charts ask for as much detail as the screen can \
show, so that a run may have millions of packets. A scenario runs first, natively, and its \
progress is shown. Without an argument the page simulates alone.

[bold]--save[/bold] plays one run of a scenario packet by packet, in one HTML file. Over links the
file is the laboratory's page, which runs the scenario when it opens: packets move and queues fill.
Of a radio network it has each frame with sender and receiver, collisions, and the marks of
routers."""

_EXAMPLES = """[bold]Examples[/bold]

  weir ui results/compare/latest

  weir ui two-flows --set topology.rate=1gbit --set measure.sample_interval=1ms

  weir ui lab-router --world kernel --virtual

  weir ui results/compare/latest --no-open --port 8899

  weir ui two-flows --save two-flows.html --from 12s

  weir ui radio-chain --save early.html --from 2s --for 50ms --seed 3

  weir ui mine.toml --save eight.html --set topology.radio.hops=8"""

_PLAYED = ("sets", "seed", "trust_controllers")
"""Options of a run that a saved page has too."""


def register(app: Verb) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(ui)


def _job(
    scenario: Path,
    *,
    sets: options.Sets = None,
    repeat: Annotated[int | None, runs_per_case("1")] = None,
    seed: Seed = None,
    world: World = SIM,
    virtual: options.Virtual = False,
    kernel: options.Kernel = None,
    trust_controllers: TrustControllers = False,
    out: Out = RESULTS,
) -> Job:
    """Returns the runs of a scenario."""
    plans.choose_kernel(kernel, virtual=virtual)
    source = read(scenario, parse_assignments(sets or [], "--set"))
    source = source.in_world(plans.world_of(world, virtual=virtual))
    with plans.programs(trusted=trust_controllers):
        return Job(scenario_plan(source, {}, repeat=repeat or 1, seed=seed), Path(out))


def _page(
    *,
    port: Annotated[
        int, Option("Port on 127.0.0.1.", default_text="a free one", min=0, max=65535)
    ] = 0,
    opened: options.Open = True,
    quiet: bool,
    explorer: Explorer | None,
    job: Job | None,
) -> None:
    """Serves the page."""
    from weir.laboratory import page
    from weir.laboratory.server import Server

    with Server(port, page.read(), explorer, job) as server:
        _serve(server, job, opened=opened, quiet=quiet)


@table.with_options_of(Excerpt, _job, _page)
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
    save: Annotated[
        Path | None,
        Option("Write one HTML file that plays the run, in place of serving it.", metavar="FILE"),
    ] = None,
    *,
    quiet: options.Quiet = False,
    **given: Any,
) -> None:
    """Serves the page and prints its address, or writes it."""
    from weir.laboratory import page

    if save is not None:
        _save(what, save, given, quiet=quiet)
        return
    for text in table.changed_options(Excerpt, {**given, "seed": None}):
        raise InputError(f"{text}: it is for --save FILE; leave it out")
    page.read()  # without it nothing needs to run
    job, explorer = None, None
    if what is not None and not what.is_dir():
        job = _job(what, **chosen(_job, given))
    else:
        _refuse(what, list(table.changed_options(_job, given)))
        explorer = None if what is None else _explorer(what)
    _page(**chosen(_page, given), quiet=quiet, explorer=explorer, job=job)


def _save(what: Path | None, file: Path, given: dict[str, Any], *, quiet: bool) -> None:
    """Runs the scenario, writes the page and prints its path."""
    if what is None or what.is_dir():
        raise InputError(f"--save {file}: it plays a run of a scenario; name one")
    others = {name: value for name, value in given.items() if name not in _PLAYED}
    for text in (*table.changed_options(_job, others), *table.changed_options(_page, others)):
        raise InputError(f"{text} has no effect with --save; leave it out")
    excerpt = Excerpt(
        read(what, parse_assignments(given["sets"] or [], "--set")), **chosen(Excerpt, given)
    )
    with plans.programs(trusted=given["trust_controllers"]):
        whole = excerpt.source.at({})
        if whole.fields["topology"]["kind"] != "radio":
            write_text(file, replay(excerpt, whole))
            shown = "the page simulates the run"
        else:
            from weir.report import write_animation  # slow to import

            made = animation(excerpt)
            write_animation(made, file)
            shown = f"{made.frames} frames"
    output.note(f"{shown}; open it in any browser", quiet=quiet)
    typer.echo(file)


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
    with damage_reported(directory):
        explorer = Explorer(load(directory))
        if not explorer.runs:
            raise InputError(f"{directory}: no run succeeded, so there is nothing to show")
        explorer.about(explorer.runs[0]["run"])
    return explorer
