"""How to cite results: which Weir, which scenario, and a hash that names these very numbers."""

from __future__ import annotations

import hashlib
import json

from weir.base.plain import plain
from weir.results.results import Results

_DIGITS = 16


def digest(results: Results) -> str:
    """A hash over the scenarios, seeds and tables of results, in hexadecimal."""
    manifest = results.manifest
    parts = {key: manifest.get(key) for key in ("version", "cases", "seeds", "tables")}
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def citation(results: Results) -> dict[str, str]:
    """The parts of a citation: title, version, date, command, hash."""
    manifest = results.manifest
    build = manifest.get("build") or {}
    commit = f", commit {build['commit']}" if build.get("commit") else ""
    return {
        "title": plain(f"Weir results: {manifest['name']}"),
        "version": plain(f"Weir {manifest['version']}{commit}"),
        "date": plain(manifest["created"][:10]),
        "command": plain(manifest["command"]),
        "hash": digest(results),
    }


def sentence(found: dict[str, str]) -> str:
    """A citation as text."""
    return (
        f"{found['title']}. Made with {found['version']} on {found['date']} by "
        f"`{found['command']}`. Hash {found['hash']}."
    )


def bibtex(found: dict[str, str]) -> str:
    """A citation for LaTeX."""
    fields = {
        "title": f"{{{found['title']}}}",
        "author": "{{Weir contributors}}",
        "year": found["date"][:4],
        "note": f"{{{found['version']}, hash {found['hash']}}}",
        "howpublished": f"{{\\texttt{{{_escaped(found['command'])}}}}}",
    }
    lines = "".join(f"  {key} = {value},\n" for key, value in fields.items())
    return f"@misc{{weir-{found['hash']},\n{lines}}}"


def _escaped(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    special |= {mark: f"\\{mark}" for mark in "&%$#_{}"}
    return "".join(special.get(mark, mark) for mark in text)
