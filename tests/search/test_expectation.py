from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from augtree import Tree, spaces
from augtree.keys import Key
from augtree.search.expectation import Expectation, arrivals, tree_paths
from augtree.transforms import AutoContrast, Equalize, Invert, Posterize, Rotate, SamplePairing
from support.searches import TASK, bars

DISTINCT = [c for c in spaces.images() if c.magnitude == 0.6 and not isinstance(c, SamplePairing)]
DYADIC = [0.0, 0.25, 0.5, 0.75, 1.0]


@st.composite
def trees(draw, depth=3, candidates=tuple(DISTINCT[:3]), root=True):
    """Trees of all forms; the probabilities are such that sums of products are exact."""
    nodes, frontier = {}, [1]
    while frontier:
        index = frontier.pop()
        if not (index == 1 and root) and not draw(st.booleans()):
            continue
        sibling = nodes.get(index ^ 1) if index > 1 else None
        p = 1 - sibling[1] if sibling else draw(st.sampled_from(DYADIC))
        nodes[index] = (draw(st.sampled_from(candidates)), p)
        if index.bit_length() < depth:
            frontier += [2 * index, 2 * index + 1]
    return Tree(nodes)


def loss(path):
    """A whole number that tells paths apart, order included."""
    total = 0
    for transform in path:
        total = 17 * total + 1 + DISTINCT.index(transform)
    return float(total)


def only_path(tree):
    """The path of a tree that has one."""
    ((probability, path),) = tree.paths()
    assert probability == 1
    return path


def evaluate(tree):
    return np.array([loss(only_path(tree)), 1.0])


def expected(tree):
    """By the definition."""
    return sum(probability * loss(path) for probability, path in tree.paths())


@given(trees())
def test_ways_are_the_paths_one_by_one(tree):
    found = {}
    for way in tree_paths(tree):
        path = tuple(tree.nodes[i].transform for i in way.nodes)
        assert only_path(way.tree) == path
        assert way.probability > 0
        found[path] = found.get(path, 0) + way.probability
    assert found == {path: probability for probability, path in tree.paths()}
    assert sum(way.probability for way in tree_paths(tree)) == 1


def test_ways_that_differ_in_their_nodes_are_not_joined():
    """Two nodes with one transform draw different numbers there, though they are one path."""
    tree = Tree({1: (DISTINCT[0], 1.0), 2: (DISTINCT[1], 0.25), 3: (DISTINCT[1], 0.75)})
    assert [(way.probability, way.nodes) for way in tree_paths(tree)] == [(0.25, (1, 2)), (0.75, (1, 3))]
    assert len(tree.paths()) == 1


def test_the_empty_tree_has_one_way():
    ((probability, tree, nodes),) = tree_paths(Tree())
    assert (probability, tree, nodes) == (1.0, Tree(), ())


@given(trees())
def test_the_expected_loss_is_that_of_the_definition(tree):
    expectation = Expectation(evaluate)
    assert expectation.over(tree_paths(tree)).tolist() == [expected(tree), 1.0]


def test_each_way_is_evaluated_once():
    calls = []

    def counted(tree):
        calls.append(tree)
        return evaluate(tree)

    expectation = Expectation(counted)
    for p in (0.1, 0.2, 0.9):
        tree = Tree().with_node(1, DISTINCT[0], p).with_node(2, DISTINCT[1], 0.5).with_node(3, DISTINCT[2], 0.5)
        assert expectation.over(tree_paths(tree))[0] == pytest.approx(expected(tree))
    assert expectation.evaluations == len(calls) == 4
    expectation.over(tree_paths(tree.with_node(4, DISTINCT[3], 0.5)))
    assert expectation.evaluations == len(calls) == 6  # what is new goes through the new node


def test_skipping_everything_is_the_empty_tree():
    calls = []
    expectation = Expectation(lambda tree: calls.append(tree) or np.zeros(1))
    expectation.over(tree_paths(Tree().with_node(1, DISTINCT[0], 0.5)))
    expectation.over(tree_paths(Tree().with_node(1, DISTINCT[1], 0.5)))
    assert calls == [Tree().with_node(1, DISTINCT[0], 1.0), Tree(), Tree().with_node(1, DISTINCT[1], 1.0)]


@st.composite
def places(draw):
    """A tree, a node that it could have, a candidate for it and a p."""
    tree = draw(trees(root=False))
    free = [i for i in range(1, 16) if i not in tree.nodes and (i == 1 or i // 2 in tree.nodes)]
    node = draw(st.sampled_from(free))
    sibling = tree.nodes.get(node ^ 1) if node > 1 else None
    p = draw(st.sampled_from(DYADIC)) if sibling is None else 1 - sibling.p
    return tree, node, draw(st.sampled_from(DISTINCT[:5])), p


@given(places())
def test_what_a_candidate_changes_comes_through_its_arrivals(place):
    tree, node, candidate, p = place
    reach, found = arrivals(tree, node)
    gain = sum(
        way.probability * (loss(only_path(way.tree)) - loss((*only_path(way.tree), candidate))) for way in found
    )
    assert sum(way.probability for way in found) == 1
    assert expected(tree.with_node(node, candidate, p)) - expected(tree) == -reach * p * gain


@given(places())
def test_the_expected_loss_is_affine_in_p(place):
    tree, node, candidate, _ = place
    if node > 1 and node ^ 1 in tree.nodes:
        return
    losses = [expected(tree.with_node(node, candidate, p)) for p in DYADIC]
    steps = {two - one for one, two in pairwise(losses)}
    assert len(steps) == 1
    assert losses[0] == expected(tree)


@given(places())
def test_arrivals_are_as_frequent_as_samples_are(place):
    """Reach against a sample's own route: with a mark at the node at p = 1, how many meet it."""
    tree, node, _, _ = place
    if node > 1 and node ^ 1 in tree.nodes:
        return
    reach, _ = arrivals(tree, node)
    mark = DISTINCT[7]
    routes = tree.with_node(node, mark, 1.0).route(Key.of(3, range(2000)))
    share = np.mean([mark in route for route in routes])
    assert abs(share - reach) <= 4 * (reach * (1 - reach) / 2000) ** 0.5


@given(
    st.integers(0, 10**6), st.permutations(DISTINCT), st.lists(st.sampled_from(DYADIC[1:-1]), min_size=4, max_size=4)
)
def test_a_forced_way_draws_what_the_tree_draws(seed, order, p):
    """To the byte: for the samples that take a way, the tree does what the way's own tree does to all."""
    pictures = torch.randint(0, 256, (48, 3, 12, 12), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    nodes = {1: p[0], 2: p[1], 3: 1 - p[1], 5: p[2], 6: p[3], 7: 1 - p[3]}
    tree = Tree({i: (order[i], q) for i, q in nodes.items()})  # no transform twice: a path tells its way
    index = np.arange(100, 148)
    done = tree(pictures, seed=seed, index=index)
    routes = tree.route(Key.of(seed, index))
    matched = 0
    for way in tree_paths(tree):
        rows = [i for i, route in enumerate(routes) if route == tuple(order[n] for n in way.nodes)]
        forced = way.tree(pictures, seed=seed, index=index)
        assert torch.equal(done[rows], forced[rows])
        matched += len(rows)
    assert matched >= len(pictures)  # each is on a way; on two where these apply the same nodes


FIXED = (AutoContrast(0.2), Equalize(0.2), Invert(0.2))


@pytest.mark.parametrize("parts", [FIXED, (Rotate(1.0), Posterize(0.2), Invert(0.2))], ids=["fixed", "random"])
def test_with_a_real_model_it_is_the_mean_over_many_draws(parts):
    trainer = TASK.prepare(bars(0.3, 0.5))
    state = trainer.fit(Tree(), 0, 10)
    rows = trainer.data.indices("val")[:20]
    one, two, three = parts
    tree = Tree({1: (one, 0.6), 2: (two, 0.3), 3: (three, 0.7), 6: (two, 0.5)})
    differences = []
    for seed in range(100):
        exact = Expectation(lambda way, seed=seed: trainer.losses(state, rows, way, seed)).over(tree_paths(tree))
        differences.append((trainer.losses(state, rows, tree, seed) - exact).mean())
    error = np.std(differences, ddof=1) / np.sqrt(len(differences))
    assert error > 1e-4  # the draws do differ
    assert abs(np.mean(differences)) < 4 * error
