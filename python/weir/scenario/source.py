"""From what a person wrote to a scenario that Rust has checked.

Every scenario, also one made from flags, goes through the file format and the native parser, which
is the only validator: this file checks nothing that Rust checks.
"""

from __future__ import annotations

import contextlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from weir import _native
from weir.base import bounded
from weir.base.errors import InputError, unknown
from weir.controllers import trust
from weir.kernel import recipe

SIM = "sim"
"""The world of virtual time; the others are in real time."""
KERNEL = "kernel"
"""The world of the Linux kernel's own TCP."""
VIRTUAL = "kernel-virtual"
"""The world `kernel` in a guest, whose time is virtual, as that of `sim` is."""
NETEM = "kernel-netem"
"""The same, with the guest's own netem in place of our links, to check one against the other."""
REAL_PATH = "path"
"""Between two machines, of `weir test`; no scenario can be run in it."""
HOSTS = "hosts"
"""The TCP of several machines' kernels, over the network between them: `weir run --hosts`."""
GUESTS = (VIRTUAL, NETEM)
"""What runs in guests."""
SPOKEN: Mapping[str, str] = {
    VIRTUAL: "world kernel in virtual time",
    NETEM: "world kernel in virtual time, behind netem",
    REAL_PATH: "real time over a real path",
    HOSTS: "real time between hosts",
}
"""How a world is called in titles, where that is not its name."""
IN_WORDS: Mapping[str, str] = {
    **SPOKEN,
    SIM: "the simulator",
    "udp": "world udp, real UDP in real time",
    KERNEL: "world kernel in real time",
}
"""How a world is called next to others."""
CONTENDER = "contender:"
"""What the stacks begin with that are programs of other projects."""
_KERNEL_SAMPLES = ("measure.sample_interval", "10ms")
"""Set in these worlds unless a scenario says otherwise: their tables are to show what TCP does."""

Overrides = tuple[tuple[str, str], ...]
Sweep = dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Source:
    """A scenario's text, where it came from, the keys that were set on top of it, its world."""

    text: str
    origin: str
    overrides: Overrides = ()
    file: str | None = None
    world: str = SIM
    hosts: str = ""
    """In world `hosts`: which these are, in a canonical form."""

    def with_override(self, key: str, value: str) -> Source:
        """The same with one more key set."""
        return replace(self, overrides=(*self.overrides, (key, value)))

    @property
    def folder(self) -> str:
        """Where files are looked for that it names: next to its own."""
        return str(Path(self.file or self.origin).parent)

    def effective(self) -> Effective:
        """The complete scenario with all defaults.

        Raises:
            ScenarioError: it is not valid; the message says where and what is allowed.
        """
        checked = _native.Scenario.parse(self.text, list(self.overrides), self.file or self.origin)
        return Effective(checked.fields(), self.folder, checked)

    def at(
        self, point: Mapping[str, str], named: Sequence[str] = (), base: Effective | None = None
    ) -> Effective:
        """The scenario at one point of its sweep, as if it had never been swept.

        The user has named the stacks in the overrides himself, and those that are `named`. `base`
        is what `effective` returns, if that is known.

        Raises:
            ScenarioError: it is not valid there, or its world cannot run it.
        """
        checked = (base or self.effective()).checked.at(list(point.items()))
        fields = checked.fields()
        fields.pop("sweep", None)
        effective = Effective(fields, self.folder, checked)
        own = [value for key, value in self.overrides if is_stack(key)]
        trust.trust_named(effective.controllers, [*own, *named])
        if effective.contenders and self.world in (KERNEL, *GUESTS):
            _check_contenders(effective, [*own, *named], virtual=self.world in GUESTS)
        if self.world in GUESTS:
            checked.check_kernel(recipe.CONTROLS, netem=self.world == NETEM)
        else:
            checked.check(self.world)
        return effective

    def in_world(self, world: str) -> Source:
        """The same in another world.

        Raises:
            InputError: there is no such world.
        """
        known = worlds()
        if world not in (*known, *GUESTS, HOSTS):
            raise InputError(unknown("world", world, known))
        if world in (KERNEL, *GUESTS, HOSTS) and not self._samples():
            return replace(self, world=world, overrides=(_KERNEL_SAMPLES, *self.overrides))
        return replace(self, world=world)

    def _samples(self) -> bool:
        """Whether it says itself how often to take samples."""
        key, _ = _KERNEL_SAMPLES
        with contextlib.suppress(tomllib.TOMLDecodeError):  # which the native parser tells better
            section, name = key.split(".")
            if name in tomllib.loads(self.text).get(section, {}):
                return True
        return any(override == key for override, _ in self.overrides)


@dataclass(frozen=True)
class Effective:
    """A checked scenario: its canonical form as a dictionary, and what Rust runs."""

    fields: dict[str, Any] = field(hash=False)
    folder: str = ""
    """Where the files were looked for that it names."""
    lowered: _native.Scenario | None = field(default=None, compare=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process lowers the text itself."""
        return Effective, (self.fields, self.folder)

    @classmethod
    def from_json(cls, text: str) -> Effective:
        """The scenario with this canonical text.

        Raises:
            ScenarioError: it is something else.
        """
        return cls(json.loads(text), "", _native.Scenario.from_json(text))

    @cached_property
    def text(self) -> str:
        """The canonical form in JSON, for disks and other processes."""
        return json.dumps(self.fields, ensure_ascii=False)

    @property
    def checked(self) -> _native.Scenario:
        """What Rust runs.

        Raises:
            ScenarioError: the text is no canonical scenario.
        """
        return self.lowered or _native.Scenario.from_json(self.text)

    @property
    def name(self) -> str:
        """What the scenario calls itself."""
        return str(self.fields["name"])

    @property
    def stacks(self) -> tuple[str, ...]:
        """The stacks of the flows, each once, in order."""
        return tuple(dict.fromkeys(str(flow["stack"]) for flow in self.fields.get("flow", ())))

    @property
    def contenders(self) -> tuple[str, ...]:
        """Of the stacks, those that are programs of other projects."""
        return tuple(stack for stack in self.stacks if stack.startswith(CONTENDER))

    @property
    def controllers(self) -> dict[str, str]:
        """The texts of controllers in Python, by the names of their files."""
        found: dict[str, str] = self.fields.get("controllers", {})
        return found

    @property
    def repeat(self) -> int:
        """How many times it is to run."""
        return int(self.fields["measure"]["repeat"])

    @property
    def seed(self) -> int:
        """The seed of the first repeat."""
        return int(self.fields["measure"]["seed"])

    @property
    def description(self) -> str:
        """What the scenario says about itself."""
        return str(self.fields.get("description", ""))

    @property
    def sweep(self) -> Sweep:
        """The keys to vary, and their values."""
        swept = self.fields.get("sweep") or {}
        return {key: tuple(_plain(v) for v in values) for key, values in swept.items()}


LIBRARY = Path(__file__).parents[1] / "library"
"""The scenarios that come with Weir; `scenarios` at the top of the sources leads here."""


@cache
def worlds() -> tuple[str, ...]:
    """The names of the worlds that scenarios can be run in."""
    return tuple(str(world["name"]) for world in _native.catalogue()["worlds"])


def read(path: str | Path, overrides: Overrides = ()) -> Source:
    """The scenario file at `path`, or the one of that name in the library.

    Raises:
        InputError: there is no such file, or it cannot be read as text.
    """
    named = LIBRARY / f"{path}.toml"
    file = named if named.is_file() and not Path(path).exists() else Path(path)
    try:
        return Source(bounded.text_of(file), str(path), overrides, str(file))
    except FileNotFoundError:
        known = unknown("scenario", str(path), library())
        raise InputError(f"{path}: no such file, and {known}") from None
    except IsADirectoryError:
        raise InputError(f"{path}: this is a directory, not a scenario file") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None


def _check_contenders(scenario: Effective, named: Sequence[str], *, virtual: bool) -> None:
    """The user has named the stacks in `named`, so their programs may run."""
    from weir.contenders import catalogue  # other scenarios have no use for it

    flows = [(str(f["stack"]), str(f["workload"]["kind"])) for f in scenario.fields["flow"]]
    for contender in catalogue.check(flows, virtual=virtual):
        if contender.stack not in named and contender.file is not None:
            trust.refuse_untrusted(contender.file, contender.definition.text)


def library() -> list[str]:
    """The names of the scenarios that come with Weir."""
    files = LIBRARY.glob("**/*.toml")
    return sorted(file.relative_to(LIBRARY).with_suffix("").as_posix() for file in files)


def is_stack(key: str) -> bool:
    """Whether a key of a scenario is the stack of a flow."""
    return key.endswith(".stack")


def parse_assignments(items: Sequence[str], option: str) -> Overrides:
    """`key=value` of `--set`, in order.

    Raises:
        InputError: an item has no `=` or no key.
    """
    return tuple(_split_assignment(item, option) for item in items)


def parse_sweep(items: Sequence[str], option: str = "--sweep") -> Sweep:
    """`key=a,b,c` of `--sweep`; commas inside brackets or quotes belong to a value.

    Raises:
        InputError: an item has no `=`, no key or an empty value, or a key is swept twice.
    """
    sweep: Sweep = {}
    for item in items:
        key, text = _split_assignment(item, option)
        values = tuple(split_list(text))
        if not all(values):
            raise InputError(f"{option} {item}: a value is empty; write it as {key}=a,b,c")
        if key in sweep:
            raise InputError(f"{option} {item}: {key} is swept twice")
        sweep[key] = values
    return sweep


def _split_assignment(item: str, option: str) -> tuple[str, str]:
    key, equals, value = item.partition("=")
    if not equals or not key.strip():
        raise InputError(f"{option} {item}: write it as key=value, as in topology.rate=20mbit")
    return key.strip(), value.strip()


def split_list(text: str) -> list[str]:
    """The items of a list with commas; those inside brackets or quotes belong to an item."""
    parts, depth, quoted, start = [], 0, False, 0
    for position, letter in enumerate(text):
        if letter == '"':
            quoted = not quoted
        elif not quoted and letter in "([{":
            depth += 1
        elif not quoted and letter in ")]}":
            depth -= 1
        elif not quoted and letter == "," and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    return [*parts, text[start:].strip()]


def _plain(value: Any) -> str:
    """A swept value as an override spells it."""
    return value if isinstance(value, str) else json.dumps(value)
