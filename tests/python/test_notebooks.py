"""The notebooks run from top to bottom and give what they show.

`WEIR_BLESS=1 pytest tests/python/test_notebooks.py` rewrites their outputs.
Cells are plain Python, so no kernel of a notebook is needed to run them.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import vl_convert

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))
_TEXTS = {"text/html", "text/plain"}
"""What is compared; pictures depend on the fonts of the machine."""

_PICTURE = re.compile(r'"data:image/[^"]*"')

Output = dict[str, Any]


def test_there_are_notebooks() -> None:
    names = {"capture-to-advice", "own-controller", "study", "sweep"}
    assert {path.stem for path in NOTEBOOKS} == names


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_its_cells_give(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    document = json.loads(path.read_text(encoding="utf-8"))
    cells = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    assert cells
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(cells, 1):
        outputs = _run("".join(cell["source"]), names, number)
        if "WEIR_BLESS" in os.environ:
            cell["execution_count"], cell["outputs"] = number, outputs
        else:
            assert list(map(_texts, cell["outputs"])) == list(map(_texts, outputs))
    if "WEIR_BLESS" in os.environ:
        text = json.dumps(document, indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")


def _run(source: str, names: dict[str, Any], number: int) -> list[Output]:
    """What a cell prints, and the value of its last line as a notebook shows it."""
    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "cell", "exec"), names)  # noqa: S102
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # noqa: S307
    outputs: list[Output] = []
    if text := printed.getvalue():
        lines = text.splitlines(keepends=True)
        outputs.append({"name": "stdout", "output_type": "stream", "text": lines})
    if value is not None:
        outputs.append(
            {
                "data": _shown(value),
                "execution_count": number,
                "metadata": {},
                "output_type": "execute_result",
            }
        )
    return outputs


def _shown(value: Any) -> Output:
    if hasattr(value, "_repr_html_") and not hasattr(value, "to_json"):
        return {"text/html": value._repr_html_().splitlines(keepends=True)}
    if hasattr(value, "to_json"):
        picture = vl_convert.vegalite_to_png(value.to_json(), scale=1)
        return {"image/png": base64.b64encode(picture).decode()}
    return {"text/plain": repr(value).splitlines(keepends=True)}


def _texts(output: Output) -> Output:
    shown = {key: text for key, text in output.get("data", {}).items() if key in _TEXTS}
    data = {key: _PICTURE.sub("", "".join(text)) for key, text in shown.items()}
    return {"data": data, "text": output.get("text"), "kind": output["output_type"]}
