"""What `iperf3 -J` prints, from 3.1 on: streams of TCP or UDP.

Source: iperf 3.1 to 3.17, `iperf_api.c`. `rtt` is in microseconds; 3.1 has neither `rtt` nor the
names of congestion controls. `end.streams` has sender and receiver of a stream; `-R` reverses who
sends, not who is called sender. Omitted intervals are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weir.base.errors import InputError
from weir.importing.runs import UNKNOWN, ImportedFlow, ImportedRun, Sample

_UDP = "udp"


def is_own(document: Mapping[str, Any]) -> bool:
    """Whether a document is of iperf3."""
    return "intervals" in document and "start" in document and "end" in document


def run(file: Path, document: Mapping[str, Any]) -> ImportedRun:
    """The run of a file.

    Raises:
        InputError: iperf3 failed, or the file has no stream.
    """
    if "error" in document and not document["end"].get("streams"):
        raise InputError(f"{file}: iperf3 failed: {document['error']}")
    end = document["end"]
    start = document["start"].get("test_start", {})
    is_udp = str(start.get("protocol", "TCP")).upper() == "UDP"
    stack = _UDP if is_udp else _control(end, document)
    samples = _samples(document)
    flows = [
        _flow(number, stream, stack, samples)
        for number, stream in enumerate(end.get("streams", []))
    ]
    if not flows:
        raise InputError(f"{file}: no stream of iperf3 came to its end")
    return ImportedRun("iperf3", flows)


def _control(end: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    """The congestion control of the sender, which iperf3 names since 3.2."""
    return str(end.get("sender_tcp_congestion") or document.get("sender_tcp_congestion") or UNKNOWN)


def _flow(
    number: int, stream: Mapping[str, Any], stack: str, samples: Mapping[int, list[Sample]]
) -> ImportedFlow:
    both = stream.get(_UDP, {})
    sender = stream.get("sender", both)
    receiver = stream.get("receiver", both)
    arrived = receiver.get("bytes", sender.get("bytes", 0))
    if both:
        arrived = both.get("bytes", 0) * (1 - both.get("lost_percent", 0) / 100)
    times = receiver if receiver.get("end") else sender
    rtt = sender.get("mean_rtt")
    return ImportedFlow(
        f"stream {number + 1}",
        stack,
        float(times.get("start", 0.0)),
        float(times.get("end", 0.0)),
        float(arrived),
        samples.get(sender.get("socket", both.get("socket", -1)), []),
        float(sender.get("bytes", arrived)),
        both.get("packets"),
        sender.get("retransmits"),
        None if rtt is None else rtt / 1e3,
    )


def _samples(document: Mapping[str, Any]) -> dict[int, list[Sample]]:
    found: dict[int, list[Sample]] = {}
    for interval in document["intervals"]:
        for one in interval.get("streams", []):
            if one.get("omitted"):
                continue
            own = found.setdefault(one.get("socket", -1), [])
            before = own[-1] if own else Sample(0.0, None, retransmits=0, acked_bytes=0.0)
            rtt = one.get("rtt")
            own.append(
                Sample(
                    float(one["end"]),
                    float(one["bits_per_second"]) / 1e6,
                    None if rtt is None else rtt / 1e3,
                    one.get("snd_cwnd"),
                    (before.retransmits or 0) + one.get("retransmits", 0),
                    (before.acked_bytes or 0.0) + one["bytes"],
                )
            )
    return found
