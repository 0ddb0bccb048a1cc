"""Models without augmentation and weights, to compare a forest with."""

import pytest

import augtree as at
from augtree.forests.analysis import average, between, disparity, features_by_group, similarity
from augtree.forests.plain import compare_with_plain
from augtree.forests.result import measures_by_group
from augtree.policies import Tree
from augtree.runs.events import Working
from augtree.runs.store import Run
from augtree.transforms import Cutout, Identity
from support.two_groups import normed, task, two_groups

DATA = two_groups(sizes=(60, 40))
TASK = task(normed, steps=20)


def compared(data=DATA, **wanted):
    trainer, events = TASK.prepare(data), []
    theta = trainer.fit(Tree().with_node(1, Cutout(0.6), p=0.5), 3)
    before = trainer.passes.total
    with Run.begin(None, {}) as run:
        measures, alike = compare_with_plain(
            trainer, run, theta, 0, events.append, **{"plain": False, "pairs": False, **wanted}
        )
    return trainer, theta, measures, alike, events, trainer.passes.total - before


def test_what_is_not_wanted_costs_nothing():
    _, _, measures, alike, events, passes = compared()
    assert (measures, alike, events, passes) == ({}, {}, [], 0)


@pytest.mark.parametrize("split", ["test", "val"])
def test_a_plain_model_is_trained_as_long_without_augmentation(split):
    data = DATA if split == "test" else DATA.take([*DATA.indices("train"), *DATA.indices("val")])
    trainer, theta, measures, alike, events, _ = compared(data, plain=True)
    state = trainer.fit(Identity(), 0)
    assert measures == measures_by_group(trainer, state)
    without, beside = (between(features_by_group(trainer, each, split)) for each in (state, theta))
    assert alike == {
        "split": split,
        "without": without,
        "with": beside,
        "average_without": average(without),
        "average_with": average(beside),
        "disparity": disparity(data),
    }
    assert without != beside
    assert events == [Working("training without augmentation and weights")]


def test_each_pair_of_groups_has_a_model_of_its_own():
    names = iter(["abc"[i % 3] for i in range(len(DATA))])
    data = at.data.group(DATA, lambda _: next(names))
    _, _, measures, alike, events, _ = compared(data, pairs=True)
    assert measures == {}
    assert [row["groups"] for row in alike["pairs"]] == [["a", "b"], ["a", "c"], ["b", "c"]]
    assert events == [Working(f"training on {one} and {other}") for one, other in ("ab", "ac", "bc")]
    both = data.take(sorted([*data.indices(None, "a"), *data.indices(None, "c")]))
    mine = TASK.prepare(both)
    features = features_by_group(mine, mine.fit(Identity(), 0), "test")
    assert alike["pairs"][1]["similarity"] == similarity(features["a"], features["c"])
