"""The load of a path test by our own transport: connections over one UDP socket at each end.

Both ends make the same scenario from a few numbers and the name of a stack, so that no scenario and
no name of a file comes from the other end.
"""

from __future__ import annotations

import json
import re
import threading
import time
from dataclasses import dataclass
from typing import Any, Literal

from weir import _native
from weir.base.errors import InputError
from weir.probes.load import LOG_NS, Point
from weir.probes.tcp_info import Reading

SAMPLE_S = 0.1
MOST_MSS, LEAST_MSS = 1440, 500
"""Bytes of data in a segment: with all headers up to 1500 bytes over IPv4."""

_HEADERS = 8 + 20 + 12
"""Bytes of UDP, and of a segment's header with timestamps."""
_FORM = re.compile(r"[a-z0-9-]{1,40}(/[a-z0-9-]{1,40})?(\([a-z0-9_=.,%]{1,80}\))?")
_SEED = 1
_MOST_FAILURE = 200


@dataclass(frozen=True, slots=True)
class OwnSpec:
    """Flows of our transport, up from the client and down to it."""

    stack: str
    mss: int
    up: int
    down: int
    duration_s: float

    def sends(self, side: Literal["client", "server"]) -> list[int]:
        """The flows that this side sends; the first ones are those up."""
        flows = range(self.up + self.down)
        return list(flows[: self.up] if side == "client" else flows[self.up :])

    def scenario(self, rate_bps: float | None) -> _native.Scenario:
        """The flows as a scenario; those of one direction send at `rate_bps` together at most.

        Raises:
            InputError: a path test cannot run this stack.
        """
        if not _FORM.fullmatch(self.stack):
            raise InputError(
                f"stack {self.stack[:_MOST_FAILURE]!r}: allowed are RECOVERY/CONTROLLER of `weir "
                "list`, and no files"
            )
        names = [f"up{flow}" for flow in range(self.up)]
        names += [f"down{flow}" for flow in range(self.down)]
        shares = [self.up] * self.up + [self.down] * self.down
        fields = {
            "topology": {"rate": "1gbit", "rtt": "10ms"},
            "flow": [
                self._flow(name, rate_bps and rate_bps / share)
                for name, share in zip(names, shares, strict=True)
            ],
            "measure": {
                "duration": f"{self.duration_s:.3f}s",
                "warmup": "0s",
                "sample_interval": f"{SAMPLE_S:g}s",
            },
        }
        try:
            return _native.Scenario.from_json(json.dumps(fields))
        except _native.ScenarioError as error:
            problem = str(error).removeprefix("scenario: flow.0.stack: ")
            raise InputError(f"stack {self.stack}: {problem}") from None

    def _flow(self, name: str, rate_bps: float | None) -> dict[str, Any]:
        flow = {"name": name, "stack": self.stack, "ends": "weir", "mss": self.mss}
        if rate_bps is not None:
            flow["max_pacing_rate"] = f"{max(8, int(rate_bps))}bit"
        return {**flow, "workload": {"kind": "bulk"}}


class OwnLoad:
    """One end of such flows, at work in a thread of its own."""

    def __init__(
        self,
        spec: OwnSpec,
        side: Literal["client", "server"],
        path: _native.PathSocket,
        rate_bps: float | None,
    ) -> None:
        """Takes the socket.

        Raises:
            InputError: a path test cannot run this stack, or its segments do not fit the path.
        """
        self._flows = spec.up + spec.down
        self._remote = path.remote
        scenario = spec.scenario(rate_bps)
        try:
            self._part = _native.HostPart.on_path(path, scenario, _SEED, set(spec.sends(side)))
        except _native.ScenarioError as error:
            raise InputError(f"stack {spec.stack}: {error}") from None
        self._control = _native.RunControl()
        self._thread = threading.Thread(target=self._run, name="own load", daemon=True)
        self._began_ns = 0
        self._record: dict[str, Any] = {"sent": [], "received": []}
        self.failure: str | None = None

    @property
    def moved(self) -> int:
        """Bytes sent and received so far."""
        return self._part.bytes_transferred

    def start(self) -> None:
        """Starts the flows."""
        self._began_ns = time.monotonic_ns()
        self._thread.start()

    def end(self) -> None:
        """Ends them, and waits for that."""
        self._control.stop()
        if self._thread.is_alive():
            self._thread.join()

    def logs(self) -> list[list[Point]]:
        """Bytes received by a time of the monotonic clock, of each flow received here."""
        received = sorted(self._record["received"], key=lambda flow: flow["flow"])
        return [_thinned([(self._began_ns + t, n) for t, n in flow["log"]]) for flow in received]

    def samples(self) -> list[tuple[int, int, Reading]]:
        """Time, number of the flow among those sent here, state of its connection."""
        sent = sorted(self._record["sent"], key=lambda flow: flow["flow"])
        return [
            (self._began_ns + t, index, _reading(numbers))
            for index, flow in enumerate(sent)
            for t, numbers in _readings(flow["steps"])
        ]

    def failures(self) -> list[str | None]:
        """Why each flow that was sent here failed, if it did."""
        sent = sorted(self._record["sent"], key=lambda flow: flow["flow"])
        return [_failure(flow["steps"]) for flow in sent]

    def dropped(self) -> int:
        """Datagrams for which this machine's receive buffer had no space."""
        return int(self._record.get("dropped", 0))

    def refused(self) -> int:
        """Datagrams that a packet filter of this machine dropped."""
        return self._part.refused

    def latencies(self) -> list[Point]:
        """When a request was made on a flow that was sent here, and the time until its answer."""
        return [(self._began_ns + asked, ns) for _, asked, ns in self._part.latencies()]

    def limits(self) -> list[tuple[Any, ...]]:
        """What limited the flows that were sent here, as of `HostPart.limits`."""
        return [] if self.failure is not None else list(self._part.limits())

    def _run(self) -> None:
        peers = dict.fromkeys(range(self._flows), self._remote)
        try:
            self._record = json.loads(self._part.run(self._began_ns, peers, self._control))
        except (RuntimeError, _native.ScenarioError) as error:
            self.failure = str(error)


def largest_mss(mtu: int, ip_header: int) -> int:
    """The largest segment whose datagram fits packets of `mtu` bytes, and of 1500."""
    return max(LEAST_MSS, min(mtu, 1500) - ip_header - _HEADERS)


def _readings(steps: list[Any]) -> list[tuple[int, list[int | None]]]:
    """The states in the steps of a record: `{"Sample": numbers}`, `{"Close": [numbers, …]}`."""
    found = []
    for t, step in steps:
        if isinstance(step, dict):
            if "Sample" in step:
                found.append((t, step["Sample"]))
            elif "Close" in step:
                found.append((t, step["Close"][0]))
    return found


def _reading(numbers: list[int | None]) -> Reading:
    """The numbers of a record, in the order of `record.rs`."""
    known = [number or 0 for number in numbers]
    return Reading(
        acked_bytes=known[0],
        cwnd_bytes=known[10],
        ssthresh_bytes=numbers[11],
        bytes_in_flight=known[12],
        srtt_us=known[13] // 1000,
        rttvar_us=known[14] // 1000,
        rto_us=known[15] // 1000,
        pacing_bytes_per_s=None if numbers[16] is None else numbers[16] // 8,
        delivery_bytes_per_s=None if numbers[17] is None else numbers[17] // 8,
        segments=known[1],
        sent_bytes=known[2],
        ip_bytes=known[3],
        retransmits=known[4],
        spurious=known[5],
        timeouts=numbers[6],
        busy_us=None,
        rwnd_limited_us=known[8] // 1000,
        sndbuf_limited_us=None,
        state=known[18],
    )


def _failure(steps: list[Any]) -> str | None:
    ending = steps[-1][1].get("Close") if steps and isinstance(steps[-1][1], dict) else None
    failed = ending[1].get("Failed") if ending and isinstance(ending[1], dict) else None
    return None if failed is None else str(failed)[:_MOST_FAILURE]


def _thinned(log: list[Point]) -> list[Point]:
    """A point every few milliseconds at most, and the last one."""
    kept: list[Point] = []
    for point in log:
        if len(kept) > 1 and point[0] - kept[-2][0] < LOG_NS:
            kept[-1] = point
        else:
            kept.append(point)
    return kept
