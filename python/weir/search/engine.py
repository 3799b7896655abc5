"""A small evolution strategy with ask and tell, for numbers, choices and keys that may be absent.

Each batch has new random points, and children of the best points so far: a parent of a tournament,
uniform crossover with another, and mutation of a few genes. A number moves by a normal step whose
size is drawn from three scales, so that the search looks far and near at once; a choice is drawn
again (Beyer and Schwefel 2002; Doerr et al. 2017 on rates with heavy tails). The first batch is a
Latin hypercube. A batch depends on the seed, its number and the scores so far, so that the same
answers give the same questions.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from weir.search.space import Gene, Point

_SCALES = (0.3, 0.1, 0.02)
_NEW = 0.2
"""Share of a batch that is drawn at random."""
_ELITE = 10


@dataclass
class Evolution:
    """Points of a space, better and better. Scores are minimised; None is worse than any."""

    genes: Sequence[Gene]
    seed: int
    share_new: float = _NEW
    """1 makes it a random search."""
    _scored: dict[Point, float] = field(default_factory=dict)
    """In the order of their last scores, by which equal ones are sorted."""
    _batch: int = 0

    def ask(self, count: int) -> list[Point]:
        """The next points."""
        rng = random.Random(f"{self.seed} {self._batch}")  # noqa: S311
        self._batch += 1
        if not self._scored:
            return _hypercube(len(self.genes), count, rng)
        elite = sorted(self._scored, key=self._scored.__getitem__)[:_ELITE]
        new = round(self.share_new * count)
        points = [tuple(rng.random() for _ in self.genes) for _ in range(new)]
        return points + [self._child(elite, rng) for _ in range(new, count)]

    def tell(self, points: Sequence[Point], scores: Sequence[float | None]) -> None:
        """The scores of points, in their order. The last one of a point counts."""
        for point, score in zip(points, scores, strict=True):
            self._scored.pop(point, None)
            if score is not None:
                self._scored[point] = score

    def _child(self, elite: Sequence[Point], rng: random.Random) -> Point:
        one, other = (elite[min(rng.randrange(len(elite)) for _ in range(2))] for _ in range(2))
        crossed = rng.random() < 0.5
        child = [
            b if crossed and rng.random() < 0.5 else a for a, b in zip(one, other, strict=True)
        ]
        rate = max(0.15, 1.5 / len(child))
        chosen = [i for i in range(len(child)) if rng.random() < rate]
        for index in chosen or [rng.randrange(len(child))]:
            child[index] = _mutated(child[index], self.genes[index], rng)
        return tuple(child)


def _mutated(place: float, gene: Gene, rng: random.Random) -> float:
    if gene.is_switch:
        return 1.0 - place
    if gene.choices:
        return rng.random()
    moved = abs(place + rng.gauss(0.0, rng.choice(_SCALES)))  # reflected at both ends
    return max(0.0, 2.0 - moved) if moved > 1.0 else moved


def _hypercube(genes: int, count: int, rng: random.Random) -> list[Point]:
    """Points with one value in each of `count` slices of every gene."""
    columns = []
    for _ in range(genes):
        places = [(slot + rng.random()) / count for slot in range(count)]
        rng.shuffle(places)
        columns.append(places)
    return list(zip(*columns, strict=True))
