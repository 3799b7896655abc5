"""Segments as an attacker makes them: enough of docs/models/transport.md to open connections."""

from __future__ import annotations

import random
import select
import socket
import struct
import time
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
    """A connection that an attacker opens by hand, to send any bytes over it.

    It waits for nothing: `read` processes what has come.
    """

    def __init__(self, rng: random.Random, receiver: Address, host: str) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((host, 0))
        self._socket.connect(receiver)
        self._socket.setblocking(False)
        self._ports = (rng.randrange(1 << 16), receiver[1])
        self._iss = rng.randrange(1 << 32)
        self._ack = self._heard_from = 0
        self._said = 0
        """Without gaps, from the beginning on."""
        self.began = time.monotonic()
        self.is_open = False
        """It has returned the cookie,"""
        self.is_admitted = False
        """and the receiver has then said something over it."""
        self.is_over = False
        """The receiver has reset it."""
        self.first_answer = b""
        """What the receiver has said first, if that has come."""
        self.is_counted = False
        """Its answer was counted."""
        self._send(self._iss, SYN, bytes(_NOTE_BYTES), SYN_OPTIONS)

    def close(self) -> None:
        """Leaves without a word."""
        self._socket.close()

    def wait(self, seconds: float) -> bool:
        """Waits until it is open, for this long at most; returns whether it is."""
        ends = time.monotonic() + seconds
        # Not `select`, which takes no descriptor above 1023: attackers have more.
        readable = select.poll()
        readable.register(self._socket, select.POLLIN)
        while not (self.is_open or self.is_over) and (left := ends - time.monotonic()) > 0:
            readable.poll(left * 1_000)
            self.read()
        return self.is_open and not self.is_over

    def say(self, offset: int, payload: bytes) -> None:
        """Sends bytes of the stream from an offset on."""
        if offset == self._said:
            self._said += len(payload)
        self._send(self._iss + 1 + offset, ACK, payload)

    def say_all(self, payload: bytes) -> None:
        """Sends bytes from the beginning on, in segments."""
        for start in range(0, len(payload), _SEGMENT):
            self.say(start, payload[start : start + _SEGMENT])

    def send_datagram(self, number: int, payload: bytes) -> None:
        """Sends a datagram outside the stream."""
        with suppress(OSError):
            self._socket.send(struct.pack("!HHQB", *self._ports, number, 0) + payload)

    def probe(self) -> None:
        """Sends a byte that was acknowledged: a receiver that has the connection answers."""
        # RFC 9293 §3.8.4, as keep-alives do.
        self._send(self._iss, ACK, b"\0")

    def reset(self) -> None:
        """Ends the connection."""
        self._send(self._iss + 1 + self._said, RST | ACK, b"")

    def read(self) -> None:
        """Processes what has come, and acknowledges what the receiver says."""
        before = self._ack
        with suppress(OSError):
            while True:
                segment = parse(self._socket.recv(65535))
                if segment is not None:
                    self._handle(segment)
        if self.is_admitted and self._ack != before:
            self._send(self._iss + 1 + self._said, ACK, b"")

    def _handle(self, segment: Segment) -> None:
        if segment.flags & RST:
            self.is_over = True
        elif not self.is_open:
            if segment.flags == SYN | ACK:
                self._return_cookie(segment)
        else:
            self.is_admitted = True
            if segment.payload and not segment.flags & SYN:
                if segment.seq == self._heard_from:
                    self.first_answer = segment.payload
                # Numbers start at random, so that those of a few kB seldom pass 2^32.
                self._ack = max(self._ack, segment.seq + len(segment.payload))

    def _return_cookie(self, answer: Segment) -> None:
        self._ack = 0
        self._send(self._iss, SYN, answer.payload, SYN_OPTIONS)
        self._ack = self._heard_from = (answer.seq + 1) & 0xFFFFFFFF
        self._send(self._iss + 1, ACK, b"")
        self.is_open = True

    def _send(self, seq: int, flags: int, payload: bytes, options: bytes = b"") -> None:
        source, destination = self._ports
        segment = Segment(source, destination, seq, self._ack, flags, payload)
        # A full buffer is a network that loses.
        with suppress(OSError):
            self._socket.send(emit(segment, options))


_SEGMENT = 1_400
"""Payload of a segment."""
