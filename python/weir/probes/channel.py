"""The control connection: who may open it, and its messages.

Both ends prove that they have the key: each sends a random nonce, and HMAC-SHA-256 (RFC 2104) under
the key over its own role and both nonces. The key of the session is another such value. A message
is a line: HMAC-SHA-256 under that key over the sender's role, the number of the message and its
text, then the text in JSON. So nothing can be forged, repeated or left out; all can be read.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import re
import secrets
import socket
import struct
import time
from pathlib import Path
from typing import Any

from weir.base.errors import InputError, WeirError
from weir.base.plain import plain
from weir.probes import wire

Message = dict[str, Any]

KEY_BYTES = 32
NO_KEY = bytes(KEY_BYTES)
"""In place of a key where none is required: the codes of messages then detect damage only."""

HANDSHAKE_S = 5.0
SHORT, LONG = 16 << 10, 64 << 20
"""Longest message of a client, and of a server, in bytes."""

_NONCE_BYTES = 32
_CODE_DIGITS = 64
_READ_BYTES = 1 << 16
_LONGEST_QUOTE = 200


class ChannelError(WeirError):
    """The control connection broke, or its peer does not keep to the protocol."""


def read_key(file: Path) -> bytes:
    """The key in a file that `weir recv --new-key` wrote.

    Raises:
        InputError: it cannot be read, or holds no key.
    """
    try:
        with file.open("rb") as opened:
            content = opened.read(1024)
    except OSError as error:
        raise InputError(f"the key file '{file}': {error.strerror}") from None
    return parse_key(content, f"the key file '{file}'")


def parse_key(content: bytes, source: str) -> bytes:
    """The key in a text.

    Raises:
        InputError: it is none.
    """
    content = content.strip()
    if not re.fullmatch(rb"[0-9a-fA-F]{64}", content):
        raise InputError(
            f"{source} holds no key; a key is {2 * KEY_BYTES} hexadecimal digits, as "
            "`weir recv --new-key FILE` writes"
        )
    return bytes.fromhex(content.decode())


class SilentError(ChannelError):
    """The other end sent nothing in time."""


class Channel:
    """A control connection whose two ends have proved themselves."""

    def __init__(self, lines: Lines, key: bytes, own: bytes, other: bytes, most: int) -> None:
        self._connection, self._key, self._most = lines.connection, key, most
        self._own, self._other = own, other
        self._sent = self._received = 0
        self._lines = lines

    @property
    def peer(self) -> wire.Address:
        """The address of the other end."""
        return tuple(self._connection.getpeername())

    def send(self, **message: Any) -> None:
        """Sends a message.

        Raises:
            ChannelError: the connection broke.
        """
        text = json.dumps(message, separators=(",", ":")).encode()
        code = self._code(self._own, self._sent, text)
        self._sent += 1
        try:
            self._connection.settimeout(HANDSHAKE_S)
            self._connection.sendall(code + text + b"\n")
        except OSError as error:
            raise ChannelError(f"the control connection broke: {error}") from None

    def receive(self, wait_s: float) -> Message:
        """The next message.

        Raises:
            ChannelError: there is none in time, the connection broke, or it is not the peer's.
        """
        line = self._lines.read(self._most, time.monotonic() + wait_s)
        code, text = line[:_CODE_DIGITS], line[_CODE_DIGITS:]
        if not hmac.compare_digest(code, self._code(self._other, self._received, text)):
            raise ChannelError("a message of the control connection was changed on its way")
        self._received += 1
        message = _object(text)
        if "error" in message:
            raise ChannelError(f"the other end says: {_quoted(message['error'])}")
        return message

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()

    def end(self) -> None:
        """Ends the connection for the thread that waits for its messages."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def _code(self, role: bytes, number: int, text: bytes) -> bytes:
        return _code(self._key, b"message", role, struct.pack("!Q", number), text).hex().encode()


def accept(connection: socket.socket, key: bytes | None) -> Channel:
    """The server's part of the handshake, after the client's first line.

    Raises:
        ChannelError: the client has another key, or is none.
    """
    lines, deadline = Lines(connection), time.monotonic() + HANDSHAKE_S
    own = secrets.token_bytes(_NONCE_BYTES)
    _say(connection, {"nonce": own.hex(), "key": key is not None})
    said = _object(lines.read(SHORT, deadline))
    try:
        nonces = own + bytes.fromhex(said["nonce"])
        proof = bytes.fromhex(said["proof"])
    except (KeyError, TypeError, ValueError):
        raise ChannelError("no handshake of weir test") from None
    secret = key or NO_KEY
    if not hmac.compare_digest(proof, _code(secret, b"proof", b"client", nonces)):
        _say(connection, {"refused": "the server has another key"})
        raise ChannelError("it has another key")
    _say(connection, {"proof": _code(secret, b"proof", b"server", nonces).hex()})
    return Channel(lines, _code(secret, b"session", nonces), b"server", b"client", SHORT)


def connect(connection: socket.socket, key: bytes | None) -> Channel:
    """The client's part of the handshake.

    Raises:
        ChannelError: there is no such server.
        InputError: only one end has a key, or the keys are not the same.
    """
    lines, deadline = Lines(connection), time.monotonic() + HANDSHAKE_S
    try:
        connection.sendall(wire.CONTROL_LINE)
        hello = _object(lines.read(SHORT, deadline))
        if "refused" in hello:
            raise ChannelError(f"the server refuses: {_quoted(hello['refused'])}")
        if hello["key"] and key is None:
            raise InputError(
                "the server demands a key: give a copy of the server's with --key-file FILE"
            )
        if key is not None and not hello["key"]:
            raise InputError("the server has no key: leave out --key-file, or start it with one")
        own = secrets.token_bytes(_NONCE_BYTES)
        nonces, secret = bytes.fromhex(hello["nonce"]) + own, key or NO_KEY
        proof = _code(secret, b"proof", b"client", nonces)
        _say(connection, {"nonce": own.hex(), "proof": proof.hex()})
        answer = _object(lines.read(SHORT, deadline))
        if "refused" in answer:
            raise InputError(_quoted(answer["refused"]))
        proved = bytes.fromhex(answer["proof"])
    except (KeyError, TypeError, ValueError, OSError):
        raise ChannelError("no weir test --server of this version answers there") from None
    if not hmac.compare_digest(proved, _code(secret, b"proof", b"server", nonces)):
        raise InputError("the server has another key")
    return Channel(lines, _code(secret, b"session", nonces), b"client", b"server", LONG)


def _code(key: bytes, *parts: bytes) -> bytes:
    """HMAC over parts, each after its length."""
    made = hmac.new(key, digestmod=hashlib.sha256)
    for part in parts:
        made.update(struct.pack("!Q", len(part)) + part)
    return made.digest()


def _say(connection: socket.socket, message: Message) -> None:
    connection.settimeout(HANDSHAKE_S)
    try:
        connection.sendall(json.dumps(message).encode() + b"\n")
    except OSError as error:
        raise ChannelError(str(error)) from None


def _object(text: bytes) -> Message:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise ChannelError("no message of weir test") from None
    if not isinstance(found, dict):
        raise ChannelError("no message of weir test")
    return found


def _quoted(text: object) -> str:
    """What the other end wrote, as one short line."""
    return plain(" ".join(str(text)[:_LONGEST_QUOTE].split()))


class Lines:
    """Lines of a connection, each with a limit of its length and time."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._read = bytearray()

    def read(self, most: int, deadline: float) -> bytes:
        """The next line, without its end.

        Raises:
            ChannelError: there is none.
        """
        searched = 0
        while (end := self._read.find(b"\n", searched)) < 0:
            searched = len(self._read)
            if searched > most:
                raise ChannelError(f"a message is longer than {most} bytes")
            left = deadline - time.monotonic()
            if left <= 0:
                raise SilentError("the other end is silent")
            self.connection.settimeout(left)
            try:
                chunk = self.connection.recv(_READ_BYTES)
            except TimeoutError:
                continue
            except OSError as error:
                raise ChannelError(f"the control connection broke: {error}") from None
            if not chunk:
                raise ChannelError("the other end closed the control connection")
            self._read += chunk
        line = bytes(self._read[:end])
        del self._read[: end + 1]
        return line
