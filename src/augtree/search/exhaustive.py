"""Exhaustive search over all trees of two levels, for small spaces: what the greedy search misses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations_with_replacement

from augtree.policies import Tree
from augtree.runs.failures import BudgetSpentError
from augtree.search.grow import Growth
from augtree.search.scorers.base import Entry, Score
from augtree.search.scorers.retrain import Trainings
from augtree.training.state import seed_of
from augtree.transforms import Identity
from augtree.transforms.base import Transform


def trees(candidates: Sequence[Transform], at_root: float = 0.9) -> Iterator[Tree]:
    """Every tree of at most two levels with fixed probabilities; trees that differ by left and right come once."""
    leaves = [Identity(), *candidates]
    for root in candidates:
        for left, right in combinations_with_replacement(leaves, 2):
            tree = Tree().with_node(1, root, at_root)
            # Identity, if any, is on the left.
            for index, leaf in ((3, right), (2, left)):
                if not isinstance(leaf, Identity):
                    tree = tree.with_node(index, leaf, 0.5)
            yield tree


def count(candidates: int) -> int:
    """How many trees there are."""
    return candidates * (candidates + 1) * (candidates + 2) // 2


def search(scorer: Trainings) -> tuple[Growth, list[str]]:
    """The best of all trees, confirmed as a whole; where the budget ends the search, the best so far, with a note."""
    scorer.nodes += 1
    seed = scorer.context.seed
    scored: list[tuple[Tree, Score]] = []
    try:
        for each in score_all(scorer):
            scored.append(each)  # noqa: PERF402 - one by one: they stay when the budget ends the loop
        if not scored:
            return Growth(2, seed, open=()), []
        tree, score = lowest(scored)
        built = scorer.confirm(1, Tree(), score.entry)
    except BudgetSpentError:
        tree, note = best_so_far(scorer, scored)
        return Growth(2, seed, tree), [note]
    return Growth(2, seed, tree if built.improves else Tree(), (), ((1, built),)), []


def best_so_far(scorer: Trainings, scored: Sequence[tuple[Tree, Score]]) -> tuple[Tree, str]:
    """The best of the trees scored so far, if it improves on none, and a note: nothing has confirmed it."""
    progress = f"The budget was spent with {len(scored)} of {count(len(scorer.context.candidates))} trees scored"
    tree, score = lowest(scored) if scored else (Tree(), None)
    if score is None or score.gain <= 0:
        return Tree(), f"{progress}: none of them improved on leaving the data alone."
    gain = f"{score.gain:.4f} ± {score.gain_se:.4f} on the data that chose it"
    return tree, f"{progress}: this is the best of them, not confirmed on fresh data (its gain was {gain})."


def lowest(scored: Sequence[tuple[Tree, Score]]) -> tuple[Tree, Score]:
    """The tree with the lowest loss; the earlier where two are equal."""
    return min(scored, key=lambda pair: pair[1].loss)


def score_all(scorer: Trainings) -> Iterator[tuple[Tree, Score]]:
    """Every tree by a training of its own, without those that fail."""
    context, rows = scorer.context, scorer.context.rank_rows
    seed = seed_of(context.seed, "exhaustive")
    about = {"node": 1, "round": "exhaustive", "steps": scorer.steps}
    key = "node/1/exhaustive"
    baseline = context.baseline(f"{key}/yardstick", about, lambda: scorer.losses(Tree(), seed, rows))
    for tree in trees(context.candidates):
        work = partial(scorer.losses, tree, seed, rows)
        score = context.score(f"{key}/{tree!r}", about, Entry(tree, 1.0), baseline, work)
        if not score.failed:
            yield tree, score
