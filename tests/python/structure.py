"""Checks that no two modules of a crate import each other, directly or through others.

`make lint` runs this file. It reads the sources itself: a tool that asks the compiler takes minutes
to build. A module is a file with the folder of its parts. It imports another if its code names an
item that the other defines. These are no imports:

- between a module and its parts, which see its private items and have no other user,
- a `pub use` of a name that the file does not use itself: it gives an item a second path,
- in tests, and `mod child;`.
"""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]

Name = tuple[str, ...]
"""A module or a path, as in `("net", "queue")`."""

_TOKEN = re.compile(
    r"""//[^\n]* | /\*.*?\*/
    | [bc]?r(?P<hashes>\#*)".*?"(?P=hashes)
    | [bc]?"(?:[^"\\]|\\.)*"
    | b?'(?:[^'\\\n]|\\[^u]|\\x..|\\u\{[^}]*\})'
    | '\w+
    | \w+ | :: | [^\s\w]""",
    re.VERBOSE | re.DOTALL,
)
_PATH = re.compile(r'#\[path = "([^"]+)"\]\s+mod (\w+);')
"""A module whose file has another name, relative to the folder of the file that declares it."""
MOST_STEPS = 32
"""Re-exports that are followed: more are a circle of glob imports."""

_DEFINES = {"struct", "enum", "union", "trait", "fn", "type", "const", "static"}
_OPENING, _CLOSING = "({[", ")}]"


@dataclass(frozen=True)
class Token:
    text: str
    line: int


@dataclass
class Import:
    """A name that a `use` brings into a module."""

    path: Name
    line: int
    is_public: bool


@dataclass
class Module:
    """A module: a file, or a block `mod name { … }` of one."""

    file: Name
    children: set[str] = field(default_factory=set)
    defined: set[str] = field(default_factory=set)
    imports: dict[str, Import] = field(default_factory=dict)
    globs: list[Import] = field(default_factory=list)
    paths: list[tuple[Name, int]] = field(default_factory=list)
    """Paths that the code names, with their lines."""
    words: set[str] = field(default_factory=set)
    """Every word of its code outside `use`."""

    def has(self, name: str) -> bool:
        return name in self.children or name in self.defined or name in self.imports

    def named(self) -> Iterator[tuple[Name, int]]:
        """Yields the paths that its code needs, with their lines."""
        yield from self.paths
        for name, used in self.imports.items():
            if not used.is_public or name in self.words:
                yield used.path, used.line
        for glob in self.globs:
            if not glob.is_public:
                yield glob.path, glob.line


def tokens(text: str) -> list[Token]:
    """Splits Rust into words and signs, without comments and the contents of texts."""
    found, line, at = [], 1, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", at, match.start())
        at, word = match.start(), match[0]
        if not word.startswith(("//", "/*")):
            found.append(Token('""' if word[-1] in "\"'" or word[0] == "'" else word, line))
    return found


class Reader:
    """Reads the modules of one file."""

    def __init__(self, modules: dict[Name, Module], file: Name, text: str) -> None:
        self.modules, self.file = modules, file
        self.tokens = tokens(text)
        self.at = 0
        self.read(file, end=None)

    def word(self, ahead: int = 0) -> str:
        place = self.at + ahead
        return self.tokens[place].text if place < len(self.tokens) else ""

    def read(self, name: Name, end: str | None) -> None:
        """Reads one module, up to the brace that closes it."""
        module = self.modules.setdefault(name, Module(self.file))
        depth, is_public = 0, False
        while self.at < len(self.tokens):
            word = self.word()
            if word == end and depth == 0:
                return
            if word == "#" and self.word(1) == "[" and self._is_test():
                self._skip_item()
            elif word == "pub" and self.word(1) == "(":
                self.at += 1
                self._skip_group()
                is_public = True
            elif word == "pub":
                self.at += 1
                is_public = True
            elif word == "use":
                self._read_use(module, is_public)
                is_public = False
            elif word == "mod" and self.word(2) in {";", "{"}:
                self._read_mod(module, name)
                is_public = False
            else:
                if (depth == 0 and word in _DEFINES) or word == "macro_rules":
                    ahead = 2 if self.word(1) in {"!", "mut", "fn"} else 1
                    module.defined.add(self.word(ahead))
                depth += (word in _OPENING) - (word in _CLOSING)
                is_public = False
                self._read_path(module)

    def _is_test(self) -> bool:
        """Whether the attribute at hand keeps an item out of the library."""
        end = self._end_of_group(self.at + 1)
        text = "".join(token.text for token in self.tokens[self.at : end])
        return text in {"#[cfg(test)]", "#[cfg(doctest)]"}

    def _end_of_group(self, start: int) -> int:
        depth = 0
        for place in range(start, len(self.tokens)):
            word = self.tokens[place].text
            depth += (word in _OPENING) - (word in _CLOSING)
            if depth == 0:
                return place + 1
        raise ValueError(f"{'::'.join(self.file)}: a bracket is not closed")

    def _skip_group(self) -> None:
        self.at = self._end_of_group(self.at)

    def _skip_item(self) -> None:
        """Skips attributes and the item that follows: up to its semicolon or its braces."""
        while self.word() == "#":
            self.at += 1
            self._skip_group()
        while self.at < len(self.tokens):
            word = self.word()
            if word == "{" or word in "([":
                self._skip_group()
                if word == "{":
                    return
            elif word in _CLOSING:
                return
            else:
                self.at += 1
                if word in {";", ","}:
                    return

    def _read_mod(self, module: Module, name: Name) -> None:
        child = self.word(1)
        module.children.add(child)
        is_block = self.word(2) == "{"
        self.at += 3
        if is_block:
            self.read((*name, child), end="}")
            self.at += 1

    def _read_use(self, module: Module, is_public: bool) -> None:
        self.at += 1
        self._read_tree(module, (), is_public)
        self.at += 1

    def _read_tree(self, module: Module, before: Name, is_public: bool) -> None:
        """Reads `a::b as c`, `a::*` or `a::{…}`."""
        path, line = before, self.tokens[self.at].line
        while True:
            word = self.word()
            if word == "{":
                self.at += 1
                while self.word() != "}":
                    self._read_tree(module, path, is_public)
                    self.at += self.word() == ","
                self.at += 1
                return
            self.at += 1
            if word == "*":
                module.globs.append(Import(path, line, is_public))
                return
            if word != "::":
                path = (*path, word)
                if self.word() != "::":
                    break
        path = path[:-1] if path[-1] == "self" and len(path) > 1 else path
        name = path[-1]
        if self.word() == "as":
            name = self.word(1)
            self.at += 2
        module.imports[name] = Import(path, line, is_public)

    def _read_path(self, module: Module) -> None:
        """Reads the word or path at hand: only paths that begin with a module leave the file."""
        line = self.tokens[self.at].line
        path = [self.word()]
        previous = self.tokens[self.at - 1].text if self.at else ""
        self.at += 1
        if not path[0][0].isalpha() and path[0][0] != "_":
            return
        while self.word() == "::" and re.match(r"[a-zA-Z_]", self.word(1)):
            path.append(self.word(1))
            self.at += 2
        if previous != "::":
            module.words.add(path[0])
            if len(path) > 1:
                module.paths.append((tuple(path), line))


def crate_modules(source: Path, name: str) -> dict[Name, Module]:
    """Reads the modules of a crate, without its tests: the folder `src`, and the crate's name."""
    modules: dict[Name, Module] = {}
    waiting: deque[tuple[Name, Path]] = deque([((name,), source / "lib.rs")])
    while waiting:
        module, file = waiting.popleft()
        text = file.read_text(encoding="utf-8")
        Reader(modules, module, text)
        elsewhere = {child: file.parent / path for path, child in _PATH.findall(text)}
        folder = file.parent if file.name in {"lib.rs", "mod.rs"} else file.with_suffix("")
        for child in sorted(modules[module].children):
            if (*module, child) in modules:
                continue
            files = [folder / f"{child}.rs", folder / child / "mod.rs"]
            there = [path for path in (elsewhere.get(child), *files) if path and path.is_file()]
            if not there:
                raise ValueError(
                    f"{file}: mod {child}: neither {files[0]} nor {files[1]} is a file"
                )
            waiting.append(((*module, child), there[0]))
    return modules


def resolve(modules: Mapping[Name, Module], start: Name, path: Name, steps: int = 0) -> Name | None:
    """Returns the module that defines what `path` names in the module `start`.

    None for the name of another crate, of the standard library or of a local item.
    """
    at, rest = start, path
    if rest[0] == "crate":
        at, rest = start[:1], rest[1:]
    elif rest[0] in {"self", "super"}:
        while rest and rest[0] in {"self", "super"}:
            at, rest = at[:-1] if rest[0] == "super" else at, rest[1:]
    elif rest[0] not in modules[at].children and rest[0] not in modules[at].imports:
        return None
    while rest and rest[0] in modules[at].children:
        at, rest = (*at, rest[0]), rest[1:]
    module = modules[at]
    if not rest or rest[0] in module.defined or steps > MOST_STEPS:
        return at
    if rest[0] in module.imports:
        used = module.imports[rest[0]].path
        is_itself = at == start and used == path
        return None if is_itself else resolve(modules, at, (*used, *rest[1:]), steps + 1)
    for glob in module.globs:
        found = resolve(modules, at, glob.path, steps + 1)
        if found is not None and modules[found].has(rest[0]):
            return resolve(modules, found, ("self", *rest), steps + 1)
    return at


def imports(modules: Mapping[Name, Module]) -> dict[tuple[str, str], str]:
    """Returns pairs of sibling modules of which the first imports the second, and the place."""
    found: dict[tuple[str, str], str] = {}
    for name, module in modules.items():
        for path, line in module.named():
            target = resolve(modules, name, path)
            pair = _siblings(module.file, modules[target].file) if target else None
            if pair:
                place = f"{'::'.join(module.file)} line {line}: {'::'.join(path)}"
                found.setdefault(pair, place)
    return found


def _siblings(source: Name, target: Name) -> tuple[str, str] | None:
    """Returns the outermost modules with only one of the two; None if one is part of the other."""
    for length, (ours, theirs) in enumerate(zip(source, target, strict=False), 1):
        if ours != theirs:
            return "::".join(source[:length]), "::".join(target[:length])
    return None


def cycles(pairs: Set[tuple[str, str]]) -> list[list[str]]:
    """Returns shortest cycles, until each module on a cycle shares one of them or reaches one."""
    after = _after(pairs)
    found: list[list[str]] = []
    covered: set[str] = set()
    for start in sorted(after):
        ring = shortest(after, start, start)
        if ring and start not in covered:
            found.append(ring)
            covered |= {other for other in after if _is_joined(after, start, other)}
    return found


def _after(pairs: Set[tuple[str, str]]) -> dict[str, list[str]]:
    after: dict[str, list[str]] = {}
    for source, target in sorted(pairs):
        after.setdefault(source, []).append(target)
    return after


def _is_joined(after: Mapping[str, list[str]], one: str, other: str) -> bool:
    return bool(shortest(after, one, other) and shortest(after, other, one))


def shortest(after: Mapping[str, list[str]], start: str, end: str) -> list[str]:
    """Returns a shortest way from `start` to `end`, without `end`; empty if there is none."""
    ways, seen = deque([[start]]), set[str]()
    while ways:
        way = ways.popleft()
        for following in after.get(way[-1], []):
            if following == end:
                return way
            if following not in seen:
                seen.add(following)
                ways.append([*way, following])
    return []


def manifests(root: Path) -> list[Path]:
    """Returns the manifests of our crates: those of the workspace, and the adapters'."""
    return sorted([*root.glob("crates/*/Cargo.toml"), *root.glob("adapters/*/Cargo.toml")])


def problems(root: Path) -> tuple[list[str], int]:
    """Returns the cycles of the crates of the workspace `root`, and the number of files."""
    crates = [path.parent for path in manifests(root)]
    if not crates:
        raise ValueError(f"{root}: no crate in crates/ or adapters/")
    found, files = [], 0
    for crate in crates:
        modules = crate_modules(crate / "src", crate.name)
        files += len({module.file for module in modules.values()})
        places = imports(modules)
        for ring in cycles(places.keys()):
            pairs = zip(ring, [*ring[1:], ring[0]], strict=True)
            found.append("\n".join(f"{a} imports {b} ({places[a, b]})" for a, b in pairs))
    return found, files


def main() -> None:
    found, files = problems(ROOT)
    if found:
        sys.exit("\n\n".join(["modules of a crate import each other:", *found]))
    print(f"{files} Rust files: no two modules of a crate import each other")


if __name__ == "__main__":
    main()
