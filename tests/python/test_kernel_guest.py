"""The guest kernel: its recipe, its build, its cache, and what becomes of a guest.

Builds and boots are of stand-ins that take no time. What needs a real guest is in
`test_kernel_virtual.py`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import requires
from conftest import Invoke, until

from weir import _native
from weir.base.errors import InputError
from weir.guest import init, machine, pinning, world
from weir.guest.job import JOB, LOG, STATUS, TABLES
from weir.guest.machine import Machine
from weir.kernel import build as building
from weir.kernel import cache, recipe
from weir.kernel.cache import Kernel
from weir.kernel.recipe import Change, KernelError

CHANGE = Change("a.c", "old(1)", "new(1)", times=(2,))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of guest kernels."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "weir" / "kernel"


def installed(home: Path, script: str, version: str = "6.1.1", digest: str | None = None) -> Path:
    """A guest kernel that is a shell script."""
    folder = home / f"{version}-{digest or recipe.digest()}"
    folder.mkdir(parents=True)
    record = {"version": version, "recipe": digest or recipe.digest()}
    (folder / cache.RECORD).write_text(json.dumps(record))
    (folder / cache.BINARY).write_text(f"#!/bin/sh\n{script}\n")
    (folder / cache.BINARY).chmod(0o755)
    return folder


# The recipe.


def test_a_change_is_made_everywhere_and_once() -> None:
    changed = CHANGE.applied("old(1); x; old(1);")
    assert changed == "new(1); x; new(1);"
    assert CHANGE.applied(changed) == changed


@pytest.mark.parametrize("text", ["", "old(1)", "old(1) new(1)", "old(1) old(1) old(1)"])
def test_another_source_is_refused(text: str) -> None:
    with pytest.raises(KernelError, match=r"a\.c is not as expected: 'old\(1\)' occurs"):
        CHANGE.applied(text)


def test_the_options_name_every_congestion_control() -> None:
    on = recipe.options()
    controls = {name.removeprefix("CONFIG_TCP_CONG_").lower() for name in on if "TCP_CONG_" in name}
    # `advanced` is what lets the others be chosen, and reno is part of TCP.
    named = controls - {"advanced", "hstcp"} | {"highspeed", "reno"}
    assert named == set(recipe.CONTROLS)
    assert len(recipe.CONTROLS) == 17
    assert on["CONFIG_UML_TIME_TRAVEL_SUPPORT"] == "y"


def test_options_that_were_not_taken_over_are_named() -> None:
    lines = [f"{name}={value}" for name, value in recipe.options().items()]
    assert recipe.refused("\n".join(lines)) == []
    without = [line for line in lines if "VEGAS" not in line]
    assert recipe.refused("\n".join(without)) == ["CONFIG_TCP_CONG_VEGAS"]


def test_the_newest_sources_are_the_last(tmp_path: Path) -> None:
    for version in ("6.9", "6.10", "6.1"):
        (tmp_path / f"linux-source-{version}.tar.xz").touch()
    names = [path.name for path in recipe.sources(tmp_path)]
    assert names == [f"linux-source-{version}.tar.xz" for version in ("6.1", "6.9", "6.10")]


# The cache.


def test_the_newest_kernel_of_the_default_series_is_used(home: Path) -> None:
    assert cache.default() is None
    newer = installed(home, "", "6.12.3")
    only = cache.default()
    assert only is not None
    assert only.path == newer
    shutil.rmtree(newer)
    installed(home, "", "6.1.9")
    wanted = installed(home, "", "6.1.10")
    installed(home, "", "6.2.0", digest="another")
    broken = installed(home, "", "6.3.0")
    (broken / cache.RECORD).write_text("{")
    unfinished = installed(home, "", "6.4.0")
    unfinished.rename(home / ".build-x")
    assert [kernel.version for kernel in cache.kernels()] == ["6.1.9", "6.1.10", "6.2.0"]
    installed(home, "", "6.12.3")
    default = cache.default()
    assert default is not None
    assert default.path == wanted


def test_a_kernel_is_chosen_by_its_version_or_series(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(cache.CHOICE, "")
    for version in ("6.1.9", "6.1.10", "6.12.3"):
        installed(home, "", version)
    expected = {"6.1": "6.1.10", "6.1.9": "6.1.9", "6.12": "6.12.3", "6": "6.12.3"}
    for asked, version in expected.items():
        cache.choose(asked)
        assert cache.needed().version == version
    with pytest.raises(KernelError, match=r"--kernel 6\.2: no such .* 6\.1\.9, 6\.1\.10, 6\.12\.3"):
        cache.choose("6.2")
    for text in ("wat", "6.", "", "6.1-rc1"):
        with pytest.raises(InputError, match=r"--kernel .*: allowed is a version or series"):
            cache.choose(text)


def listed(invoke: Invoke) -> list[dict[str, Any]]:
    rows = json.loads(invoke("stack", "list", "--json").stdout)["rows"]
    return [row for row in rows if row["kind"] == "kernel"]


def test_without_a_kernel_the_message_says_how_to_get_one(home: Path, invoke: Invoke) -> None:
    with pytest.raises(KernelError, match="`weir stack kernel` makes it"):
        cache.needed()
    installed(home, "", digest="another")
    with pytest.raises(KernelError, match="made for another version of Weir"):
        cache.needed()
    assert [row["is_current"] for row in listed(invoke)] == [False]


# The build, of a source that compiles nothing.

MAKEFILE = """
kernelversion:
\t@echo 6.1.77
allnoconfig:
\t@cp $(KCONFIG_ALLCONFIG) .config
linux:
\t@echo '  CC      one.o'; echo '  CC      two.o'
\t@test ! -e $(CURDIR)/../fail || { echo 'two.c: not today'; exit 1; }
\t@test ! -e $(CURDIR)/../wait || sleep 60
\t@echo done > linux; chmod +x linux
"""

needs_tools = requires.programs("tar", "xz", "make")


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sources with every file that the recipe changes."""
    monkeypatch.setattr(building, "missing", lambda _source: [])
    tree = tmp_path / "linux-source-6.1"
    tree.mkdir()
    (tree / "Makefile").write_text(MAKEFILE)
    places = {
        (change.file, change.old * change.times[0]) for change in recipe.changes(virtual_tsc=True)
    }
    for name, text in sorted(places):
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write(text)
    archive = tmp_path / "linux-source-6.1.tar.xz"
    with tarfile.open(archive, "w:xz") as packed:
        packed.add(tree, tree.name)
    return archive


def made(source: Path, *, force: bool = False) -> tuple[Kernel, bool, list[tuple[str, int, int]]]:
    """Builds, and returns the progress reported."""
    reported: list[tuple[str, int, int]] = []
    kernel, is_new = building.build(
        source=source, jobs=1, report=lambda *step: reported.append(step), force=force
    )
    return kernel, is_new, reported


@needs_tools
def test_a_build_is_published_whole_and_made_once(home: Path, source: Path) -> None:
    kernel, is_new, reported = made(source)
    assert is_new
    assert kernel.path == home / f"6.1.77-{recipe.digest()}"
    assert kernel.binary.read_text() == "done\n"
    assert kernel.record["source"] == source.name
    steps = list(dict.fromkeys(step for step, _, _ in reported))
    assert steps == ["unpack", "configure", "compile"]
    assert ("compile", 2, recipe.OBJECTS) in reported
    assert list(home.iterdir()) == [kernel.path], "the build folder is removed"
    assert made(source) == (kernel, False, [])
    assert made(source, force=True)[1]


@needs_tools
@pytest.mark.usefixtures("home")
def test_a_kernel_with_virtual_counters_stands_next_to_the_usual_one(
    source: Path, invoke: Invoke
) -> None:
    usual, _, _ = made(source)
    with pytest.raises(KernelError, match=r"^--virtual-tsc: .*`weir stack kernel --virtual-tsc`"):
        cache.needed(virtual_tsc=True)
    other, is_new = building.build(source=source, jobs=1, report=lambda *_: None, virtual_tsc=True)
    assert is_new
    assert (cache.needed(), cache.needed(virtual_tsc=True)) == (usual, other)
    rows = listed(invoke)
    assert sorted(row["virtual_tsc"] for row in rows) == [False, True]
    assert all(row["is_current"] for row in rows)


@needs_tools
@pytest.mark.usefixtures("home")
def test_another_source_is_built_though_there_is_a_kernel(source: Path) -> None:
    first, _, _ = made(source)
    tree = source.parent / "linux-source-6.1"
    (tree / "Makefile").write_text(MAKEFILE.replace("6.1.77", "6.1.90"))
    other = source.parent / "other" / source.name
    other.parent.mkdir()
    with tarfile.open(other, "w:xz") as packed:
        packed.add(tree, tree.name)
    second, is_new, _ = made(other)
    assert (is_new, second.version) == (True, "6.1.90")
    assert made(source) == (first, False, [])
    assert made(other) == (second, False, [])
    assert {kernel.path for kernel in cache.kernels()} == {first.path, second.path}


@needs_tools
def test_a_build_that_failed_says_why_and_goes_on_where_it_stopped(
    home: Path, source: Path
) -> None:
    job = building.Build(source, 1, lambda *_: None)
    job.folder.mkdir(parents=True)
    (job.folder / "fail").touch()
    with pytest.raises(KernelError, match=r"compile failed \(exit code 2\).*not today"):
        made(source)
    assert cache.kernels() == []
    (job.folder / "fail").unlink()
    _, _, reported = made(source)
    assert {step for step, _, _ in reported} == {"compile"}
    assert home.exists()


@needs_tools
@pytest.mark.usefixtures("home")
def test_two_builds_do_not_meet(source: Path) -> None:
    job = building.Build(source, 1, lambda *_: None)
    job.folder.mkdir(parents=True)
    with (
        building._locked(job.folder),
        pytest.raises(KernelError, match="another build is running there"),
    ):
        made(source)


@needs_tools
@pytest.mark.usefixtures("home")
def test_ctrl_c_ends_what_the_build_had_started(source: Path) -> None:
    job = building.Build(source, 1, lambda *_: None)
    job.folder.mkdir(parents=True)
    (job.folder / "wait").touch()

    def interrupt(step: str, done: int, _total: int) -> None:
        if (step, done) == ("compile", 2):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        building.build(source=source, jobs=1, report=interrupt)
    assert not _processes_in(job.tree)


def _processes_in(folder: Path) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "cwd").readlink() == folder:
                found.append(process.name)
    return found


@needs_tools
@pytest.mark.usefixtures("home")
def test_sources_that_the_recipe_does_not_fit_are_refused(source: Path, tmp_path: Path) -> None:
    tree = tmp_path / "linux-source-6.1"
    (tree / recipe.CHANGES[0].file).write_text("something else")
    with tarfile.open(source, "w:xz") as packed:
        packed.add(tree, tree.name)
    with pytest.raises(KernelError, match=r"user-offsets\.c is not as expected"):
        made(source)


@pytest.mark.usefixtures("home")
def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch, invoke: Invoke) -> None:
    monkeypatch.setattr(recipe, "SOURCES", Path("/nowhere"))
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "bison" else name)
    monkeypatch.setattr(recipe, "sources", list)
    result = invoke("stack", "kernel")
    assert result.exit_code == 1
    assert "apt-get install linux-source-6.1 bison" in result.stderr


def test_a_version_names_a_packaged_source(invoke: Invoke) -> None:
    refused = invoke("stack", "kernel", "9.9")
    assert refused.exit_code == 2
    assert "linux-source-9.9.tar.xz; apt-get install linux-source-9.9" in refused.stderr
    refused = invoke("stack", "kernel", "6.12", "--source", "linux.tar.xz")
    assert refused.exit_code == 2
    assert "6.12 names a source; leave out one" in refused.stderr


# Guests that are shell scripts.

SCENARIO = "{}"


def test_a_guest_receives_its_job_and_returns_tables(home: Path) -> None:
    installed(
        home,
        f'grep -q "\\"seed\\": 7" "{JOB}" || exit 1\n'
        f'echo \'{{"flows": {{"flow": ["UInt32", [0]]}}}}\' > {TABLES}\n'
        f'echo \'{{"error": null}}\' > "{STATUS}"',
    )
    tables = world.run(SCENARIO, 7)
    assert tables["flows"]["flow"].to_list() == [0]


FAILURES = {
    "panic": (
        'echo booting; echo "Kernel panic - not syncing: Out of memory"; echo rest',
        r"before its time; its last words: Kernel panic - not syncing: Out of memory$",
    ),
    "silent": ("exit 0", "the guest ended before its time; it said nothing"),
    "crashed": (
        f'echo "thread panicked at x.rs" > "{LOG}"',
        "its last words: thread panicked at",
    ),
    "traceback": (
        f'printf %s \'{{"error": "Traceback\\nOSError: no TUN", "scenario": false}}\' > "{STATUS}"',
        "the run in the guest failed: Traceback / OSError: no TUN",
    ),
}


def test_tcp_may_use_most_of_a_guests_memory() -> None:
    """By default it stops at 9 %: then receivers at 10 Gbit/s drop what they have acknowledged."""
    meminfo = "MemTotal:         786432 kB\nMemFree:          700000 kB\n"
    assert init._tcp_memory(meminfo) == "65536 98304 131072"


@pytest.mark.parametrize(("script", "message"), FAILURES.values(), ids=FAILURES)
def test_a_guest_that_failed_is_quoted(home: Path, script: str, message: str) -> None:
    installed(home, script)
    with pytest.raises(KernelError, match=message):
        world.run(SCENARIO, 1)


def test_a_scenario_that_the_guest_refuses_is_bad_input(home: Path) -> None:
    answer = '{"error": "flow.0.stack: no", "scenario": true}'
    installed(home, f"echo '{answer}' > \"{STATUS}\"")
    with pytest.raises(_native.ScenarioError, match=r"flow\.0\.stack: no"):
        world.run(SCENARIO, 1)


def test_a_guest_that_does_nothing_hangs(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_IDLE_S", 0.5)
    installed(home, "exec sleep 60")
    with pytest.raises(KernelError, match="the guest hangs: it has not computed for 0 s"):
        world.run(SCENARIO, 1)


def test_a_guest_is_broken_off(home: Path, tmp_path: Path) -> None:
    installed(home, f"echo $$ > {tmp_path}/pid; exec sleep 60")
    control = _native.RunControl()
    timer = threading.Timer(0.5, control.stop)
    timer.start()
    with pytest.raises(KernelError, match="the run was broken off"):
        world.run(SCENARIO, 1, control=control)
    timer.join()
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


def test_a_guest_dies_with_the_process_that_started_it(home: Path, tmp_path: Path) -> None:
    installed(home, f"echo $$ > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; exec sleep 60")
    program = f"from weir.guest import world; world.run({SCENARIO!r}, 1)"
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        until((tmp_path / "pid").exists)
        pid = int((tmp_path / "pid").read_text())
        process.send_signal(signal.SIGKILL)
    until(lambda: not _is_alive(pid))


def test_each_guest_is_tied_to_a_processor_of_its_own() -> None:
    processors = os.sched_getaffinity(0)
    # Others of this machine may run guests.
    before = Counter(pinning._taken(os.getpid()))
    guest_ = ["sh", "-c", "sleep 60", pinning.MARK.decode()]
    started = []
    try:
        for _ in processors:
            started.append(subprocess.Popen(guest_, start_new_session=True))
            pinning.pin(started[-1].pid)
        tied = [os.sched_getaffinity(process.pid) for process in started]
        assert all(len(cpus) == 1 for cpus in tied)
        if not before:
            assert set.union(*tied) == processors
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_the_command_line_quotes_what_it_must(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/a folder/python")
    words = machine.arguments(Machine(seed=3))
    assert 'init="/a folder/python"' in words
    assert "weir.seed=3" in words
    monkeypatch.setattr(sys, "executable", '/a "folder"/python')
    with pytest.raises(KernelError, match="a path with a quote"):
        machine.arguments(Machine(seed=3))


def test_memory_needs_space_and_the_right_to_run_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert machine.memory_folder([str(tmp_path)]) == tmp_path
    monkeypatch.setattr(machine, "_may_hold_code", lambda _path: False)
    with pytest.raises(KernelError, match="no folder for a guest's memory"):
        machine.memory_folder([str(tmp_path)])


# The options of `run` and `compare`.

MISFITS = {
    "--virtual: world sim has no guests; add --world kernel": ["--virtual"],
    "--virtual: world udp has no guests": ["--virtual", "--world", "udp"],
}


@pytest.mark.parametrize(("message", "options"), MISFITS.items(), ids=MISFITS)
def test_options_that_do_not_fit_are_refused(
    invoke: Invoke, message: str, options: list[str]
) -> None:
    result = invoke("compare", "reno", *options)
    assert result.exit_code == 2
    assert message in result.stderr
