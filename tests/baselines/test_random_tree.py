"""Trees drawn at random."""

from collections import Counter

import pytest

from augtree.baselines.candidates import kinds_for
from augtree.baselines.random_tree import RandomTree
from support.blobs import blobs, same
from support.methods import grouped_graphs, task


@pytest.mark.parametrize(
    "data", [blobs(), blobs(channels=2), grouped_graphs()], ids=["rgb", "two channels", "graphs"]
)
def test_trees_are_full_and_differ_between_seeds(data):
    trees = [RandomTree(depth=3).tree(data, seed) for seed in range(30)]
    assert all(len(tree) == 7 for tree in trees)
    assert len(set(trees)) == 30
    kinds = {type(node.transform) for tree in trees for node in tree.nodes.values()}
    assert kinds == {*kinds_for(data)}
    magnitudes = Counter(node.transform.magnitude for tree in trees for node in tree.nodes.values())
    assert len(magnitudes) == 5
    assert len({tree[1].p for tree in trees}) > 5
    for tree in trees:
        assert abs(sum(probability for probability, _ in tree.paths()) - 1) < 1e-9


def test_it_is_a_training_with_its_tree():
    trainer, method = task().prepare(blobs()), RandomTree(depth=2)
    assert same(method.fit(trainer, 5)[0], trainer.fit(method.tree(blobs(), 5), 5))
