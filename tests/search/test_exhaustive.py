from itertools import product

import pytest

from augtree import Tree, load, resume, wrap
from augtree.search import Retrain, search_tree
from augtree.search.exhaustive import count, score_all, trees
from augtree.training.state import seed_of
from augtree.transforms import Brightness, Cutout, Posterize, Rotate
from support.searches import INVERT, TASK, bars, context_on

THREE = [Rotate(0.6), Posterize(1.0), INVERT]
OPTIONS = Retrain(train=0.7, repeats=2)


def meaning(tree):
    """What a tree is, however it is written down."""
    return frozenset((path, round(p, 12)) for p, path in tree.paths())


def by_brute_force(candidates, at_root):
    """Every root, every left child, every right child, with None for nothing there."""
    found = set()
    for root, left, right in product(candidates, [None, *candidates], [None, *candidates]):
        nodes = {1: (root, at_root)}
        nodes |= {i: (child, 0.5) for i, child in ((2, left), (3, right)) if child is not None}
        found.add(meaning(Tree(nodes)))
    return found


@pytest.mark.parametrize("k", [1, 2, 3])
def test_every_tree_of_two_levels_once(k):
    found = list(trees(THREE[:k], 0.9))
    assert len(found) == len({meaning(tree) for tree in found}) == count(k) == k * (k + 1) * (k + 2) // 2
    assert {meaning(tree) for tree in found} == by_brute_force(THREE[:k], 0.9)
    assert all(set(tree.nodes) <= {1, 2, 3} and 1 in tree.nodes for tree in found)


def test_the_trees_of_one_candidate_by_hand():
    one = Tree().with_node(1, INVERT, 0.9)
    assert list(trees([INVERT], 0.9)) == [
        one,
        one.with_node(3, INVERT, 0.5),
        one.with_node(2, INVERT, 0.5).with_node(3, INVERT, 0.5),
    ]


def scored(context):
    """All trees, each by a training of its own."""
    return list(score_all(OPTIONS.scorer(context)))


def test_children_share_evenly():
    found = list(trees(THREE))
    assert {tree.nodes[1].p for tree in found} == {0.9}
    assert {node.p for tree in found for index, node in tree.nodes.items() if index > 1} == {0.5}


def test_the_losses_are_those_of_trainings_by_hand():
    """Each tree from the same start, on the same batches, judged by the half that chooses."""
    context = context_on(bars(0, 0.5), [INVERT, Posterize(1.0)])
    found = scored(context)
    trainer, losses = TASK.prepare(bars(0, 0.5)), {}
    for tree in trees([INVERT, Posterize(1.0)]):
        state = trainer.fit(tree, seed_of(0, "exhaustive"), 28)
        losses[tree] = trainer.calibrated_losses(state, context.rank_rows).mean()
    assert {tree: score.loss for tree, score in found} == losses
    assert len(losses) == count(2)


def share_inverted(tree):
    return sum(p for p, path in tree.paths() if path.count(INVERT) % 2 == 1)


def test_on_the_toy_the_best_tree_inverts_some():
    result = search_tree(
        bars(0, 0.5, wrong=0.1),
        TASK,
        [INVERT, Brightness(0.2), Cutout(0.2)],
        scorer=OPTIONS,
        method="exhaustive",
        check=0,
        depth=2,
    )
    assert 0.25 <= share_inverted(result.tree) <= 0.75
    assert result.cost.scorings == count(3) + 1
    losses = {row["candidate"]: row["loss"] for row in result.history if row["round"] == "exhaustive"}
    assert losses[str(result.tree)] == min(losses.values()) < losses["yardstick"] - 0.1


def test_what_is_not_confirmed_is_not_kept():
    result = search_tree(bars(0, 0), TASK, [INVERT], scorer=OPTIONS, method="exhaustive", check=0)
    assert result.tree == Tree()
    assert "was best, but not on fresh data" in result.notes[-1]


def broken(picture):
    raise ValueError("no such picture")


def test_trees_that_fail_are_left_out():
    context = context_on(bars(0, 0.5), [wrap(broken, name="Fog"), INVERT])
    found = scored(context)
    assert len(found) == 3  # those of Invert alone
    assert all(node.transform == INVERT for tree, _ in found for node in tree.nodes.values())


def test_where_every_tree_fails_the_user_is_told():
    space = [wrap(broken, name="Fog")]
    result = search_tree(bars(0, 0.5), TASK, space, scorer=OPTIONS, method="exhaustive", check=0)
    assert result.tree == Tree()
    assert any("no such picture" in note for note in result.notes)


@pytest.mark.parametrize("share", [0.01, 0.25, 0.5, 0.9])
def test_a_spent_budget_ends_it_with_the_best_tree_so_far(share, tmp_path):
    """0.01: the yardstick is all; 0.9: all trees are scored, and the best is not yet confirmed."""
    arguments = dict(scorer=OPTIONS, method="exhaustive", check=0)
    data, space = bars(0, 0.5, wrong=0.1), [Posterize(1.0), INVERT]
    whole = search_tree(data, TASK, space, **arguments).cost.training_equivalents
    result = search_tree(data, TASK, space, budget=share * whole, out=tmp_path, **arguments)
    scored = [row for row in result.history if row["round"] == "exhaustive" and "gain" in row]
    best = min(scored, key=lambda row: row["loss"], default=None)
    note = next(note for note in result.notes if f"budget was spent with {len(scored)} of 12 trees scored" in note)
    if best is None or best["gain"] <= 0:
        assert result.tree == Tree()
        assert "none of them improved" in note
    else:
        assert str(result.tree) == best["candidate"]
        assert f"not confirmed on fresh data (its gain was {best['gain']:.4f}" in note
    assert (share > 0.1) == (len(result.tree) > 0)
    assert result.importances == {}
    assert load(tmp_path / "tree.json") == result.tree
    again = resume(tmp_path, data=data, task=TASK, budget=2 * whole)
    assert not any("budget" in note for note in again.notes)
    assert again.tree == search_tree(data, TASK, space, **arguments).tree
