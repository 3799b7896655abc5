"""The first process of a guest: runs one job and powers the guest off.

Only the compiled core is imported, for everything else takes longer to load than a run.
"""

from __future__ import annotations

import json
import os
import resource
import traceback
from pathlib import Path
from typing import Any

from weir.guest.job import CAPTURE, JOB, LOG, STATUS, TABLES
from weir.kernel import system

MOUNTED = Path("/mnt")
"""Where the folder of the job is in the guest."""
_START_S = 10
"""Every run begins at this moment of the guest's life, whatever its boot took: timers then have the
same phase in each."""
_FILES = 4096


def main() -> None:
    """Never returns: the guest is off afterwards."""
    try:
        _prepare()
        status = _carry_out(MOUNTED)
    except BaseException as error:
        scenario = type(error).__name__ == "ScenarioError"
        # What the native module says is for users; anything else comes with its place.
        is_said = scenario or type(error) is RuntimeError
        status = {"error": str(error) if is_said else traceback.format_exc(), "scenario": scenario}
    (MOUNTED / STATUS).write_text(json.dumps(status), encoding="utf-8")
    system.power_off()


def _prepare() -> None:
    _mount_job(MOUNTED)
    log = os.open(MOUNTED / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    system.mount("proc", "/proc", "proc")
    system.mount("sys", "/sys", "sysfs")
    # A thousand flows have two sockets each.
    resource.setrlimit(resource.RLIMIT_NOFILE, (_FILES, _FILES))
    # Otherwise the kernel lets timers come 50 us late, to wake up less often.
    Path("/proc/self/timerslack_ns").write_text("1")
    tcp = Path("/proc/sys/net/ipv4")
    known = (tcp / "tcp_available_congestion_control").read_text()
    # Only here may they be allowed; other network namespaces follow.
    (tcp / "tcp_allowed_congestion_control").write_text(known)
    (tcp / "tcp_mem").write_text(_tcp_memory(Path("/proc/meminfo").read_text()))


def _mount_job(at: Path) -> None:
    # The working directory of the program that this kernel is on its host.
    system.mount("job", str(at), "hostfs", "/proc/self/cwd")


def _tcp_memory(meminfo: str) -> str:
    """How much all buffers of TCP may hold, in pages: a third, a half and two thirds of the memory.

    The kernel's own limits are 5 to 9 %. A flow of 10 Gbit/s over 10 ms exceeds them in a recovery,
    and its receiver then drops what it has acknowledged selectively.
    """
    lines = (line.split() for line in meminfo.splitlines())
    pages = next(int(words[1]) // 4 for words in lines if words[0] == "MemTotal:")
    return f"{pages // 3} {pages // 2} {pages * 2 // 3}"


def _carry_out(job: Path) -> dict[str, Any]:
    from weir import _native

    asked = json.loads((job / JOB).read_text(encoding="utf-8"))
    system.sleep_until(_START_S)
    if "client" in asked:
        from weir.guest import commands

        return commands.run(job, asked)
    if "packet_scripts" in asked:
        scripts = map(_native.PacketScript.parse, asked["packet_scripts"])
        return {"error": None, "departures": [one.run_on_kernel(asked["stack"]) for one in scripts]}
    capture = job / CAPTURE if asked["pcap"] else None
    scenario = _native.Scenario.from_json(asked["scenario"])
    if asked["programs"]:
        _enter_writable_root(job)
    result = scenario.run(
        asked["seed"],
        asked["world"],
        capture=capture,
        capture_from_zero=True,
        programs=asked["programs"],
    )
    (job / TABLES).write_text(result.to_json(), encoding="utf-8")
    return {"error": None}


def _enter_writable_root(job: Path) -> None:
    """Programs write where they like, and have large socket buffers."""
    from weir.guest import commands
    from weir.kernel.root import Root

    root = Root.make(job / "layers")
    _mount_job(root.path / MOUNTED.relative_to("/"))
    commands.enlarge_socket_buffers()
    system.change_root(str(root.path))
    os.chdir("/")


if __name__ == "__main__":
    main()
