"""Counts modules of `python/weir` in import circles, and finds who imports the package's face.

`make lint` runs this file next to `lint-imports`, whose contracts in `pyproject.toml` have the
order of the layers. Imports inside functions and behind `TYPE_CHECKING` count. The contracts leave
out what the face, `weir/__init__.py`, imports. So no module may import from it but the compiled
core.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "weir"
FACE = "weir"
CORE = "weir._native"


def modules(package: Path) -> dict[str, Path]:
    """Returns the files of a package by the name of the module."""
    found = {}
    for file in sorted(package.rglob("*.py")):
        parts = file.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imports(file: Path) -> Iterator[tuple[str, int]]:
    """Yields what a file imports, as dotted names, with their lines."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((one.name, node.lineno) for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((f"{node.module}.{one.name}", node.lineno) for one in node.names)


def graph(known: Mapping[str, Path]) -> dict[str, set[str]]:
    """Returns the modules that each module but the face imports."""
    found = {}
    for name, file in known.items():
        targets = {_module(imported, known) for imported, _ in imports(file)}
        found[name] = {one for one in targets if one and one not in (name, FACE)}
    found.pop(FACE, None)
    return found


def _module(name: str, known: Mapping[str, Path]) -> str | None:
    """Returns the module that a dotted name is in; None if it is no module of the package."""
    while name and name not in known:
        name = name.rpartition(".")[0]
    return name or None


def in_circles(arrows: Mapping[str, set[str]]) -> set[str]:
    """Returns the modules from which arrows lead back to them."""
    return {name for name in arrows if name in _reached(name, arrows)}


def _reached(start: str, arrows: Mapping[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        new = arrows.get(waiting.pop(), set()) - seen
        seen |= new
        waiting += new
    return seen


def uses_of_face(known: Mapping[str, Path]) -> Iterator[str]:
    """Yields the imports of the face, `path:line: name`, but those of the compiled core."""
    for name, file in known.items():
        if name == FACE:
            continue
        for imported, line in imports(file):
            if _module(imported, known) == FACE and not imported.startswith(CORE):
                yield f"{file}:{line}: {imported}"


def order() -> list[str]:
    """Returns the layers from the ground up, as the contract in `pyproject.toml` has them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["id"] == "layers")
    return [str(layer) for layer in reversed(layers)]


def duty(layer: str, package: Path = PACKAGE) -> str:
    """Returns what a layer is for: the first line of its `__init__.py`."""
    tree = ast.parse((package / layer / "__init__.py").read_text(encoding="utf-8"))
    return (ast.get_docstring(tree) or "").partition("\n")[0]


def main() -> int:
    """Prints what is wrong, and how many modules were read."""
    known = modules(PACKAGE)
    circles, uses = sorted(in_circles(graph(known))), list(uses_of_face(known))
    for name in circles:
        print(f"{name}: in an import circle")
    for use in uses:
        print(f"{use}: import what you need from its layer, not from the package's face")
    print(f"{len(known)} modules in {len(order())} layers, {len(circles)} in import circles")
    return 1 if circles or uses else 0


if __name__ == "__main__":
    sys.exit(main())
