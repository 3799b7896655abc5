"""Writes a bundle: the same results give the same bytes."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from weir.base.errors import InputError, StoreError
from weir.base.options import Option, documented
from weir.bundle import crate
from weir.results.results import Results
from weir.results.store import slug
from weir.scenario import capture
from weir.scenario.toml import toml

RESULTS = "results/"
SUFFIX = ".crate.zip"

_DATE = (1980, 1, 1, 0, 0, 0)
"""Of every file: the first that a zip file can have.

Nothing is compressed: tables are already, and another zlib would give other bytes.
"""


@documented()
def write(
    results: Results,
    out: Annotated[
        Path | None,
        Option("The new file.", metavar="FILE", short="-o", default_text=f"NAME{SUFFIX}"),
    ] = None,
) -> Path:
    """Writes one zip with scenarios, seeds, manifest, tables and their description.

    Args:
        results: The results.

    Raises:
        InputError: the file is there already, or a table is damaged.
        StoreError: it cannot be written.
    """
    path = out or Path(f"{slug(results.manifest['name'])}{SUFFIX}")
    if path.exists():
        raise InputError(f"--out {path}: it is there already, and nothing is overwritten")
    results.verify()
    texts = _scenarios(results)
    texts["README.md"] = crate.readme(results, path.name)
    texts["Dockerfile"] = crate.dockerfile(results)
    files = {f"{RESULTS}{file.name}": file for file in _files(results)}
    texts[crate.METADATA] = crate.metadata(results, [*texts, *files])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.") as temporary:
            _pack(Path(temporary.name), texts, files)
            path.hardlink_to(temporary.name)
        path.chmod(0o644)
    except FileExistsError:
        raise InputError(f"--out {path}: it is there already, and nothing is overwritten") from None
    except OSError as error:
        raise StoreError(f"--out {path}: cannot be written: {error.strerror}") from None
    return path


def _scenarios(results: Results) -> dict[str, str]:
    stems = capture.names([case["label"] for case in results.cases])
    return {
        f"scenarios/{stems[case['label']]}.toml": toml(case["scenario"]) for case in results.cases
    }


def _files(results: Results) -> list[Path]:
    """The manifest, the tables, and what a study or check keeps next to them."""
    found = [path for kind in ("*.json", "*.parquet") for path in results.path.glob(kind)]
    return sorted(path for path in found if path.is_file() and not path.is_symlink())


def _pack(path: Path, texts: Mapping[str, str], files: Mapping[str, Path]) -> None:
    with zipfile.ZipFile(path, "w") as packed:
        for name, text in sorted(texts.items()):
            packed.writestr(_entry(name), text)
        for name, file in sorted(files.items()):
            packed.writestr(_entry(name), file.read_bytes())


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _DATE)
    entry.external_attr = 0o644 << 16
    return entry
