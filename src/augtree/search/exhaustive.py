"""All trees of two levels, each scored by itself: what greed costs, for small spaces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement

from augtree.policies import Tree
from augtree.search.scorers.base import Entry, Score
from augtree.search.scorers.retrain import Trainings
from augtree.training.trainer import seed_of
from augtree.transforms import Identity
from augtree.transforms.base import Transform


def trees(candidates: Sequence[Transform], at_root: float = 0.9) -> Iterator[Tree]:
    """Every tree of at most two levels, with fixed probabilities; left and right are then alike, and counted once."""
    leaves = [Identity(), *candidates]
    for root in candidates:
        for left, right in combinations_with_replacement(leaves, 2):
            tree = Tree().with_node(1, root, at_root)
            # Identity, if there is one, stands on the left: the other is there with what it leaves.
            for index, leaf in ((3, right), (2, left)):
                if not isinstance(leaf, Identity):
                    tree = tree.with_node(index, leaf, 0.5)
            yield tree


def count(candidates: int) -> int:
    """How many trees there are."""
    return candidates * (candidates + 1) * (candidates + 2) // 2


def score_all(scorer: Trainings) -> Iterator[tuple[Tree, Score]]:
    """Every tree by a training of its own; failed ones are left out."""
    bench, rows = scorer.bench, scorer.bench.rank_rows
    seed = seed_of(bench.seed, "exhaustive")
    about = {"node": 1, "round": "exhaustive", "steps": scorer.steps}
    yard = bench.yardstick("node/1/exhaustive/yardstick", about, lambda: scorer.losses(Tree(), seed, rows))
    for tree in trees(bench.candidates):
        work = lambda tree=tree: scorer.losses(tree, seed, rows)  # noqa: E731
        score = bench.score(f"node/1/exhaustive/{tree!r}", about, Entry(tree, 1.0), yard, work)
        if not score.failed:
            yield tree, score
