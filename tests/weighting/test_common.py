"""A group keeps its own tree where that is better in a model of all groups, and nowhere else."""

import numpy as np
import pytest

import augtree as at
from augtree.policies import Tree
from augtree.runs.store import Run
from augtree.search import Anneal, Density, Retrain
from augtree.search.scorers.base import Bench
from augtree.transforms import Invert
from augtree.weighting.common import Common, branches_of

EITHER = Tree().with_node(1, Invert(0.2), p=0.5)
ALWAYS = Tree().with_node(1, Invert(0.2), p=1.0)


def negatives(rng, count, share):
    """Pictures whose left half is brighter where the label is 1; a share of them is turned into negatives."""
    y = rng.integers(0, 2, count)
    x = rng.normal(90, 20, (count, 1, 4, 4))
    x[:, :, :, :2] += 70 * y[:, None, None, None]
    x = np.clip(x, 0, 255)
    turned = rng.random(count) < share
    x[turned] = 255 - x[turned]
    return x.astype(np.uint8)[:, 0], y


def data():
    """Group a is judged on negatives that it never trains on; group b has none anywhere."""
    rng = np.random.default_rng(0)
    parts = []
    for group in "ab":
        for split, count in (("train", 80), ("val", 120), ("test", 20)):
            x, y = negatives(rng, count, 0.5 if (group, split) == ("a", "val") else 0.0)
            parts.append((x, y, [group] * count, [split] * count))
    x, y, groups, split = (np.concatenate(column) for column in zip(*parts, strict=True))
    return at.data.from_arrays(x, y, groups=groups.tolist(), split=split.tolist())


def held(own, whole, run=None, options=None):
    task = at.tasks.Classification(model="cnn", steps=100, batch_size=32, lr=0.05, options={"width": 8})
    options = options or Anneal(fewest=40, repeats=2, trunk=0.3)
    bench = Bench(task.prepare(data()), [], (0.5, 1.0), 0, run or Run.begin(None, {"version": 1, "kind": "forest"}))
    told = []
    found = Common(bench, options, whole).held(own, lambda what, **about: told.append((what, about["group"])))
    assert told == [("common", group) for group in "ab" if own[group] != whole]
    return found


def test_a_tree_that_helps_is_kept_and_one_that_harms_is_not():
    found = held({"a": EITHER, "b": ALWAYS}, Tree())
    assert found["a"].own
    assert found["a"].gain > 3 * found["a"].gain_se > 0
    assert not found["b"].own
    assert found["b"].gain < 0


def test_an_empty_tree_stays_where_the_one_for_all_harms():
    found = held({"a": EITHER, "b": Tree()}, ALWAYS)
    assert found["b"].own
    assert found["b"].gain > 3 * found["b"].gain_se > 0
    assert str(found["b"]).startswith("its own tree, Tree(), lowers its loss by")
    assert "has the tree for all" not in str(found["b"])


def test_the_same_tree_needs_no_comparison():
    run = Run.begin(None, {"version": 1, "kind": "forest"})
    found = held({"a": EITHER, "b": EITHER}, EITHER, run)
    assert all(one.own and one.same and one.gain == 0 for one in found.values())
    assert not list(run.units())
    assert str(found["a"]) == "its own tree is the one for all"


def test_a_tree_that_fails_is_told():
    def broken(_):
        raise ValueError("boom")

    own = Tree().with_node(1, at.wrap(broken, name="Broken", takes="chw"), p=1.0)
    found = held({"a": own, "b": Tree()}, Tree())
    assert not found["a"].own
    assert "boom" in str(found["a"])
    assert str(found["a"]).startswith("it has the tree for all, since its own")


def test_what_was_compared_is_not_compared_again(tmp_path):
    own = {"a": EITHER, "b": Tree()}
    with Run.begin(tmp_path / "run", {"version": 1, "kind": "forest"}) as run:
        first, count = held(own, Tree(), run), len(list(run.units()))
        assert held(own, Tree(), run) == first
        assert len(list(run.units())) == count == 1 + 2 + 2  # the trunk; two repeats without and with a's own
        held(own, EITHER, run)
        assert len(list(run.units())) > count  # another tree for all, another comparison


@pytest.mark.parametrize(
    ("scorer", "expected"),
    [(Density(sure=2.0), Anneal(sure=2.0)), (Anneal(fewest=7), Anneal(fewest=7)), (Retrain(), Retrain())],
)
def test_the_branches_are_the_search_s_own_where_it_has_some(scorer, expected):
    assert branches_of(scorer) == expected


def test_whole_trainings_serve_too():
    found = held({"a": EITHER, "b": Tree()}, Tree(), options=Retrain(repeats=1))
    assert found["a"].own
