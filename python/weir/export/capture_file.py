"""Reading the captures that the simulator writes: TCP segments, one after the other."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_ENHANCED_PACKET = 6
_BLOCK = struct.Struct("<II")
_PACKET = struct.Struct("<IIIII")
_TCP = struct.Struct(">HHIIBBH")
_IP_HEADER, _TCP_PROTOCOL = 20, 6
_END, _NOP, _SACK = 0, 1, 5


@dataclass(frozen=True, slots=True)
class CapturedSegment:
    """A TCP segment at an interface. Sequence numbers are modulo 2^32."""

    t_s: float
    source: bytes
    destination: bytes
    is_marked: bool
    is_damaged: bool
    ip_len: int
    seq: int
    ack: int
    flags: int
    payload: int
    sack: tuple[tuple[int, int], ...]


def segments(path: Path) -> Iterator[CapturedSegment]:
    """The TCP segments of a capture with one interface, in order. Nothing is kept in memory."""
    with path.open("rb") as file:
        while len(head := file.read(_BLOCK.size)) == _BLOCK.size:
            kind, length = _BLOCK.unpack(head)
            body = file.read(length - _BLOCK.size)
            if kind == _ENHANCED_PACKET and (seen := _segment(body)) is not None:
                yield seen


def _segment(body: bytes) -> CapturedSegment | None:
    _, high, low, kept, _ = _PACKET.unpack_from(body)
    packet = body[_PACKET.size : _PACKET.size + kept]
    if packet[9] != _TCP_PROTOCOL:
        return None
    _, _, seq, ack, offset, flags, _ = _TCP.unpack_from(packet, _IP_HEADER)
    header = (offset >> 4) * 4
    ip_len = int.from_bytes(packet[2:4])
    options = packet[_IP_HEADER + _TCP.size + 4 : _IP_HEADER + header]
    return CapturedSegment(
        t_s=((high << 32) | low) / 1e9,
        source=packet[12:16],
        destination=packet[16:20],
        is_marked=packet[1] & 3 == 3,
        # Flags, which only damaged packets have, follow the padded bytes.
        is_damaged=len(body) > _PACKET.size + (kept + 3) // 4 * 4 + 4,
        ip_len=ip_len,
        seq=seq,
        ack=ack,
        flags=flags,
        payload=ip_len - _IP_HEADER - header,
        sack=_sack(options),
    )


def _sack(options: bytes) -> tuple[tuple[int, int], ...]:
    at = 0
    while at < len(options) and options[at] != _END:
        if options[at] == _NOP:
            at += 1
            continue
        if options[at] == _SACK:
            edges = struct.unpack_from(f">{(options[at + 1] - 2) // 4}I", options, at + 2)
            return tuple(zip(edges[::2], edges[1::2], strict=True))
        at += options[at + 1]
    return ()
