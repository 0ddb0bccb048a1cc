"""All trees of two levels, each scored by itself: what greed costs, for small spaces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement

from augtree.policies import Tree
from augtree.search.scorers.anneal import Branches, Trunk
from augtree.search.scorers.base import Entry, Score
from augtree.tasks.trainer import seed_of
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


def score_all(branches: Branches, trunk: Trunk) -> Iterator[tuple[Tree, Score]]:
    """Every tree on the longest branch from one trunk; failed ones are left out."""
    bench, share = branches.bench, branches.options.rungs[-1]
    seed, rows = seed_of(bench.seed, "exhaustive"), bench.rank_rows
    about = {"node": 1, "round": "exhaustive", "steps": branches.steps(share)}
    yard = bench.yardstick(
        "node/1/exhaustive/yardstick", about, lambda: branches.branch(trunk, Tree(), share, seed, rows)
    )
    for tree in trees(bench.candidates, branches.options.first_p[0]):
        key = f"node/1/exhaustive/{tree!r}"
        work = lambda tree=tree: branches.branch(trunk, tree, share, seed, rows)  # noqa: E731
        score = bench.score(key, about, Entry(tree, 1.0), yard, work)
        if not score.failed:
            yield tree, score
