from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from augtree import Tree, spaces
from augtree.keys import Key
from augtree.search.expectation import TreePath, arrivals, expected
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


def by_definition(tree):
    """The expected loss over all paths."""
    return sum(probability * loss(path) for probability, path in tree.paths())


def in_parts(tree, evaluate):
    """The same, from the paths by which samples come to each end of the tree."""
    total = 0.0
    for i in tree.nodes:
        left = tree.p_left(i)
        for child, share in [(2 * i, 1.0)] if left is None else [(2 * i, left), (2 * i + 1, 1 - left)]:
            if child not in tree.nodes:
                reach, paths = arrivals(tree, child)
                total = total + share * reach * expected(paths, evaluate)
    return total


@given(trees())
def test_the_expected_loss_is_that_of_the_definition(tree):
    assert in_parts(tree, evaluate).tolist() == [by_definition(tree), 1.0]


def test_all_samples_come_to_the_root():
    assert arrivals(Tree(), 1) == (1.0, [TreePath(1.0, Tree())])


def test_skipping_everything_is_the_empty_tree():
    calls = []
    for transform in DISTINCT[:2]:
        _, paths = arrivals(Tree().with_node(1, transform, 0.5), 2)
        expected(paths, lambda tree: calls.append(tree) or np.zeros(1))
    first, second = (Tree().with_node(1, transform, 1.0) for transform in DISTINCT[:2])
    assert calls == [first, Tree(), second, Tree()]


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
        path.probability * (loss(only_path(path.tree)) - loss((*only_path(path.tree), candidate))) for path in found
    )
    assert sum(path.probability for path in found) == 1
    assert by_definition(tree.with_node(node, candidate, p)) - by_definition(tree) == -reach * p * gain


@given(places())
def test_the_expected_loss_is_affine_in_p(place):
    tree, node, candidate, _ = place
    if node > 1 and node ^ 1 in tree.nodes:
        return
    losses = [by_definition(tree.with_node(node, candidate, p)) for p in DYADIC]
    steps = {two - one for one, two in pairwise(losses)}
    assert len(steps) == 1
    assert losses[0] == by_definition(tree)


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
def test_a_forced_path_draws_what_the_tree_draws(seed, order, p):
    """To the byte: for the samples that take a path, the tree does what the path's own tree does to all."""
    pictures = torch.randint(0, 256, (48, 3, 12, 12), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    nodes = {1: p[0], 2: p[1], 3: 1 - p[1], 5: p[2], 6: p[3], 7: 1 - p[3]}
    tree = Tree({i: (order[i], q) for i, q in nodes.items()})  # no transform twice: the transforms tell the path
    index = np.arange(100, 148)
    done = tree(pictures, seed=seed, index=index)
    routes = tree.route(Key.of(seed, index))
    matched = 0
    for path in (path for end in (4, 10, 12, 14) for path in arrivals(tree, end)[1]):
        rows = [i for i, route in enumerate(routes) if route == only_path(path.tree)]
        forced = path.tree(pictures, seed=seed, index=index)
        assert torch.equal(done[rows], forced[rows])
        matched += len(rows)
    assert matched == len(pictures)


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
        exact = in_parts(tree, lambda path, seed=seed: trainer.losses(state, rows, path, seed))
        differences.append((trainer.losses(state, rows, tree, seed) - exact).mean())
    error = np.std(differences, ddof=1) / np.sqrt(len(differences))
    assert error > 1e-4  # the draws do differ
    assert abs(np.mean(differences)) < 4 * error
