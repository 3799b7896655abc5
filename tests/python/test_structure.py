"""The check against import cycles: what it finds in small crates, and that it reads all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import structure

ONE = {"lib.rs": "mod a; mod b;", "a.rs": "use crate::b::B;", "b.rs": "pub struct B;"}


def crate(root: Path, files: dict[str, str], name: str = "one") -> None:
    folder = root / "crates" / name
    for path, text in {"lib.rs": "", **files}.items():
        file = folder / "src" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    (folder / "Cargo.toml").write_text("", encoding="utf-8")


def found(root: Path, files: dict[str, str]) -> list[str]:
    crate(root, files)
    return structure.problems(root)[0]


def test_no_two_modules_of_a_crate_import_each_other() -> None:
    problems, files = structure.problems(structure.ROOT)
    assert problems == []
    assert files > 300


def test_every_crate_of_the_workspace_is_read() -> None:
    read = {
        str(path.parent.relative_to(structure.ROOT)) for path in structure.manifests(structure.ROOT)
    }
    manifest = (structure.ROOT / "Cargo.toml").read_text(encoding="utf-8")
    paths = re.findall(r'^weir-\w+ = \{ path = "(\w+/\w+)"', manifest, re.MULTILINE)
    assert 'members = ["crates/*", "adapters/noq", "adapters/quinn"]' in manifest
    assert len(paths) >= 10
    assert read >= set(paths)


@pytest.mark.parametrize(
    "import_",
    [
        "use crate::a::A;",
        "use super::a::A;",
        "use crate::{a::A, b::B};",
        "use super::a::*;",
        "use crate::A;",
        "use crate::A as Other;",
        "fn f(x: crate::a::A) {}",
        "impl super::a::A {}",
        "use super::a; fn f() { a::g() }",
        "mod inner { use super::super::a::A; }",
        "pub use super::a::A; fn f(x: &A) {}",
        "/* a \" quote */ const C: char = '\"'; use super::a::A;",
        'const R: &str = r#"\\" } #[cfg(test)]"#; use super::a::A;',
        "#[cfg(test)]\nmod tests { use super::*; }\nuse super::a::A;",
        "#[cfg(unix)]\nuse super::a::A;",
        "fn f<'a>(x: &'a str) -> Option<&'a super::a::A> { None }",
    ],
)
def test_an_import_back_is_found(tmp_path: Path, import_: str) -> None:
    back = {"lib.rs": "mod a; mod b; pub use a::A;", "b.rs": f"{import_} pub struct B;"}
    (cycle,) = found(tmp_path, {**ONE, **back, "a.rs": "use crate::b::B; pub struct A;"})
    assert cycle.splitlines()[0] == "one::a imports one::b (one::a line 1: crate::b::B)"
    assert cycle.splitlines()[1].startswith("one::b imports one::a (one::b line ")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "// use super::a::A;",
        "/* use super::a::A; */",
        'const TEXT: &str = "use super::a::A;";',
        "#[cfg(test)]\nuse super::a::A;",
        "#[cfg(test)]\nmod tests { use super::super::a::A; }",
        "#[cfg(test)]\n#[allow(dead_code)]\nfn f() -> super::a::A { super::a::A }",
        "pub use super::a::A;",
        "use other::a::A;",
    ],
)
def test_what_is_no_import_is_not_found(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, {**ONE, "b.rs": f"{text} pub struct B;"}) == []


def test_a_cycle_of_three_is_found_through_names_that_others_give_on(tmp_path: Path) -> None:
    (cycle,) = found(
        tmp_path,
        {
            "lib.rs": "mod a; mod b; mod c; pub use b::*; use c::deep::C;",
            "a.rs": "use crate::B; pub struct A;",
            "b.rs": "use crate::C; pub struct B;",
            "c/mod.rs": "pub mod deep;",
            "c/deep.rs": "use crate::a::A; pub struct C;",
        },
    )
    assert [line.split(" (")[0] for line in cycle.splitlines()] == [
        "one::a imports one::b",
        "one::b imports one::c",
        "one::c imports one::a",
    ]


def test_a_module_and_its_parts_may_name_each_other(tmp_path: Path) -> None:
    parts = {"lib.rs": "mod a;", "a.rs": "mod b; use b::B; pub struct A;"}
    assert found(tmp_path, {**parts, "a/b.rs": "use super::A; pub struct B;"}) == []


def test_a_tree_without_sources_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no crate in crates/ or adapters/"):
        structure.problems(tmp_path)
    crate(tmp_path, {"lib.rs": "mod lost;"})
    with pytest.raises(ValueError, match=r"mod lost: neither .* nor .* is a file"):
        structure.problems(tmp_path)
    (tmp_path / "crates/one/src/lib.rs").unlink()
    with pytest.raises(FileNotFoundError):
        structure.problems(tmp_path)


def test_a_module_may_have_its_file_elsewhere(tmp_path: Path) -> None:
    lib = '#[path = "host/b.rs"]\nmod b;\nmod a;'
    files = {"lib.rs": lib, "a.rs": "use crate::b::B; pub struct A;"}
    (cycle,) = found(tmp_path, {**files, "host/b.rs": "use crate::a::A; pub struct B;"})
    assert cycle.startswith("one::a imports one::b")
