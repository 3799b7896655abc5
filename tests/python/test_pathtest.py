"""`weir test` and its server: what they measure, whom they admit, and what a server endures."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import Invoke, free_port, until
from test_schemas import check, printed

import weir
from weir import _native
from weir.base.errors import InputError, StoppedError, WeirError
from weir.pathtest.client import Client
from weir.pathtest.server import Server, split
from weir.pathtest.session import Limits
from weir.pathtest.tables import tables
from weir.probes import channel, wire
from weir.probes import marks as marks_of
from weir.probes.channel import Channel, ChannelError, Lines
from weir.probes.load import CHUNK, Receiver
from weir.probes.marks import MARKS, MarkCount, counted, verdict
from weir.probes.own import OwnSpec
from weir.probes.probes import Clocks, Probe
from weir.probes.record import Order, Record
from weir.probes.responsiveness import in_words, round_trips_per_minute, trimmed_mean
from weir.probes.wire import Datagram

KEY, OTHER = bytes(range(32)), bytes(32)
SHORT = Order("reno", "up", 1, 0.5, 0.1)
QUICK = (
    *("--duration", "500ms", "--cc", "reno", "--direction", "up", "-n", "1"),
    *("--no-report", "--quiet"),
)


@pytest.fixture(autouse=True)
def _short_phases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weir.pathtest.measuring.IDLE_S", 0.4)
    monkeypatch.setattr("weir.pathtest.measuring.AFTER_S", 0.1)


@contextmanager
def serving(
    key: bytes | None = None, limits: Limits | None = None, log: list[str] | None = None
) -> Iterator[str]:
    """A server on loopback; its `HOST:PORT`."""
    lines = [] if log is None else log
    with Server("127.0.0.1:0", key, limits or Limits(), lines.append) as server:
        yield f"127.0.0.1:{server.address[1]}"


def measured(host: str, order: Order = SHORT) -> Record:
    with Client(host, None) as client:
        return client.run(order, lambda _: None, lambda: False)


def key_file(folder: Path, key: bytes) -> Path:
    file = folder / f"{key[1]}.key"
    file.write_text(key.hex(), encoding="ascii")
    file.chmod(0o600)
    return file


# What is computed


def test_responsiveness_is_the_mean_of_two_kinds_of_connections() -> None:
    assert trimmed_mean([10.0] * 19 + [1000.0]) == 10.0
    assert round_trips_per_minute([20.0], [40.0], [60.0]) == (60_000 / 30 + 60_000 / 60) / 2
    assert round_trips_per_minute([20.0], [40.0], []) is None
    assert [in_words(rpm) for rpm in (299, 300, 1000, 6000)] == [
        "poor",
        "fair",
        "good",
        "excellent",
    ]


def test_clocks_find_offset_and_drift() -> None:
    """The server's clock is 5 s ahead and 50 ppm fast; queues make round trips asymmetric."""

    def server(t: float) -> int:
        return round(5e9 + t * (1 + 50e-6))

    rng, probes = random.Random(1), []  # noqa: S311
    for number in range(200):
        sent = number * 100_000_000
        up, down = 20e6 + rng.random() * 9e6, 20e6 + rng.random() * 9e6
        if number in (3, 190):
            up = down = 20e6
        received = server(sent + up)
        probes.append(Probe(sent, received, received + 1000, round(sent + up + down + 1000)))
    clocks = Clocks.of(probes[:50], probes[150:])
    assert clocks is not None
    assert clocks.drift == pytest.approx(50e-6, rel=0.01)
    assert clocks.error_ns == pytest.approx(20e6, rel=0.01)
    for t in (0, 10_000_000_000):
        assert clocks.to_client(server(t)) == pytest.approx(t, abs=2000)
    assert Clocks.of([], []) is None


def test_requests_are_found_however_the_data_is_cut() -> None:
    rng = random.Random(2)  # noqa: S311
    numbers = [0, 7, 0, 0, 8, 9]
    data = b"".join(number.to_bytes(8, "big").ljust(CHUNK, b"\0") for number in numbers)
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with theirs:
        receiver = Receiver.__new__(Receiver)
        receiver.connection, receiver.bytes, receiver.log = ours, 0, [(0, 0)]
        receiver._asks, receiver._offset, receiver._head = False, 0, b""
        at = 0
        while at < len(data):
            step = rng.choice([1, 3, 8, 100, 20_000])
            receiver._take(memoryview(data[at : at + step]))
            at += step
        ours.close()
        assert theirs.recv(100) == b"".join(n.to_bytes(8, "big") for n in numbers if n)
    assert receiver.bytes == len(data)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("example.org", ("example.org", 9077)),
        ("example.org:1", ("example.org", 1)),
        ("[::1]", ("::1", 9077)),
        ("[::1]:80", ("::1", 80)),
        (":0", ("", 0)),
    ],
)
def test_addresses(text: str, found: tuple[str, int]) -> None:
    assert split(text, "HOST") == found


@pytest.mark.parametrize("text", ["::1", "a:b", "a:70000", "a:-1", "http://a", "a:²"])
def test_addresses_that_are_none(text: str) -> None:
    with pytest.raises(InputError, match=f"HOST {text}: "):
        split(text, "HOST")


# Whom a server admits


def test_keys_must_be_the_same(tmp_path: Path, invoke: Invoke) -> None:
    ours, other = key_file(tmp_path, KEY), key_file(tmp_path, OTHER)
    with serving(KEY) as host:
        for options, reason in [
            ((), "the server demands a key"),
            (("--key-file", other), "the server has another key"),
            (("--key-file", tmp_path / "none"), "the key file"),
        ]:
            result = invoke("test", host, *QUICK, *options)
            assert (result.exit_code, reason in result.output) == (2, True), result.output
        result = invoke("test", host, *QUICK, "--key-file", ours)
        assert result.exit_code == 0, result.output
    with serving() as host:
        result = invoke("test", host, *QUICK, "--key-file", ours)
        assert result.exit_code == 2
        assert "the server has no key" in result.output


def test_a_server_refuses_a_client_that_does_not_prove_its_key() -> None:
    """The client here does not check the server's proof, as ours does."""
    log = list[str]()
    with serving(KEY, log=log) as host, socket.socket() as tcp:
        tcp.connect(("127.0.0.1", int(host.rpartition(":")[2])))
        lines = Lines(tcp)
        tcp.sendall(wire.CONTROL_LINE)
        assert json.loads(lines.read(1000, time.monotonic() + 2))["key"]
        tcp.sendall(json.dumps({"nonce": "00" * 32, "proof": "00" * 32}).encode() + b"\n")
        answer = json.loads(lines.read(1000, time.monotonic() + 2))
        assert answer == {"refused": "the server has another key"}
        with pytest.raises(ChannelError, match="closed"):
            lines.read(1000, time.monotonic() + 2)
    assert log == ["127.0.0.1: refused: it has another key"]


def test_a_client_refuses_a_server_that_does_not_prove_its_key() -> None:
    def pretend(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            lines = Lines(connection)
            lines.read(1000, time.monotonic() + 2)
            connection.sendall(json.dumps({"nonce": "00" * 32, "key": True}).encode() + b"\n")
            lines.read(1000, time.monotonic() + 2)
            connection.sendall(json.dumps({"proof": "00" * 32}).encode() + b"\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=pretend, args=(listener,))
        thread.start()
        with pytest.raises(InputError, match="the server has another key"):
            Client(f"127.0.0.1:{listener.getsockname()[1]}", KEY)
        thread.join()


def test_a_server_needs_a_key_or_the_word_that_it_has_none(invoke: Invoke, tmp_path: Path) -> None:
    file = key_file(tmp_path, KEY)
    for options in ((), ("--no-key", "--key-file", file)):
        result = invoke("test", "--server", *options)
        assert result.exit_code == 2
        assert "--no-key" in result.output
    for option, value, least in (("--max-rate", "999bit", "1kbit"), ("--max-time", "0s", "500ms")):
        result = invoke("test", "--server", "--no-key", "--listen", "127.0.0.1:0", option, value)
        assert result.exit_code == 2
        assert f"{option} {value}: allowed is {least} or more" in result.output
    file.write_text("abc", encoding="ascii")
    result = invoke("test", "--server", "--key-file", file)
    assert result.exit_code == 2
    assert "64 hexadecimal digits" in result.output


def test_no_message_can_be_changed_repeated_or_left_out() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        sender = Channel(Lines(ours), KEY, b"client", b"server", channel.SHORT)
        sender.send(do="first")
        sender.send(do="second")
        lines = theirs.recv(4096).splitlines(keepends=True)
    faults = {
        "nothing": lines,
        "changed": [lines[0].replace(b"first", b"frist")],
        "repeated": [lines[0], lines[0]],
        "left out": [lines[1]],
        "too long": [b"x" * (channel.SHORT + 100_000)],
        "no text": [b"\n"],
    }
    for fault, sent in faults.items():
        raw, end = socket.socketpair()
        with raw, end:
            receiver = Channel(Lines(end), KEY, b"server", b"client", channel.SHORT)
            raw.sendall(b"".join(sent))
            if fault == "nothing":
                assert [receiver.receive(1)["do"], receiver.receive(1)["do"]] == ["first", "second"]
            else:
                for _ in sent[1:]:
                    receiver.receive(1)
                with pytest.raises(ChannelError):
                    receiver.receive(1)


# What a server endures


def test_random_bytes_get_no_answer_and_do_no_harm() -> None:
    rng, log = random.Random(3), list[str]()  # noqa: S311
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with serving(KEY, log=log) as host, udp:
        address = ("127.0.0.1", int(host.rpartition(":")[2]))
        udp.settimeout(0.3)
        for _ in range(300):
            udp.sendto(rng.randbytes(rng.choice([0, 1, 40, 64, 1200])), address)
        starts = [b"", wire.CONTROL_LINE, b"weir-load ", b"weir-echo ", b"GET / HTTP/1.1\r\n\r\n"]
        for number in range(60):
            with socket.create_connection(address) as tcp:
                tcp.settimeout(2)
                start = starts[number % len(starts)]
                answer = b""
                with contextlib.suppress(OSError):  # the server may close it at once
                    tcp.sendall(start + rng.randbytes(rng.choice([1, 100, 5000])) + b"\n")
                    tcp.shutdown(socket.SHUT_WR)
                    while new := tcp.recv(4096):
                        answer += new
                # The first line of a client is answered by a nonce, and all else by nothing.
                assert bool(answer) <= (start == wire.CONTROL_LINE)
        with pytest.raises(TimeoutError):
            udp.recv(100)
        with Client(host, KEY) as client:
            record = client.run(SHORT, lambda _: None, lambda: False)
        assert record.flows[0].log[-1][1] > 0


def test_a_datagram_is_answered_only_with_the_token_and_from_the_host_of_the_client() -> None:
    with serving() as host, Client(host, None) as client:
        token = client.request(Order("reno", "up", 0, 1.0, 0.1), 1440)
        server = ("127.0.0.1", int(host.rpartition(":")[2]))

        def answers(
            token: bytes, source: str, length: int = wire.PROBE_BYTES, kind: int = wire.PROBE
        ) -> bool:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
                udp.bind((source, 0))
                udp.settimeout(0.2)
                udp.sendto(Datagram(token, kind, 1, 2).bytes(length), server)
                try:
                    assert len(udp.recv(4096)) == length
                    return True
                except TimeoutError:
                    return False

        assert answers(token, "127.0.0.1")
        assert not answers(token, "127.0.0.2")
        assert not answers(token[::-1], "127.0.0.1")
        assert not answers(token, "127.0.0.1", wire.PROBE_BYTES - 16)
        assert not answers(token, "127.0.0.1", wire.PROBE_BYTES + 1)
        assert not answers(token, "127.0.0.1", kind=wire.DATA)
        with socket.create_connection(server) as tcp:
            tcp.sendall(wire.echo_line(token[::-1]))
            assert tcp.recv(10) == b""


def test_limits_are_enforced(invoke: Invoke) -> None:
    limits = Limits(rate_bps=8e6, time_s=1.0, clients=1)
    with serving(limits=limits) as host:
        for options, reason in [
            (("--duration", "2s"), "at most 1 s"),
            (("--udp", "9mbit", "--duration", "1s"), "at most 8 Mbit/s"),
        ]:
            result = invoke("test", host, "--no-report", *options)
            assert (result.exit_code, reason in result.output) == (2, True), result.output
        for order in (
            Order("reno", "up", 1, 2.0, 0.1),
            Order("reno", "up", 65, 0.5, 0.1),
            Order("", "down", 1, 0.5, 0.1, 9e6),
            Order("nonsense", "down", 1, 0.5, 0.1),
            Order("", "down", 65, 0.5, 0.1, stack="rack/cubic"),
            Order("", "down", 1, 0.5, 0.1, stack="rack/nonsense"),
            Order("", "down", 1, 0.5, 0.1, stack="rack/mine.py:Mine"),
            Order("", "down", 1, 0.5, 0.1, stack="quinn/cubic"),
            Order("", "down", 1, 0.5, 0.1, stack="udp"),
        ):
            with pytest.raises(ChannelError, match="the other end says: "):
                measured(host, order)


@pytest.mark.parametrize("direction", ["up", "down"])
def test_the_rate_limit_holds_for_our_transport(direction: Any) -> None:
    order = Order("", direction, 2, 1.0, 0.3, stack="rack/cubic")
    with serving(limits=Limits(rate_bps=16e6)) as host:
        record = measured(host, order)
    summary = tables(record)["summary"].row(0, named=True)
    assert 8 < summary["goodput_mbps"] < 17
    held = (
        f"the server's limit of 16 Mbit/s (--max-rate) held the load {direction}, and not the path"
    )
    assert (summary["health"] == held) == (summary["goodput_mbps"] > 14.4), summary["health"]
    record.allowed_bps = summary["goodput_mbps"] * 1e6
    assert tables(record)["summary"]["health"][0].startswith("the server's limit of ")
    record.allowed_bps = summary["goodput_mbps"] * 2e6
    assert "limit" not in tables(record)["summary"]["health"][0]


@pytest.mark.parametrize("direction", ["up", "down"])
def test_the_rate_limit_holds(direction: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for a client that does not keep to it."""
    order = Order("reno", direction, 2, 1.0, 0.3)
    with serving(limits=Limits(rate_bps=16e6)) as host, Client(host, None) as client:
        monkeypatch.setitem(client.limits, "rate_bps", None)
        record = client.run(order, lambda _: None, lambda: False)
    rate = tables(record)["summary"]["goodput_mbps"][0]
    assert 8 < rate < 20


def test_one_client_at_a_time() -> None:
    with serving() as host, Client(host, None), pytest.raises(WeirError, match="busy"):
        Client(host, None)


def test_a_lost_client_ends_its_run() -> None:
    log = list[str]()
    with serving(log=log) as host:
        client = Client(host, None)
        with pytest.raises(WeirError):
            client.run(
                Order("reno", "down", 1, 20.0, 0.1),
                lambda moment: client._channel.close() if moment.elapsed_s > 0.2 else None,
                lambda: False,
            )
        until(lambda: any("ended early" in line for line in log))
        assert measured(host).flows[0].log[-1][1] > 0


# What is printed and kept


def test_what_a_test_prints_and_keeps(invoke: Invoke) -> None:
    words = ("--duration", "500ms", "--no-report", "--quiet")
    with serving() as host:
        for out in ("a", "b"):
            tcp = ("-n", "2", "--cc", "reno", "--direction", "up", "--json", "--out", out)
            document = printed(invoke, "test", "test", host, *words, *tcp)
        result = invoke("test", host, *words, "-n", "1", "--udp", "2mbit", "--direction", "both")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"{host}: ")
    assert [row["direction"] for row in document["rows"]] == ["up"]
    results = weir.load("b/test/latest")
    check("manifest", results.manifest)
    assert results.runs["health"].is_not_null().to_list() == [True, True]
    probes = results.scan("probes").collect()
    assert set(probes["phase"]) == {"idle", "load", "after"}
    assert probes["rtt_ms"].drop_nulls().min() > 0  # type: ignore[operator]
    assert results.flows["goodput_mbps"].min() > 10  # type: ignore[operator]
    assert not results.samples.is_empty()
    difference = invoke("diff", "a/test/latest", "b/test/latest", "--json")
    assert difference.exit_code in (0, 1), difference.output
    assert "idle_rtt_ms_p50" in difference.stdout
    assert results.report().is_file()
    udp = weir.load("results/test/latest").flows
    assert udp["loss_ratio"].to_list() == [0.0, 0.0]
    assert udp["goodput_mbps"].min() > 1.7  # type: ignore[operator]
    assert udp["delay_ms_p50"].is_not_null().all()
    refused = invoke("model", "results/test/latest")
    assert refused.exit_code == 2
    assert "a model needs a load of TCP in one direction" in " ".join(refused.stderr.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--cc", "nonsense"), "there is no control 'nonsense'"),
        (("--direction", "left"), "name one or more of up, down, both"),
        (("--duration", "1"), "--duration: '1' is not a time"),
        (("--duration", "1ms"), "allowed are 500ms to 1h"),
        (("--warmup", "20s"), "it must be shorter than --duration"),
        (("--udp", "fast"), "--udp: 'fast' is not a rate"),
        (("--udp", "1mbit", "--cc", "reno"), "leave out --udp"),
        (("--udp", "1mbit", "--stack", "rack/reno"), "leave out --udp"),
        (("--stack", "rack/nonsense"), "--stack rack/nonsense: unknown controller 'nonsense'"),
        (("--stack", "rack/mine.py:Mine"), "and no files"),
        (("--remote", "/opt/weir"), "--remote /opt/weir: it is for ssh://HOST; leave it out"),
        (("--ssh", "ssh -i key"), "--ssh ssh -i key: it is for ssh://HOST; leave it out"),
    ],
)
def test_bad_input(options: tuple[str, ...], message: str, invoke: Invoke) -> None:
    with serving() as host:
        result = invoke("test", host, "--no-report", *options)
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.output.split())


def test_where_no_server_is(invoke: Invoke) -> None:
    result = invoke("test", f"127.0.0.1:{free_port()}", "--no-report")
    assert result.exit_code == 1
    assert "start weir test --server there" in result.output


def test_all_loads_have_the_same_tables(invoke: Invoke) -> None:
    words = ("--duration", "1s", "--direction", "both", "-n", "1", "--no-report", "--quiet")
    loads = ("--cc", "reno", "--stack", "rack/reno", "--stack", "sack/cubic", "--streams", "2")
    # Without a limit our flows lose packets in the receive buffer that they share.
    with serving(limits=Limits(rate_bps=80e6)) as host:
        document = printed(invoke, "test", "test", host, *words, *loads, "--json")
    assert [row["stack"] for row in document["rows"]] == ["reno", "rack/reno", "sack/cubic"]
    results = weir.load("results/test/latest")
    flows = results.flows
    assert flows["name"].to_list() == ["up0", "up1", "down0", "down1"] * 3
    assert flows["goodput_mbps"].min() > 1  # type: ignore[operator]
    assert flows["sent_segments"].min() > 20  # type: ignore[operator]
    assert flows["failure"].is_null().all()
    of_runs = results.samples.group_by("run").len().sort("run")["len"].to_list()
    assert len(of_runs) == 3
    assert min(of_runs) > 20
    limits = results.scan("limits").collect()
    assert sorted(zip(limits["run"], limits["name"], strict=True)) == [
        (run, name) for run in (1, 2) for name in ("down0", "down1", "up0", "up1")
    ]
    marks = results.scan("marks").collect()
    assert set(marks["mark"]) == set(map(marks_of.name, MARKS))
    assert marks["received"].equals(marks["sent"])
    assert results.runs["ecn_up"].to_list() == ["kept"] * 3
    assert results.runs["dscp_down"].to_list() == ["kept"] * 3


@pytest.mark.parametrize("way", ["up", "down", "both"])
def test_datagrams_at_a_high_rate_all_arrive(way: Any) -> None:
    order = Order("", way, 1, 1.0, 0.1, udp_bps=200e6)
    with serving() as host:
        record = measured(host, order)
    assert len(record.streams) == (2 if way == "both" else 1)
    for stream in record.streams:
        planned = 200e6 / (1228 * 8)
        assert stream.sent == pytest.approx(planned, rel=0.1)
        assert stream.received + stream.dropped >= stream.sent - stream.refused
        assert stream.log[-1][1] == stream.bytes == stream.received * 1200


def test_our_flows_need_the_address_of_their_other_end() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        path = _native.PathSocket(wire.as_text(other.getsockname()))
        spec = OwnSpec("rack/cubic", 1440, 1, 1, 0.5)
        part = _native.HostPart.on_path(path, spec.scenario(None), 1, {0})
        with pytest.raises(_native.ScenarioError, match="flow 'down0': the address of its other"):
            part.run(time.monotonic_ns(), {0: path.remote}, _native.RunControl())


def test_a_run_that_a_client_gives_up_is_not_its_last() -> None:
    with serving() as host, Client(host, None) as client:
        with pytest.raises(StoppedError):
            client.run(SHORT, lambda _: None, lambda: True)
        assert client.run(SHORT, lambda _: None, lambda: False).flows[0].log[-1][1] > 0


# Marks


def test_marks_are_judged_by_direction() -> None:
    """ECN is cleared on the way up, EF is lost and AF41 becomes CS1 on the way down."""
    marked = [MARKS[number % len(MARKS)] for number in range(10 * len(MARKS))]
    at_server = {mark: {0 if 0 < mark < 4 else mark: 10} for mark in MARKS}
    seen = {
        number: (mark, {34 << 2: 8 << 2}.get(mark, mark))
        for number, mark in enumerate(marked)
        if mark != 46 << 2
    }
    counts = counted(marked, seen, at_server)
    assert MarkCount("down", 46 << 2, 10, 10, None) in counts
    found = {
        (way, ecn): verdict(counts, way, ecn=ecn) for way in ("up", "down") for ecn in (False, True)
    }
    assert found == {
        ("up", True): "cleared",
        ("up", False): "kept",
        ("down", True): "kept",
        ("down", False): "AF41 to CS1, EF lost",
    }
    # A mark is lost if fewer than half of its probes arrive.
    for arrived, is_lost in ((4, True), (5, False)):
        few = counted(marked, seen, {**at_server, 46 << 2: {46 << 2: arrived}})
        assert verdict(few, "up", ecn=False) == ("EF lost" if is_lost else "kept")
    assert verdict(counted([], {}, {}), "up", ecn=True) is None
    assert [marks_of.name(mark) for mark in (0, 3, 46 << 2, 46 << 2 | 1)] == [
        "Not-ECT",
        "CE",
        "EF",
        "EF ECT(1)",
    ]


@pytest.mark.parametrize("url", ["ssh://", "ssh://a/b", "ssh://a:b", "ssh://-oProxyCommand=x"])
def test_urls_of_ssh_that_are_none(url: str, invoke: Invoke) -> None:
    result = invoke("test", url)
    assert result.exit_code == 2
    assert "write it as ssh://" in result.output
