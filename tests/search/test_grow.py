from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from augtree import Tree
from augtree.runs.failures import BudgetSpentError
from augtree.search.grow import Built, Growth, grow
from augtree.transforms import Cutout, Identity, Invert, Posterize, Rotate

ROTATE, CUT, NEGATIVE = Rotate(0.6), Cutout(0.2), Invert(0.2)
NO = Built(ROTATE, 0.5, False, why="it was not better")


class Script:
    """A scorer that says what it was told to say, and remembers what it was asked."""

    def __init__(self, answers, most=100):
        self.answers, self.most, self.asked = answers, most, []

    def build_one_node(self, node, tree, p):
        if len(self.asked) == self.most:
            raise BudgetSpentError
        self.asked.append((node, tree, p))
        answer = self.answers.get(node, NO)
        return answer if p is None else answer._replace(p=p)

    @property
    def nodes(self):
        return [node for node, _, _ in self.asked]


def yes(transform=ROTATE, p=0.5):
    return Built(transform, p, True)


FULL = {node: yes() for node in range(1, 16)}


def test_the_paper_s_course_on_two_levels():
    script = Script({1: yes(ROTATE, 0.7), 2: yes(CUT, 0.4), 3: yes(NEGATIVE, 0.4)})
    growth = grow(script, 2, seed=0)
    first, second = script.nodes[1:]
    assert script.asked[0] == (1, Tree(), None)
    assert {first, second} == {2, 3}
    assert script.asked[1][2] is None  # the first of two siblings is free
    assert script.asked[2][2] == 0.6  # the other gets what is left: 1 - 0.4
    assert growth.tree.nodes[1] == (ROTATE, 0.7)
    assert {growth.tree.nodes[first].p, growth.tree.nodes[second].p} == {0.4, 0.6}
    assert growth.open == ()
    assert [node for node, _ in growth.built] == script.nodes


def test_the_scorer_sees_the_tree_without_the_node():
    script = Script({1: yes(), 2: yes(), 3: yes(), 6: yes()})
    grow(script, 3, seed=3)
    for i, (node, tree, _) in enumerate(script.asked):
        before = [n for n in script.nodes[:i] if n in script.answers]
        assert sorted(tree.nodes) == sorted(before)
        assert node not in tree.nodes


@pytest.mark.parametrize("answer", [NO, Built(Identity(), 0.5, True), Built(Identity(), 0.0, False)])
def test_without_improvement_the_root_stays_empty(answer):
    script = Script({1: answer})
    growth = grow(script, 4, seed=0)
    assert script.nodes == [1]
    assert growth.tree == Tree()
    assert growth.built == ((1, answer),)


def test_a_branch_that_does_not_improve_is_closed_and_the_other_goes_on():
    script = Script({1: yes(), 3: yes()})
    growth = grow(script, 3, seed=0)
    assert set(script.nodes) == {1, 2, 3, 6, 7}
    assert sorted(growth.tree.nodes) == [1, 3]


def test_an_empty_sibling_leaves_the_probability_free():
    """Identity has no share: what is built beside it later chooses its own p."""
    orders = set()
    for seed in range(8):
        script = Script({1: yes(), 3: yes(p=0.25)})
        grow(script, 2, seed)
        orders.add(tuple(script.nodes))
        assert [p for _, _, p in script.asked] == [None, None, None if script.nodes[1] == 2 else 0.75]
    assert orders == {(1, 2, 3), (1, 3, 2)}


def test_where_nothing_is_left_the_sibling_closes_unscored():
    for seed in range(8):
        script = Script({1: yes(p=1.0), 2: yes(p=1.0), 3: yes(p=1.0)})
        growth = grow(script, 2, seed)
        assert len(script.nodes) == 2
        assert growth.open == ()
        assert list(growth.tree.nodes) == script.nodes


def test_a_root_at_one_has_both_children():
    script = Script({1: yes(p=1.0)})
    grow(script, 2, seed=0)
    assert sorted(script.nodes) == [1, 2, 3]


def test_a_full_tree_has_every_node_once():
    for depth in (1, 2, 3, 4):
        script = Script(FULL)
        growth = grow(script, depth, seed=depth)
        assert sorted(script.nodes) == list(range(1, 2**depth))
        assert growth.tree.depth == depth


@st.composite
def scripts(draw):
    probabilities = st.sampled_from([0.1, 0.25, 0.5, 0.9, 1.0])
    transforms = st.sampled_from([ROTATE, CUT, Posterize(1.0), Identity()])
    made = st.builds(Built, transforms, probabilities, st.sampled_from([True, True, False]))
    return draw(st.dictionaries(st.integers(1, 15), made))


@given(scripts(), st.integers(1, 4), st.integers(0, 1000))
def test_the_frontier_is_what_algorithm_1_says(answers, depth, seed):
    """Against sets: a node is scored if and only if its parent stands, it is not too deep, and a share is left."""
    script = Script(answers)
    growth = grow(script, depth, seed)
    scored, stands = script.nodes, growth.tree.nodes
    assert len(set(scored)) == len(scored) <= 2**depth - 1
    good = {n for n, a in answers.items() if a.improves and not isinstance(a.transform, Identity)}
    assert set(stands) == good & set(scored)
    for node in range(1, 2**5):
        fits = node < 2**depth and (node == 1 or node // 2 in stands)
        sibling = stands.get(node ^ 1) if node > 1 else None
        first = sibling is not None and (node not in scored or scored.index(node ^ 1) < scored.index(node))
        assert (node in scored) == (fits and not (first and sibling.p == 1))
        if node in scored:
            _, tree, p = script.asked[scored.index(node)]
            assert p == (pytest.approx(1 - sibling.p) if first else None)
            assert node == 1 or node // 2 in tree.nodes


def test_nodes_are_picked_at_random_by_the_seed():
    def order(seed):
        script = Script(FULL)
        grow(script, 3, seed)
        return tuple(script.nodes)

    orders = [order(seed) for seed in range(400)]
    assert orders == [order(seed) for seed in range(400)]
    left_first = sum(o[1] == 2 for o in orders)
    assert abs(left_first - 200) < 4 * 10  # four standard deviations of a fair coin
    # Not level by level either: after 1 and one of its children, each of the three open nodes has the same chance.
    deeper = sum(o[2] >= 4 for o in orders)
    assert abs(deeper - 400 * 2 / 3) < 4 * (400 * 2 / 9) ** 0.5


def test_the_order_does_not_depend_on_what_was_found():
    """A draw is keyed by how many nodes are built, not by their content: another p, the same order."""
    one, two = Script(FULL), Script({node: yes(CUT, 0.1) for node in FULL})
    grow(one, 3, seed=5)
    grow(two, 3, seed=5)
    assert one.nodes == two.nodes


def test_record_gives_a_new_value_and_leaves_the_old():
    old = Growth(2, 0)
    same = replace(old)
    new = old.record(1, yes(p=0.7))
    assert old == same
    assert (old.open, new.open) == ((1,), (2, 3))
    assert (old.tree, old.built) == (Tree(), ())
    assert new == Growth(2, 0, Tree().with_node(1, ROTATE, 0.7), (2, 3), ((1, yes(p=0.7)),))
    assert old.record(1, yes(p=0.7)) == new
    with pytest.raises(AttributeError):
        new.open = ()


def test_next_node_is_none_when_nothing_is_open():
    assert Growth(2, 0, open=()).next_node() is None
    assert Growth(2, 0, open=(5,)).next_node() == 5


def test_p_given_has_no_rounding_dust():
    growth = Growth(2, 0).record(1, yes()).record(2, yes(p=0.7))
    assert growth.p_given(3) == 0.3
    assert growth.p_given(2) is None
    assert Growth(2, 0).p_given(1) is None


@pytest.mark.parametrize("most", [0, 1, 2, 4])
def test_when_the_budget_is_spent_the_tree_so_far_is_given(most):
    growth = grow(Script(FULL, most), 3, seed=1)
    assert len(growth.built) == len(growth.tree.nodes) == most
    assert growth.open  # how one knows that it was not the end
    full = grow(Script(FULL), 3, seed=1)
    assert growth.built == full.built[:most]


def test_watch_is_told_after_each_node():
    seen = []
    script = Script({1: yes(), 2: yes()})
    growth = grow(script, 2, 0, lambda growth, node: seen.append((node, len(growth.built))))
    assert seen == [(node, i + 1) for i, node in enumerate(script.nodes)]
    assert len(growth.built) == 3
