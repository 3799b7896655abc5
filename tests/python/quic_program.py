"""A sender with the rules of RFC 9002, its client, and mistakes that `weir conform` finds.

    python3 quic_program.py server PORT QLOG MISTAKE
    python3 quic_program.py client HOST PORT BYTES MISTAKE

Packets are not QUIC's: a letter, numbers, and padding. MISTAKE is `none` or one of `MISTAKES`.
"""

from __future__ import annotations

import json
import math
import socket
import struct
import sys
import time
from dataclasses import dataclass
from pathlib import Path

SIZE = 1200
ACKNOWLEDGED = 60
"""Numbers that an acknowledgement repeats."""
MISTAKES = {
    "large-start": "Q1",
    "overfull": "Q10",
    "no-collapse": "R9",
    "no-backoff": "Q6",
    "late-probe": "Q6",
    "no-halving": "Q3",
    "each-loss": "Q7",
    "no-floor": "Q7",
    "first-gap": "Q9",
    "fast-growth": "Q11",
    "tripling": "Q2",
    "hasty": "Q12",
    "lazy-rtt": "Q13",
    "forgetful": "Q14",
    "greedy": "Q15",
    "amplifier": "Q16",
    "small-initial": "Q16",
}
"""Each with the case that finds it."""


@dataclass(frozen=True)
class Sent:
    """A packet in flight."""

    at: float
    chunk: int


class Sender:
    """NewReno, loss detection and probes, driven by acknowledgements and the clock."""

    def __init__(self, chunks: float, mistake: str, log: Log) -> None:
        self.chunks, self.mistake, self.log = chunks, mistake, log
        self.window = SIZE * (60 if mistake == "large-start" else 10)
        self.threshold = math.inf
        self.flight: dict[int, Sent] = {}
        self.again: list[int] = []
        self.next_number = self.next_chunk = 0
        self.largest, self.recovery = -1, -math.inf
        self.last_sent = self.acknowledged_at = 0.0
        self.probes = 0
        self.rtt = self.variation = self.latest = 0.0

    def in_flight(self) -> int:
        return SIZE * len(self.flight)

    def packet(self, now: float, *, is_probe: bool = False) -> bytes | None:
        """The next packet, if there is one and the window allows it."""
        limit = self.window + SIZE * (20 if self.mistake == "overfull" else 0)
        if not is_probe and self.in_flight() + SIZE > limit:
            return None
        if self.again:
            chunk = self.again.pop(0)
        elif is_probe and self.flight:
            chunk = next(iter(self.flight.values())).chunk
        elif self.next_chunk < self.chunks:
            chunk, self.next_chunk = self.next_chunk, self.next_chunk + 1
        else:
            return None
        number, self.next_number = self.next_number, self.next_number + 1
        self.flight[number] = Sent(now, chunk)
        self.last_sent = now
        return struct.pack("!cQQ", b"D", number, chunk).ljust(SIZE, b"\0")

    def on_ack(self, numbers: list[int], now: float) -> None:
        new = sorted(number for number in numbers if number in self.flight)
        if not new:
            return
        self.probes = 0
        if new[-1] > self.largest:
            self.largest = new[-1]
            self._on_rtt(now - self.flight[self.largest].at)
        for number in new:
            if self.flight.pop(number).at > self.recovery:
                self._grow()
        self._detect(now)
        self.acknowledged_at = now
        self.log.write(self, now)

    def _on_rtt(self, sample: float) -> None:
        self.latest = sample / 2 if self.mistake == "lazy-rtt" else sample
        if not self.rtt:
            self.rtt, self.variation = self.latest, self.latest / 2
        self.variation += (abs(self.rtt - self.latest) - self.variation) / 4
        self.rtt += (self.latest - self.rtt) / 8

    def _grow(self) -> None:
        if self.window < self.threshold:
            self.window += SIZE * (2 if self.mistake == "tripling" else 1)
        else:
            self.window += SIZE * SIZE * (4 if self.mistake == "fast-growth" else 1) // self.window

    def _detect(self, now: float) -> None:
        packets = 1 if self.mistake == "first-gap" else 3
        delay = 9 / 8 * max(self.rtt, self.latest)
        lost = {
            number: sent
            for number, sent in self.flight.items()
            if number <= self.largest - packets or (number < self.largest and sent.at < now - delay)
        }
        for number, sent in lost.items():
            del self.flight[number]
            if self.mistake != "forgetful":
                self.again.append(sent.chunk)
        times = [sent.at for sent in lost.values()]
        for at in times:
            if at > self.recovery or self.mistake == "each-loss":
                self._reduce(now)
        # All that was sent since the last acknowledgement, over three timeouts.
        since = [at for at in times if at > self.acknowledged_at]
        is_persistent = since and max(since) - min(since) > 3 * self._timeout()
        if is_persistent and self.mistake != "no-collapse":
            self.window = 2 * SIZE
            self.recovery = -math.inf

    def _reduce(self, now: float) -> None:
        self.recovery = now
        if self.mistake == "greedy":
            self.window = 200 * SIZE
            return
        share = {"no-halving": 0.9, "no-floor": 0.05}.get(self.mistake, 0.5)
        least = 0 if self.mistake == "no-floor" else 2 * SIZE
        self.window = max(int(self.window * share), least)
        self.threshold = self.window
        if self.mistake == "no-floor":
            self.window = max(self.window, SIZE)

    def _timeout(self) -> float:
        return self.rtt + max(4 * self.variation, 0.001) + 0.025 if self.rtt else 1.0

    def probe_at(self) -> float:
        if not self.flight:
            return math.inf
        doubled = 1 if self.mistake == "no-backoff" else 2**self.probes
        late = 20.0 if self.mistake == "late-probe" and self.probes > 3 else 0.0
        return self.last_sent + self._timeout() * doubled + late

    def on_timeout(self) -> None:
        self.probes += 1


class Log:
    """The sender's state as qlog."""

    def __init__(self, path: str) -> None:
        self.file = Path(path).open("w", buffering=1, encoding="utf-8")  # noqa: SIM115

    def write(self, sender: Sender, now: float) -> None:
        data = {
            "congestion_window": sender.window,
            "bytes_in_flight": sender.in_flight(),
            "latest_rtt": sender.latest * 1e3,
            "smoothed_rtt": sender.rtt * 1e3,
        }
        event = {"time": now * 1e3, "name": "recovery:metrics_updated", "data": data}
        self.file.write(f"{json.dumps(event)}\n")


def serve(port: int, path: str, mistake: str) -> None:
    sock = _socket(port)
    log = Log(path)
    first, client = sock.recvfrom(2048)
    sender = Sender(math.inf, mistake, log)
    log.write(sender, time.monotonic())
    budget, started, wait = 3 * len(first), False, 1.0
    while not started:
        for _ in range(10 if mistake == "amplifier" else 1):
            if budget >= SIZE or mistake == "amplifier":
                sock.sendto(b"H".ljust(SIZE, b"\0"), client)
                budget -= SIZE
        packet = _received(sock, wait)
        wait *= 1 if packet else 2
        budget += 3 * len(packet or b"")
        if packet and packet[:1] == b"F":
            (size,) = struct.unpack_from("!Q", packet, 1)
            sender.chunks, started = math.ceil(size / SIZE), True
    while True:
        now = time.monotonic()
        if now >= sender.probe_at():
            sender.on_timeout()
            sock.sendto(sender.packet(now, is_probe=True) or b"", client)
        while (packet := sender.packet(now)) is not None:
            sock.sendto(packet, client)
        log.write(sender, now)
        packet = _received(sock, min(sender.probe_at() - now, 1.0))
        while packet:
            if packet[:1] == b"A":
                numbers = struct.unpack_from(f"!{(len(packet) - 1) // 8}Q", packet, 1)
                sender.on_ack(list(numbers), time.monotonic())
            packet = _received(sock, 0)


def fetch(host: str, port: int, size: int, mistake: str) -> None:
    sock, server = _socket(0), (host, port)
    wait = 0.1 if mistake == "hasty" else 1.0
    length = 600 if mistake == "small-initial" else SIZE
    sock.sendto(b"I".ljust(length, b"\0"), server)
    while (packet := _received(sock, wait)) is None or packet[:1] != b"H":
        sock.sendto(b"I".ljust(length, b"\0"), server)
        wait *= 2
    request, wait = struct.pack("!cQ", b"F", size), 1.0
    sock.sendto(request, server)
    chunks, newest = set[int](), list[int]()
    while len(chunks) < math.ceil(size / SIZE):
        packet = _received(sock, wait)
        if packet is None and not chunks:
            sock.sendto(request, server)
        elif packet and packet[:1] == b"D":
            number, chunk = struct.unpack_from("!QQ", packet, 1)
            chunks.add(chunk)
            newest = [*newest, number][-ACKNOWLEDGED:]
            sock.sendto(struct.pack(f"!c{len(newest)}Q", b"A", *newest), server)
        elif packet and packet[:1] == b"H":
            sock.sendto(request, server)


def _socket(port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    sock.bind(("0.0.0.0", port))  # noqa: S104
    return sock


def _received(sock: socket.socket, wait: float) -> bytes | None:
    sock.settimeout(wait if wait > 0 else 0.0)
    try:
        return sock.recv(2048)
    except (TimeoutError, BlockingIOError):
        return None


if __name__ == "__main__":
    end, *words = sys.argv[1:]
    if end == "server":
        serve(int(words[0]), words[1], words[2])
    else:
        fetch(words[0], int(words[1]), int(words[2]), words[3])
