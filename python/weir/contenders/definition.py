"""Definition files of contenders: how the two programs of a flow are started.

A definition is TOML. Commands are lists of arguments, without a shell. In them `{port}` and the
other names of [`PLACEHOLDERS`][weir.contenders.definition.PLACEHOLDERS] stand for values of a run.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weir.base import bounded
from weir.base.errors import InputError
from weir.processes.ready import Ready

PLACEHOLDERS: Mapping[str, str] = {
    "server_ip": "address of the server",
    "port": "port of the server",
    "local_port": "a free port, for helpers on loopback",
    "cc": "the congestion control, by the program's name for it",
    "bytes": "size of the file in bytes; of workload bulk, more than the links carry",
    "seconds": "whole seconds, longer than the run",
    "file": "a file of `{bytes}` zeros",
    "www": "a folder with this file, named `f`",
    "work": "a writable folder",
    "out": "a folder for qlogs",
    "cert": "a certificate for the name `server`, in PEM",
    "key": "its private key",
    "seed": "random seed of the run",
    "bin": "folder of the programs of `weir stack contender`",
}
"""What commands may contain in braces, besides parameters."""

WORKLOADS = ("bulk", "file")
ENDS = ("client", "server")
VIA = ("argument", "sysctl", "none")
RTT_UNITS = ("ms", "s")
BUILDS = ("cargo", "go")
KERNELS = "kernel"
"""Stands for all congestion controls of the kernel that the programs run on."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True, slots=True)
class Process:
    """A program and its arguments."""

    end: str
    """`client` or `server`."""
    command: tuple[str, ...]
    environment: Mapping[str, str]
    ready: Ready | None
    """When it is ready; None if nothing waits for that."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """What a stack may set in parentheses."""

    name: str
    values: Mapping[str, str] | None
    """Allowed values, each with what the program is given; None: those of the kernel."""
    default: str


@dataclass(frozen=True, slots=True)
class Definition:
    """A contender."""

    name: str
    about: str
    text: str
    """The file's text."""
    version: tuple[str, ...]
    """A command that prints the version; none if a parameter has it."""
    transport: str
    sender: str
    prepare: tuple[tuple[str, ...], ...]
    """Commands that run to their end first."""
    helpers: tuple[Process, ...]
    server: Process
    client: Process
    workloads: Mapping[str, tuple[str, ...]]
    """What the client's arguments end with, by kind of workload."""
    files: Mapping[str, str]
    """Files of `{work}`: their names and texts."""
    via: str
    parameters: tuple[Parameter, ...]
    qlog: str | None
    """Pattern of the sender's qlog below `{out}`."""
    received: str | None
    """The file that the receiver writes, below `{out}`; it is compared with the one sent."""
    rtt_unit: str
    """Unit of round-trip times in it: `ms` by its specification, but quinn writes `s`."""
    build: str | None
    """How `weir stack contender` builds it, if no package has it."""
    programs: tuple[str, ...]
    """Programs that it needs and no command begins with."""
    packages: tuple[str, ...]
    """Debian packages that have its programs."""

    def parameter(self, name: str) -> Parameter | None:
        """The parameter of this name, if it has one."""
        return next((p for p in self.parameters if p.name == name), None)

    @property
    def commands(self) -> Iterator[tuple[str, ...]]:
        """All commands of a run."""
        yield from self.prepare
        for process in (*self.helpers, self.server, self.client):
            yield process.command


def load(text: str, origin: str) -> Definition:
    """Reads the definition in `text`; `origin` is where it comes from.

    Raises:
        InputError: it is not valid; the message names key, value and what is allowed.
    """
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{origin}: no TOML: {error}") from None
    return _definition(_Table(table, origin, ""), text)


class _Table:
    """A section of the file; what is taken from it is checked, and the rest is unknown."""

    def __init__(self, values: dict[str, Any], origin: str, path: str) -> None:
        self._values, self._origin, self._path = dict(values), origin, path
        self._known: list[str] = []

    def text(self, key: str, default: str | None = None) -> str:
        value = self._take(key, default)
        if not isinstance(value, str) or not value:
            raise self.error(key, value, "text that is not empty")
        return value

    def optional(self, key: str) -> str | None:
        self._known.append(key)
        return self.text(key) if key in self._values else None

    def word(self, key: str, allowed: tuple[str, ...], default: str | None = None) -> str:
        value = self.text(key, default)
        if value not in allowed:
            raise self.error(key, value, ", ".join(allowed))
        return value

    def strings(self, key: str, default: list[str] | None = None) -> tuple[str, ...]:
        value = self._take(key, default)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.error(key, value, 'a list of texts, as in ["iperf3", "-s"]')
        return tuple(value)

    def command(self, key: str) -> tuple[str, ...]:
        value = self.strings(key)
        if not value or not value[0]:
            raise self.error(key, list(value), "a program and its arguments")
        return value

    def mapping(self, key: str) -> dict[str, str]:
        value = self._take(key, {})
        if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
            raise self.error(key, value, "names with texts")
        return value

    def table(self, key: str, *, required: bool = True) -> _Table:
        value = self._take(key, None if required else {})
        if not isinstance(value, dict):
            raise self.error(key, value, f"a section, [{self._path}{key}]")
        return _Table(value, self._origin, f"{self._path}{key}.")

    def tables(self, key: str) -> list[_Table]:
        value = self._take(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.error(key, value, f"sections, [[{self._path}{key}]]")
        return [
            _Table(item, self._origin, f"{self._path}{key}.{i}.") for i, item in enumerate(value)
        ]

    def lists(self, key: str) -> list[tuple[str, ...]]:
        value = self._take(key, [])
        if not isinstance(value, list):
            raise self.error(key, value, "a list of commands")
        single = _Table({str(i): item for i, item in enumerate(value)}, self._origin, f"{key}.")
        return [single.command(str(i)) for i in range(len(value))]

    def raw(self, key: str, default: Any = None) -> Any:
        return self._take(key, default)

    def names(self) -> list[str]:
        return list(self._values)

    def has(self, key: str) -> bool:
        return key in self._values

    def done(self) -> None:
        """Refuses the keys that nothing has taken."""
        for key in self._values:
            if key not in self._known:
                raise InputError(
                    f"{self._origin}: {self._path}{key}: unknown key; allowed: "
                    f"{', '.join(dict.fromkeys(self._known))}"
                )

    def error(self, key: str, value: Any, allowed: str) -> InputError:
        found = "is missing" if value is None else f"= {value!r}"
        return InputError(f"{self._origin}: {self._path}{key} {found}: allowed is {allowed}")

    def _take(self, key: str, default: Any) -> Any:
        self._known.append(key)
        return self._values.get(key, default)


def _definition(table: _Table, text: str) -> Definition:
    name = table.text("name")
    if not _NAME.fullmatch(name):
        raise table.error("name", name, "letters, digits and any of . _ + -")
    server, client = table.table("server"), table.table("client")
    cc = table.table("cc", required=False)
    collect, needs = table.table("collect", required=False), table.table("needs", required=False)
    helpers = [*_helpers(server, "server"), *_helpers(client, "client")]
    via = cc.word("via", VIA, "none")
    parameters = [_parameter(cc, "cc")] if via != "none" else []
    extra = table.table("parameters", required=False)
    parameters += [_parameter(extra.table(key), key) for key in extra.names()]
    definition = Definition(
        name=name,
        about=table.text("about"),
        text=text,
        version=table.strings("version", []),
        transport=table.word("transport", ("tcp", "udp")),
        sender=table.word("sender", ENDS),
        prepare=tuple(table.lists("prepare")),
        helpers=tuple(helpers),
        server=_process(server, "server", ready=True),
        client=_process(client, "client", ready=False),
        workloads={kind: client.strings(kind) for kind in WORKLOADS if client.has(kind)},
        files=table.mapping("files"),
        via=via,
        parameters=tuple(parameters),
        qlog=collect.optional("qlog"),
        received=collect.optional("received"),
        rtt_unit=collect.word("rtt_unit", RTT_UNITS, "ms"),
        build=needs.word("build", BUILDS) if needs.has("build") else None,
        programs=needs.strings("programs", []),
        packages=needs.strings("packages", []),
    )
    _ = [client.raw(kind) for kind in WORKLOADS], needs.raw("build")
    for section in (server, client, cc, collect, needs, table):
        section.done()
    if not definition.workloads:
        raise table.error("client.bulk", None, "arguments for `bulk`, for `file`, or for both")
    _check_placeholders(definition, table)
    return definition


def _helpers(table: _Table, end: str) -> Iterator[Process]:
    for helper in table.tables("helper"):
        yield _process(helper, end, ready=True)
        helper.done()


def _process(table: _Table, end: str, *, ready: bool) -> Process:
    command, environment = table.command("run"), table.mapping("environment")
    condition = None
    if ready:
        text = table.text("ready", "delay:1s")
        try:
            # A port is a placeholder as a rule; any number stands for it here.
            Ready.parse(_PLACEHOLDER.sub("1", text))
        except InputError:
            allowed = "port:NUMBER, line:TEXT or delay:TIME"
            raise table.error("ready", text, allowed) from None
        kind, _, value = text.partition(":")
        condition = Ready(kind, value)
    return Process(end, command, environment, condition)


def _parameter(table: _Table, name: str) -> Parameter:
    values, default = table.raw("values"), table.text("default")
    if name == "cc" and values == KERNELS:
        return Parameter(name, None, default)
    if isinstance(values, list) and values and all(isinstance(v, str) for v in values):
        values = {value: value for value in values}
    if not isinstance(values, dict) or not all(isinstance(v, str) for v in values.values()):
        raise table.error("values", values, "a list of values, or values with the program's")
    if default not in values:
        raise table.error("default", default, ", ".join(values))
    if name != "cc":
        table.done()
    return Parameter(name, values, default)


def _check_placeholders(definition: Definition, table: _Table) -> None:
    """Refuses names in braces that stand for nothing. Texts of files may have others."""
    known = [*PLACEHOLDERS, *(parameter.name for parameter in definition.parameters)]
    texts = [word for command in definition.commands for word in command]
    texts += [word for words in definition.workloads.values() for word in words]
    for process in (*definition.helpers, definition.server, definition.client):
        texts += process.environment.values()
    for text in texts:
        for name in _PLACEHOLDER.findall(text):
            if name not in known:
                raise table.error("command", text, "{" + "}, {".join(known) + "}")


def filled(text: str, values: Callable[[str], str | None]) -> str:
    """`text` with placeholders replaced by what `values` has; others stay."""

    def value(match: re.Match[str]) -> str:
        found = values(match[1])
        return match[0] if found is None else found

    return _PLACEHOLDER.sub(value, text)


def names_in(text: str) -> list[str]:
    """The names in braces."""
    return _PLACEHOLDER.findall(text)


def used(definition: Definition) -> set[str]:
    """The placeholders that it uses."""
    texts = [word for command in definition.commands for word in command]
    texts += [word for words in definition.workloads.values() for word in words]
    texts += definition.files.values()
    for process in (*definition.helpers, definition.server, definition.client):
        texts += process.environment.values()
    return {name for text in texts for name in _PLACEHOLDER.findall(text)}


def read(path: Path) -> Definition:
    """Reads the definition file at `path`.

    Raises:
        InputError: it cannot be read, or is not valid.
    """
    return load(bounded.read_text(path), str(path))
