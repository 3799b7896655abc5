"""The contenders there are, what they lack on this machine, and what a stack means by one."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from weir._native import parse_contender
from weir.base import cache
from weir.base.errors import InputError, unknown
from weir.contenders import definition, own
from weir.contenders.definition import Definition, Parameter
from weir.kernel import recipe

SHIPPED = Path(__file__).parent
"""The folder of the definitions that come with Weir."""

SUFFIX = ".toml"
_CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_VERSION_S = 10.0


@dataclass(frozen=True, slots=True)
class Contender:
    """A definition with the values that a stack gives its parameters."""

    stack: str
    definition: Definition
    values: Mapping[str, str]
    """Of each parameter, as the stack writes it."""
    file: str | None = None
    """The definition's file, if it is not a shipped one."""

    @property
    def arguments(self) -> Mapping[str, str]:
        """The same, by the program's names."""
        words = {}
        for name, value in self.values.items():
            parameter = self.definition.parameter(name)
            known = parameter.values if parameter is not None else None
            words[name] = value if known is None else known[value]
        return words


def names() -> list[str]:
    """The names of the shipped contenders."""
    return sorted(file.stem for file in SHIPPED.glob(f"*{SUFFIX}"))


def find(name: str) -> Definition:
    """The definition of this name, or in the file of this name.

    Raises:
        InputError: there is none, or it is not valid.
    """
    if name.endswith(SUFFIX):
        return definition.read(Path(name))
    if name.startswith(own.PREFIX) and own.file_of(name).is_file():
        return definition.read(own.file_of(name))
    if name not in names():
        hint = f"a name that ends in {SUFFIX} is a file"
        raise InputError(f"contender:{name}: {unknown('contender', name, names())}; {hint}")
    return definition.read(SHIPPED / f"{name}{SUFFIX}")


def of(stack: str) -> Contender | None:
    """What a stack means, if it is a contender.

    Raises:
        InputError: there is no such contender, or a parameter is not allowed.
    """
    try:
        parsed = parse_contender(stack)
    except ValueError as error:
        raise InputError(str(error)) from None
    if parsed is None:
        return None
    name, given = parsed
    found = find(name)
    values = {parameter.name: parameter.default for parameter in found.parameters}
    for key, value in given:
        parameter = found.parameter(key)
        if parameter is None:
            known = ", ".join(values) or "none"
            raise InputError(f"{stack}: {key} = {value}: unknown parameter; allowed: {known}")
        if parameter.values is not None and value not in parameter.values:
            allowed = ", ".join(parameter.values)
            raise InputError(f"{stack}: {key} = {value}: allowed is {allowed}")
        values[key] = value
    return Contender(stack, found, values, name if name.endswith(SUFFIX) else None)


def check(stacks: Sequence[tuple[str, str]], *, virtual: bool) -> list[Contender]:
    """The contenders among `stacks`, each given with the kind of its workload.

    Raises:
        InputError: one cannot run on this machine, or not with the others.
    """
    found = []
    for stack, workload in stacks:
        contender = of(stack)
        if contender is None:
            continue
        if workload not in contender.definition.workloads:
            allowed = ", ".join(contender.definition.workloads)
            hint = "; add --size" if allowed == "file" else ""
            raise InputError(f"{stack}: workload.kind = {workload}: it has {allowed} only{hint}")
        _check_cc(contender, virtual=virtual)
        lacking = missing(contender)
        if lacking is not None:
            is_own = own.PREFIX in stack
            raise InputError(f"{contender.definition.about if is_own else stack}: {lacking}")
        found.append(contender)
    _check_common(found)
    return found


def rows() -> list[dict[str, str]]:
    """What `weir list contenders` prints."""
    found = []
    for name in names():
        wanted = find(name)
        lacking = missing(Contender(name, wanted, {p.name: p.default for p in wanted.parameters}))
        found.append(
            {
                "name": name,
                "description": wanted.about,
                "parameters": ", ".join(map(_shown, wanted.parameters)),
                "transport": wanted.transport,
                "workloads": ", ".join(wanted.workloads),
                "missing": lacking or "",
            }
        )
    return found


def _shown(parameter: Parameter) -> str:
    values = "the kernel's" if parameter.values is None else "|".join(parameter.values)
    return f"{parameter.name}={values}"


def missing(contender: Contender) -> str | None:
    """What this machine lacks for it; None if nothing."""
    wanted = contender.definition
    folder = bin_folder()
    for word in (*(command[0] for command in wanted.commands), *wanted.programs):
        values = {**contender.arguments, "bin": str(folder)}
        program = definition.filled(word, values.get)
        if shutil.which(program) is not None:
            continue
        if program.startswith(str(folder)):
            return f"{Path(program).name} is not built; `{_build_command(contender)}`"
        packages = f"; Debian packages: {', '.join(wanted.packages)}" if wanted.packages else ""
        return f"no program {program}{packages}"
    return None


def _build_command(contender: Contender) -> str:
    newest = {one.name: one.default for one in contender.definition.parameters}.get("version")
    chosen = contender.arguments.get("version")
    more = f" --version {chosen}" if chosen != newest else ""
    return f"weir stack contender {contender.definition.name}{more}"


def version(contender: Contender) -> str:
    """The first line that its version command prints; empty if it prints none."""
    values = {**contender.arguments, "bin": str(bin_folder())}
    command = [definition.filled(word, values.get) for word in contender.definition.version]
    if not command:
        return ""
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=_VERSION_S)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = (done.stdout or done.stderr).decode(errors="replace").strip().splitlines()
    return lines[0].strip() if lines else ""


def bin_folder() -> Path:
    """Where `weir stack contender` installs programs."""
    return cache.home() / "contenders" / "bin"


def _check_cc(contender: Contender, *, virtual: bool) -> None:
    """The kernel's congestion controls are those of the guest's, or of this machine's."""
    parameter = contender.definition.parameter("cc")
    if parameter is None or parameter.values is not None:
        return
    known = recipe.CONTROLS if virtual else tuple(_CONTROLS.read_text().split())
    value = contender.values["cc"]
    if value not in known:
        raise InputError(f"{contender.stack}: cc = {value}: allowed is {', '.join(known)}")


def _check_common(contenders: Sequence[Contender]) -> None:
    """Programs without an option for it take the congestion control of their namespace."""
    wanted = {c.values["cc"]: c.stack for c in contenders if c.definition.via == "sysctl"}
    if len(wanted) > 1:
        stacks = " and ".join(wanted.values())
        raise InputError(
            f"{stacks}: they take the congestion control from the kernel's setting, which has one "
            "value in a run"
        )
