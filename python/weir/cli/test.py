"""`weir test`: measures the path to a machine that runs `weir serve`."""

from __future__ import annotations

import shlex
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weir.base.errors import InputError
from weir.base.options import Option, chosen, flag, parameters
from weir.cli import options, output, plans, table
from weir.cli import transfer as tables
from weir.pathtest import ssh
from weir.pathtest.options import PathTest
from weir.probes import channel
from weir.running.options import RESULTS, Out

if TYPE_CHECKING:
    from weir.pathtest.client import Client
    from weir.probes.record import Order

_HELP = """Measure the path to a machine that runs [bold]weir serve[/bold].

Loads the path by the kernel's TCP, by our transport, or by UDP at a rate, and probes it at the same
time. Prints goodput, round-trip times without and under load, responsiveness, retransmissions, loss
and jitter, with 95 % intervals over the repeats, and what the path does to ECN and DSCP. The
results are a result directory as of every experiment: [bold]weir diff[/bold] compares two of them.

With an address [bold]ssh://HOST[/bold] the test starts the server there by OpenSSH's client, with a
key of its own, and ends it.

Exit codes: 0 measured, 1 no server or a run failed, 2 bad input or a wrong key. See \
docs/test.md."""

_EXAMPLES = """[bold]Examples[/bold]

  weir test example.org --key-file weir.key

  weir test example.org --key-file weir.key --cc cubic,bbr --direction up,down,both --streams 4

  weir test example.org --key-file weir.key --cc cubic --stack rack/cubic --stack rack/bbr

  weir test example.org --key-file weir.key --udp 10mbit --direction up,down

  weir test ssh://example.org --repeat 5

  weir test 192.0.2.7:9077 --duration 30s --repeat 10 --json"""

_KeyFile = Annotated[Path | None, Option("Copy of the server's key; see weir key.", form="FILE")]


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command(help=_HELP, epilog=_EXAMPLES)(path_test)


@table.taking(PathTest, ssh.started)
def path_test(
    host: Annotated[
        str,
        typer.Argument(
            metavar="HOST",
            help="HOST[:PORT] that runs weir serve, or ssh://[USER@]HOST[:PORT] to start it there.",
        ),
    ],
    *,
    key_file: _KeyFile = None,
    out: Out = RESULTS,
    no_report: options.NoReport = False,
    opened: options.Open = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    **given: Any,
) -> None:
    """Runs every load, and prints what was measured."""
    from weir.pathtest import plan
    from weir.pathtest.client import Client

    report = plans.reporting(no_report=no_report, opened=opened)
    wanted = PathTest(**chosen(PathTest, given))
    with options.as_typed():
        wanted.check()
    tables.warn_of_exposed(key_file, quiet=quiet)
    with ExitStack() as resources:
        name, key = _server(resources, host, key_file, chosen(ssh.started, given))
        client = resources.enter_context(Client(name, key))
        orders = plan.orders(wanted, client)
        _measure(client, orders, wanted.repeat, Path(out), report, as_json=json, quiet=quiet)


def _server(
    resources: ExitStack, host: str, key_file: Path | None, over_ssh: dict[str, Any]
) -> tuple[str, bytes | None]:
    """Returns the server's address and key; over ssh it is started."""
    if host.startswith(ssh.SCHEME):
        if key_file is not None:
            raise InputError(f"--key-file {key_file}: ssh:// makes a key of its own")
        there = resources.enter_context(ssh.started(host, **over_ssh))
        return there.host, there.key
    for one in parameters(ssh.started):
        if over_ssh[one.name] != one.default:
            given = f"{flag(one.name)} {over_ssh[one.name]}"
            raise InputError(f"{given}: it is for ssh://HOST; leave it out")
    return host, None if key_file is None else channel.read_key(key_file)


def _measure(
    client: Client,
    orders: list[Order],
    repeat: int,
    out: Path,
    report: plans.Reporting,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    from weir.cli.rows import case_rows
    from weir.pathtest import meter, plan, summary

    command = shlex.join(["weir", *sys.argv[1:]])
    made = plan.test_plan(command, client.host, orders, repeat)
    with meter.shown(len(made.runs), show=not quiet) as live:
        results = meter.run(made, client, live, out)
    text = summary.verdict(results, client.host)
    if as_json:
        output.print_json("test", case_rows(results), host=client.host, verdict=text)
    else:
        output.show(text)
        output.show(summary.grid(results).rich())
    plans.finish(results, report, quiet=quiet)
