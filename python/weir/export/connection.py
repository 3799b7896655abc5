"""Events at one end of a connection, as qlog has them: numbered packets, frames, losses.

TCP numbers bytes and qlog packets, so the sender's side remembers which packet carried which bytes
last. A packet counts as acknowledged when a cumulative or a selective acknowledgement covers what
it carried, and as lost when the same bytes are sent again.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Any

from weir.export.capture_file import CapturedSegment

Event = tuple[str, dict[str, Any]]
"""An event's name, and its data."""

_SENT, _RECEIVED, _LOST = (
    "transport:packet_sent",
    "transport:packet_received",
    "recovery:packet_lost",
)
_FLAGS = ("FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR")
_ACK = 0x10
_SPACE = 1 << 32


class Sender:
    """The sender's side: it sends data and receives acknowledgements."""

    def __init__(self) -> None:
        self._sent = 0
        self._received = 0
        self._place = _Unwrapped()
        self._starts: list[int] = []
        self._carried: dict[int, tuple[int, int]] = {}
        """Of what is not acknowledged: by its beginning, its end and the packet that carried it."""

    def events(self, seen: CapturedSegment, *, forward: bool) -> Iterator[Event]:
        """What a segment means here, on its way forward or back."""
        if not forward:
            acked = self._acknowledged(seen) if seen.flags & _ACK and not seen.is_damaged else []
            frames = [{"frame_type": "ack", "acked_ranges": _ranges(acked)}] if acked else []
            yield _RECEIVED, _packet(self._received, seen, frames)
            self._received += 1
            return
        number, self._sent = self._sent, self._sent + 1
        start = self._place.of(seen.seq)
        if seen.payload == 0:
            yield _SENT, _packet(number, seen, [])
            return
        before = self._carried.get(start)
        if before is None:
            insort(self._starts, start)
        else:
            yield _LOST, {"header": _header(before[1]), "trigger": "sent_again"}
        self._carried[start] = (start + seen.payload, number)
        yield _SENT, _packet(number, seen, [_stream(self._place, start, seen.payload)])

    def _acknowledged(self, seen: CapturedSegment) -> list[int]:
        """The packets that a segment acknowledges for the first time."""
        edge = self._place.of(seen.ack)
        first = self._starts[0] if self._starts else edge
        blocks = [(first, edge)]
        blocks += [(self._place.of(left), self._place.of(right)) for left, right in seen.sack]
        found = []
        for left, right in blocks:
            at = bisect_left(self._starts, left)
            while at < len(self._starts) and self._starts[at] < right:
                end, number = self._carried[self._starts[at]]
                if end > right:
                    break
                found.append(number)
                del self._carried[self._starts[at]]
                del self._starts[at]
        return sorted(found)


class Receiver:
    """The receiver's side: it receives data and sends acknowledgements."""

    def __init__(self) -> None:
        self._sent = 0
        self._received = 0
        self._place = _Unwrapped()

    def events(self, seen: CapturedSegment, *, forward: bool) -> Iterator[Event]:
        """What a segment means here, on its way forward or back."""
        if not forward:
            yield _SENT, _packet(self._sent, seen, [])
            self._sent += 1
            return
        start = self._place.of(seen.seq)
        frames = [_stream(self._place, start, seen.payload)] if seen.payload else []
        yield _RECEIVED, _packet(self._received, seen, frames)
        self._received += 1


class _Unwrapped:
    """Sequence numbers without their limit of 32 bits, near the newest of them."""

    def __init__(self) -> None:
        self._newest: int | None = None
        self.first = 0

    def of(self, number: int) -> int:
        """The sequence number as it would be without a limit."""
        if self._newest is None:
            self._newest = self.first = number
        distance = (number - self._newest + _SPACE // 2) % _SPACE - _SPACE // 2
        self._newest = max(self._newest, self._newest + distance)
        return self._newest if distance >= 0 else self._newest + distance


def _packet(number: int, seen: CapturedSegment, frames: list[dict[str, Any]]) -> dict[str, Any]:
    flags = [name for bit, name in enumerate(_FLAGS) if seen.flags >> bit & 1]
    tcp: dict[str, Any] = {"seq": seen.seq, "flags": flags}
    if seen.flags & _ACK:
        tcp["ack"] = seen.ack
    if seen.sack:
        tcp["sack"] = [list(block) for block in seen.sack]
    packet: dict[str, Any] = {
        "header": _header(number),
        "raw": {"length": seen.ip_len, "payload_length": seen.payload},
        "frames": frames,
        "tcp": tcp,
    }
    if seen.is_marked:
        packet["ecn"] = "CE"
    if seen.is_damaged:
        packet["is_damaged"] = True
    return packet


def _header(number: int) -> dict[str, Any]:
    return {"packet_type": "1RTT", "packet_number": number}


def _stream(place: _Unwrapped, start: int, length: int) -> dict[str, Any]:
    # The SYN takes the first number.
    offset = start - place.first - 1
    return {"frame_type": "stream", "stream_id": 0, "offset": offset, "length": length}


def _ranges(numbers: list[int]) -> list[list[int]]:
    """Sorted numbers as inclusive ranges."""
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found
