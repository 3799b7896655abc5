"""`weir doctor`: checks what this machine supports."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from typing import Annotated

import typer

from weir import _native
from weir.base.errors import WeirError
from weir.base.extras import DISTRIBUTION
from weir.base.grid import Grid
from weir.base.options import Option
from weir.cli import options, output, screen
from weir.cli.help import Verb
from weir.controllers import kernel_cc
from weir.kernel import cache
from weir.processes import cleanup, netns

_HELP = """\
Exits with 1 if a required component is missing. With [bold]--clean[/bold] it removes instead the \
nftables tables and settings of [bold]weir link[/bold] processes that were killed."""

_PATIENCE_S = 10


@dataclass(frozen=True, slots=True)
class Check:
    """Result of a check; `found` is None if the component is missing."""

    name: str
    found: str | None
    purpose: str
    is_needed: bool = False

    @property
    def state(self) -> str:
        """`ok`, `MISSING` (required) or `absent`."""
        if self.found is not None:
            return "ok"
        return "MISSING" if self.is_needed else "absent"


def register(app: Verb) -> None:
    """Adds the verb."""
    app.command(help=_HELP)(doctor)


def doctor(
    clean: Annotated[bool, Option("Remove leftovers of killed processes.")] = False,
    json: options.Json = False,
) -> None:
    """Runs every check and prints the results."""
    if clean:
        _clean(as_json=json)
        return
    checks = [check() for check in _CHECKS]
    if json:
        keys = ("name", "state", "found", "purpose")
        output.print_json("doctor", [{key: getattr(c, key) for key in keys} for c in checks])
    else:
        rows = [(c.name, c.state, c.found or "–", c.purpose) for c in checks]
        screen.show(Grid("", ("what", "state", "found", "needed for"), rows, names=4).rich())
    if any(check.is_needed and check.found is None for check in checks):
        raise typer.Exit(1)


def _clean(*, as_json: bool) -> None:
    done = cleanup.clean()
    if as_json:
        output.print_json("doctor", [{"done": text} for text in done])
    else:
        for text in done or ["leftovers: none"]:
            typer.echo(text)


def _python() -> Check:
    version = platform.python_version() if sys.version_info >= (3, 11) else None
    return Check("Python 3.11+", version, "everything", is_needed=True)


def _core() -> Check:
    return Check("compiled core", _native.version(), "everything", is_needed=True)


def _package() -> Check:
    """Looks for the package `weir` of others: its files replace ours."""
    purpose = "everything"
    try:
        other = metadata.version("weir")
    except metadata.PackageNotFoundError:
        return Check("package", f"{DISTRIBUTION} {_native.version()}", purpose, is_needed=True)
    advice = f"pip uninstall weir, then install {DISTRIBUTION} again"
    return Check("package", None, f"{purpose}; weir {other} is another program: {advice}")


def _simulation() -> Check:
    """Runs a small scenario, so that a broken build is found before an experiment."""
    from weir.running.runner import execute
    from weir.scenario.plans import Comparison

    run = Comparison(stacks=("reno",), duration="1s", repeat=1).plan().runs[0]
    try:
        packets = execute(run.case.scenario, run.seed)["summary"]["data_packets"][0]
    except Exception as error:  # any error belongs in the table
        return Check("simulator", None, f"everything; it failed: {error}", is_needed=True)
    return Check("simulator", f"1 s simulated, {packets} packets", "everything", is_needed=True)


def _real_time() -> Check:
    """Runs a transfer over real sockets: how late this machine sends."""
    from weir.running.runner import execute
    from weir.scenario.source import read

    quick = ("topology.delay", "1ms"), ("flow.0.workload.size", "300kb")
    try:
        summary = execute(read("lab-router", quick).at({}), 1, "udp")["summary"]
    except Exception as error:  # as above
        return Check("world udp", None, f"`--world udp`; it failed: {error}")
    return Check("world udp", f"{summary['late_ms_max'][0]:.2f} ms late at most", "`--world udp`")


def _kernel() -> Check:
    """Runs the kernel's TCP between two namespaces for half a second."""
    from weir.running.runner import execute
    from weir.scenario.plans import Comparison

    purpose = "`--world kernel`"
    try:
        run = (
            Comparison(
                stacks=("cubic",), duration="500ms", repeat=1, start_jitter="0ms", world="kernel"
            )
            .plan()
            .runs[0]
        )
        tables = execute(run.case.scenario, run.seed, "kernel")
    except Exception as error:  # as above
        return Check("world kernel", None, f"{purpose}; {error}")
    late, goodput = tables["summary"]["late_ms_max"][0], tables["flows"]["goodput_mbps"][0]
    found = f"cubic: {goodput:.1f} Mbit/s, {late:.2f} ms late at most"
    return Check("world kernel", found, purpose)


def _cores() -> Check:
    from weir.running.runner import default_jobs

    return Check("cores", str(default_jobs()), "runs in parallel", is_needed=True)


def _chromium() -> Check:
    names = ("chromium", "chromium-browser", "google-chrome", "chrome", "firefox")
    found = next((name for name in names if shutil.which(name)), None)
    return Check("browser", found, "reading reports")


def _tshark() -> Check:
    return Check("tshark", _version("tshark"), "reading captures of `--pcap`")


def _ns3() -> Check:
    if shutil.which("pkg-config") is None:
        return Check("ns-3", None, "the comparison in `make bench`")
    names = ("libns3-core", "ns3-core")
    versions = (_first_line(["pkg-config", "--modversion", name]) for name in names)
    return Check("ns-3", next(filter(None, versions), None), "the comparison in `make bench`")


def _namespaces() -> Check:
    """Creates a link between two namespaces."""
    lacking = netns.missing()
    purpose = "`weir link`, links between network namespaces (`weir.processes.netns`)"
    if lacking is not None:
        return Check("namespaces, TUN", None, f"{purpose}: {lacking}")
    try:
        with netns.joined() as link:
            found = f"{link.left.address} to {link.right.address}"
    except (WeirError, OSError) as error:
        return Check("namespaces, TUN", None, f"{purpose}; it failed: {error}")
    return Check("namespaces, TUN", found, purpose)


def _guest_kernel() -> Check:
    purpose = "Linux's TCP in virtual time (`--world kernel --virtual`)"
    kernel = cache.default()
    if kernel is not None:
        return Check("guest kernel", f"Linux {kernel.version}", purpose)
    return Check("guest kernel", None, f"{purpose}: {cache.HINT}")


def _bpf() -> Check:
    lacking = kernel_cc.missing()
    purpose = "congestion controls in BPF (`weir stack bpf`)"
    if lacking is not None:
        return Check("BPF", None, f"{purpose}: {lacking}")
    return Check("BPF", "root, BTF, bpftool, clang", purpose)


def _way_out() -> Check:
    """Programs behind a link reach other hosts by this host's address."""
    purpose = "access from behind `weir link` to other hosts"
    return Check("nftables", _version("nft"), purpose)


def _leftovers() -> Check:
    """Finds what killed links left on this machine; none of it does harm."""
    found = cleanup.found()
    if found:
        return Check("leftovers", None, f"`weir doctor --clean` removes: {'; '.join(found)}")
    return Check("leftovers", "none", "a clean machine")


_CHECKS: tuple[Callable[[], Check], ...] = (
    _python,
    _core,
    _package,
    _simulation,
    _real_time,
    _kernel,
    _cores,
    _chromium,
    _tshark,
    _ns3,
    _namespaces,
    _guest_kernel,
    _bpf,
    _way_out,
    _leftovers,
)


def _version(program: str) -> str | None:
    return _first_line([program, "--version"]) if shutil.which(program) else None


def _first_line(command: list[str]) -> str | None:
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=_PATIENCE_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return next(iter(answer.stdout.splitlines()), None)
