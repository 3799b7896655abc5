"""The description of a bundle as an RO-Crate (w3id.org/ro/crate/1.1), and its texts for people."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from weir.base.extras import DISTRIBUTION
from weir.bundle.citation import citation, sentence
from weir.results.results import Results

METADATA = "ro-crate-metadata.json"
_TYPES = {
    "json": "application/json",
    "md": "text/markdown",
    "parquet": "application/vnd.apache.parquet",
    "toml": "application/toml",
    "html": "text/html",
}


def metadata(results: Results, names: Iterable[str]) -> str:
    """The JSON-LD that says what each file is, and which program made them with which command."""
    found = citation(results)
    files = sorted(names)
    graph: list[dict[str, Any]] = [
        {
            "@id": METADATA,
            "@type": "CreativeWork",
            "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
            "about": {"@id": "./"},
        },
        {
            "@id": "./",
            "@type": "Dataset",
            "name": found["title"],
            "description": sentence(found),
            "datePublished": found["date"],
            "license": "The terms of their author; Weir itself: Apache-2.0.",
            "identifier": found["hash"],
            "hasPart": [{"@id": name} for name in files],
            "mentions": {"@id": "#run"},
        },
        {
            "@id": "#weir",
            "@type": "SoftwareApplication",
            "name": "Weir",
            "version": results.manifest["version"],
            "softwareVersion": found["version"],
        },
        {
            "@id": "#run",
            "@type": "CreateAction",
            "name": found["command"],
            "instrument": {"@id": "#weir"},
            "endTime": results.manifest["created"],
            "result": {"@id": "./"},
        },
        *({"@id": name, "@type": "File", "encodingFormat": _format(name)} for name in files),
    ]
    whole = {"@context": "https://w3id.org/ro/crate/1.1/context", "@graph": graph}
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def readme(results: Results, file: str) -> str:
    """What a reader sees first."""
    found = citation(results)
    return f"""# {found["title"]}

{sentence(found)}

`results/` is the result directory, `scenarios/` has the scenario file of each case with every key.

To repeat all runs of the simulator and compare the hash of every delivery:

    pip install '{DISTRIBUTION}=={results.manifest["version"]}'
    weir bundle --check {file}

or, where Docker is: `docker build -t repeat . && docker run --rm repeat` in this folder.

To look at them: `weir report results`. `weir read results` says what limited each connection.
"""


def dockerfile(results: Results) -> str:
    """What repeats the runs in a container."""
    return f"""FROM python:3.13-slim
RUN pip install --no-cache-dir '{DISTRIBUTION}=={results.manifest["version"]}'
COPY . /bundle
CMD ["weir", "bundle", "--check", "/bundle"]
"""


def _format(name: str) -> str:
    return _TYPES.get(name.rpartition(".")[2], "application/octet-stream")
