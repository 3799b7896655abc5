"""The list of hosts: how each is reached, and which flow runs from which host to which."""

from __future__ import annotations

import ipaddress
import json
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weir.base import bounded
from weir.base.errors import InputError, unknown
from weir.pathtest.ssh import SCHEME, split
from weir.scenario.source import Effective

ALL = "*"
"""In place of a flow's name: every flow that is not named otherwise."""

_HOST_KEYS = ("ssh", "address", "program", "ssh_options")
_FLOW_KEYS = ("from", "to")


@dataclass(frozen=True, slots=True)
class Host:
    """A machine that takes part."""

    name: str
    ssh: str
    address: str
    """IPv4 address of its data."""
    program: str = "weir"
    ssh_options: str = ""


@dataclass(frozen=True, slots=True)
class Hosts:
    """All hosts, and the two of each flow."""

    file: str
    hosts: Mapping[str, Host]
    flows: Mapping[str, tuple[str, str]]

    def ends(self, scenario: Effective) -> list[tuple[str, str]]:
        """The hosts of the flows of a scenario, in their order: sender and receiver.

        Raises:
            InputError: a flow has none, or the file names a flow that is not there.
        """
        found = list(self._ends(scenario))
        bases = {base for base, _ in _names(scenario)}
        for name in self.flows:
            if name != ALL and name not in bases:
                raise InputError(f"{self.file}: [flows.{name}]: {unknown('flow', name, bases)}")
        return found

    def as_text(self) -> str:
        """Canonical form, for keys and manifests."""
        hosts = {
            host.name: {key: getattr(host, key) for key in _HOST_KEYS}
            for host in self.hosts.values()
        }
        flows = {
            name: dict(zip(_FLOW_KEYS, ends, strict=True)) for name, ends in self.flows.items()
        }
        return json.dumps({"hosts": hosts, "flows": flows}, sort_keys=True)

    def _ends(self, scenario: Effective) -> Iterator[tuple[str, str]]:
        for base, fields in _names(scenario):
            named = self.flows.get(base)
            own = (fields.get("from_host"), fields.get("to_host"))
            if named is None and own[0] in self.hosts and own[1] in self.hosts:
                named = (str(own[0]), str(own[1]))
            named = named or self.flows.get(ALL)
            if named is None:
                raise InputError(
                    f"{self.file}: flow '{base}' has no hosts; add [flows.{base}] with from and to,"
                    f' or [flows."{ALL}"] for all flows'
                )
            yield from [named] * int(fields.get("count", 1))


def _names(scenario: Effective) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, fields in enumerate(scenario.fields.get("flow", ())):
        yield str(fields.get("name") or f"flow{number}"), fields


def read(path: Path) -> Hosts:
    """The list of hosts at `path`.

    Raises:
        InputError: it cannot be read, or something in it is not allowed.
    """
    try:
        fields = tomllib.loads(bounded.text_of(path))
    except OSError as error:
        raise InputError(f"--hosts {path}: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: {error}") from None
    _only(path, "", fields, ("hosts", "flows"))
    hosts = {
        name: _host(path, name, _table(path, f"hosts.{name}", given))
        for name, given in _table(path, "hosts", fields.get("hosts", {})).items()
    }
    if not hosts:
        raise InputError(f"{path}: there are no hosts; add [hosts.NAME] with ssh and address")
    flows = {
        name: _flow(path, name, _table(path, f"flows.{name}", given), hosts)
        for name, given in _table(path, "flows", fields.get("flows", {})).items()
    }
    return Hosts(str(path), hosts, flows)


def _host(path: Path, name: str, given: dict[str, Any]) -> Host:
    place = f"hosts.{name}"
    _only(path, place, given, _HOST_KEYS)
    for key in ("ssh", "address"):
        if key not in given:
            raise InputError(f"{path}: [{place}] has no {key}")
    for key, value in given.items():
        if not isinstance(value, str):
            raise InputError(f"{path}: {place}.{key} = {value!r}: allowed is text in quotes")
    for key in ("program", "ssh_options"):
        try:
            words = shlex.split(given.get(key, ""))
        except ValueError as error:
            raise InputError(f"{path}: {place}.{key} = {given[key]!r}: {error}") from None
        if key == "program" and key in given and not words:
            raise InputError(f"{path}: {place}.program is empty; allowed is a command")
    try:
        split(given["ssh"])
    except InputError:
        form = f"{SCHEME}[USER@]HOST[:PORT]"
        raise InputError(f'{path}: {place}.ssh = "{given["ssh"]}": allowed is {form}') from None
    try:
        ipaddress.IPv4Address(given["address"])
    except ValueError:
        raise InputError(
            f'{path}: {place}.address = "{given["address"]}": allowed is an IPv4 address'
        ) from None
    return Host(name, **given)


def _flow(
    path: Path, name: str, given: dict[str, Any], hosts: Mapping[str, Host]
) -> tuple[str, str]:
    place = f"flows.{name}"
    _only(path, place, given, _FLOW_KEYS)
    for key in _FLOW_KEYS:
        if key not in given:
            raise InputError(f"{path}: [{place}] has no {key}")
        if given[key] not in hosts:
            problem = unknown("host", str(given[key]), hosts)
            raise InputError(f"{path}: {place}.{key}: {problem}")
    if given["from"] == given["to"]:
        raise InputError(f"{path}: [{place}]: from and to are the same host, {given['to']}")
    return str(given["from"]), str(given["to"])


def _table(path: Path, place: str, given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise InputError(f"{path}: {place} = {given!r}: allowed is a table")
    return given


def _only(path: Path, place: str, given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in given:
        if key not in known:
            where = f"[{place}]: " if place else ""
            raise InputError(f"{path}: {where}{unknown('key', key, known)}")
