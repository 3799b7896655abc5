"""The compiled core: scenarios in, tables out. Use the package ``weir`` instead."""

from collections.abc import Sequence
from typing import Literal, final

__all__ = [
    "RunResult",
    "ScenarioError",
    "Table",
    "catalogue",
    "parse_quantity",
    "parse_scenario",
    "run",
    "version",
]

class ScenarioError(ValueError):
    """A scenario that cannot be run: where the mistake is, key, value and what is allowed."""

@final
class Table:
    """A result table. Hand it to ``polars.DataFrame`` or ``pyarrow.table``."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return a capsule with an Arrow C stream over the rows."""

@final
class RunResult:
    """The tables of one run."""

    @property
    def tables(self) -> list[str]:
        """The names of the tables."""

    def table(self, name: str) -> Table:
        """Return the table called ``name``. Raises ``KeyError`` if there is none."""

def catalogue() -> str:
    """Return what a scenario may name: JSON, one list per kind."""

def parse_quantity(kind: Literal["time", "rate", "size", "ratio"], text: str) -> float:
    """Read a quantity: seconds, bits per second, bytes, or a fraction.

    Raises ``ValueError`` naming the value and what is allowed.
    """

def parse_scenario(toml_text: str, overrides: Sequence[tuple[str, str]], source: str) -> str:
    """Read a scenario in TOML, with ``overrides`` (dotted key, value) on top of it.

    ``source`` is its path, for messages and for the trace files beside it. Returns the canonical
    form in JSON. Raises ``ScenarioError``.
    """

def run(scenario: str, seed: int) -> RunResult:
    """Run a scenario in its canonical form. Other threads go on meanwhile.

    Raises ``ScenarioError`` if the network cannot be built, ``RuntimeError`` if a checker finds
    that the simulation went wrong.
    """

def version() -> str:
    """Return the version of the compiled core."""
