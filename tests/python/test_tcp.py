"""The kernel's TCP moving a file."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from weir._native import TcpReceiver, tcp_send


@pytest.mark.parametrize("write_size", [None, 1_000])
def test_a_file_arrives_with_the_time_it_took(tmp_path: Path, write_size: int | None) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(bytes(range(256)) * 1_000)
    receiver = TcpReceiver("127.0.0.1:0")
    with ThreadPoolExecutor() as pool:
        received = pool.submit(receiver.receive, str(target), timeout_s=30)
        sent = tcp_send(str(source), receiver.address, write_size=write_size, timeout_s=30)
    assert target.read_bytes() == source.read_bytes()
    assert sent.bytes == received.result().bytes == 256_000
    assert sent.began_ns < received.result().ended_ns


def test_what_cannot_be_is_said(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no congestion control 'warp'"):
        TcpReceiver("127.0.0.1:0", controller="warp")
    with pytest.raises(ValueError, match="'nowhere' is no address"):
        tcp_send(str(tmp_path), "nowhere")
    with pytest.raises(OSError, match=r"connect to 127\.0\.0\.1:1 over TCP"):
        tcp_send(__file__, "127.0.0.1:1")
    with pytest.raises(TimeoutError):
        TcpReceiver("127.0.0.1:0").receive(str(tmp_path / "never"), timeout_s=0)
