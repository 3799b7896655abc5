"""Segments as an attacker makes them: enough of docs/models/transport.md to open connections."""

from __future__ import annotations

import random
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass

SYN, RST, ACK = 0x02, 0x04, 0x10
_HEADER = struct.Struct("!HHIIBBHHH")
_NOTE_BYTES = 24
SYN_OPTIONS = bytes([2, 4, 5, 140, 4, 2, 1, 3, 3, 7, 0, 0])
"""Options of a SYN: MSS 1420, SACK permitted, window scale 7."""

Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Segment:
    """The fields of a segment that an attacker reads."""

    source: int
    destination: int
    seq: int
    ack: int
    flags: int
    payload: bytes


def emit(segment: Segment, options: bytes = b"") -> bytes:
    """The datagram, with a right checksum."""
    offset = (20 + len(options)) // 4 << 4
    header = _HEADER.pack(
        segment.source,
        segment.destination,
        segment.seq & 0xFFFFFFFF,
        segment.ack & 0xFFFFFFFF,
        offset,
        segment.flags,
        0xFFFF,
        0,
        0,
    )
    datagram = bytearray(header + options + segment.payload)
    datagram[16:18] = _checksum(datagram).to_bytes(2)
    return bytes(datagram)


def parse(datagram: bytes) -> Segment | None:
    """The segment, unless it is too short to be one."""
    if len(datagram) < _HEADER.size:
        return None
    source, destination, seq, ack, offset, flags, *_ = _HEADER.unpack_from(datagram)
    return Segment(source, destination, seq, ack, flags, datagram[(offset >> 4) * 4 :])


def options(datagram: bytes) -> bytes:
    """The options of a segment."""
    return datagram[_HEADER.size : (datagram[12] >> 4) * 4]


def _checksum(datagram: bytearray) -> int:
    """RFC 9293's, over the segment, the protocol's number and the length."""
    padded = datagram + b"\0" * (len(datagram) % 2)
    total: int = 6 + len(datagram) + sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Connection:
    """A connection that an attacker opens by hand, to send any bytes over it."""

    def __init__(self, rng: random.Random, receiver: Address, host: str) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((host, 0))
        self._socket.connect(receiver)
        self._socket.settimeout(0.2)
        self._ports = (rng.randrange(1 << 16), receiver[1])
        self._iss = rng.randrange(1 << 32)
        self._ack = self._said = self._heard_from = 0
        self._first: int | None = None
        self.is_open = self._open()

    def close(self) -> None:
        """Leaves without a word."""
        self._socket.close()

    def say(self, offset: int, payload: bytes) -> None:
        """Sends bytes of the stream from an offset on."""
        self._said = max(self._said, offset + len(payload))
        self._send(self._iss + 1 + offset, ACK, payload)

    def send_datagram(self, number: int, payload: bytes) -> None:
        """Sends a datagram outside the stream."""
        with suppress(OSError):
            self._socket.send(struct.pack("!HHQB", *self._ports, number, 0) + payload)

    def hear(self) -> None:
        """Acknowledges whatever has come."""
        self._read()
        self._send(self._iss + 1, ACK, b"")

    def first_answer(self) -> int | None:
        """The first byte of what the receiver has said, if that has come."""
        self._read()
        return self._first

    def reset(self) -> None:
        """Ends the connection."""
        self._send(self._iss + 1 + self._said, RST | ACK, b"")

    def _read(self) -> None:
        self._socket.setblocking(False)
        with suppress(OSError):
            while True:
                segment = parse(self._socket.recv(65535))
                if segment is None:
                    continue
                if segment.flags & RST:
                    self.is_open = False
                if segment.payload:
                    if segment.seq == self._heard_from:
                        self._first = segment.payload[0]
                    self._ack = max(self._ack, segment.seq + len(segment.payload))

    def _open(self) -> bool:
        self._send(self._iss, SYN, bytes(_NOTE_BYTES), SYN_OPTIONS)
        try:
            answer = parse(self._socket.recv(2048))
        except OSError:
            return False
        if answer is None or answer.flags != SYN | ACK:
            return False
        self._ack = 0
        self._send(self._iss, SYN, answer.payload, SYN_OPTIONS)
        self._ack = self._heard_from = (answer.seq + 1) & 0xFFFFFFFF
        self._send(self._iss + 1, ACK, b"")
        return True

    def _send(self, seq: int, flags: int, payload: bytes, options: bytes = b"") -> None:
        source, destination = self._ports
        segment = Segment(source, destination, seq, self._ack, flags, payload)
        # A full buffer is a network that loses.
        with suppress(OSError):
            self._socket.send(emit(segment, options))
