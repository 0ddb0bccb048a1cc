import pytest

from augtree import Tree, wrap
from augtree.errors import ArgumentError
from augtree.search.scorers import Retrain
from augtree.training.state import seed_of
from augtree.transforms import Identity, Posterize
from support.searches import INVERT, SPACE, TASK, bars, context_on

DATA = bars(0, 0.5)


def rows_of(context, prefix):
    return [unit.value for unit in context.run.units(prefix)]


@pytest.mark.parametrize(
    ("spread", "expected"), [(1, [1.0]), (2, [1.0, 0.5]), (3, [1.0, 0.5, 0.25]), (9, [1.0, 0.5, 0.25])]
)
def test_probabilities_are_spread_from_the_highest_on(spread, expected):
    scorer = Retrain(spread=spread).scorer(context_on(DATA, probabilities=(0.25, 0.5, 1.0)))
    assert scorer.probabilities() == expected


def test_every_candidate_is_trained_at_every_probability_and_compared_with_the_tree_as_it_is():
    context = context_on(DATA, [INVERT, Posterize(1.0)], (0.5, 1.0))
    Retrain(train=0.1, spread=2, repeats=1).scorer(context).build_one_node(1, Tree(), None)
    rows = rows_of(context, "node/1/train")
    scored = [("Invert(0.2)", 1.0), ("Invert(0.2)", 0.5), ("Posterize(1)", 1.0), ("Posterize(1)", 0.5)]
    assert [(row["candidate"], row.get("p")) for row in rows] == [("yardstick", None), *scored]
    assert {row["steps"] for row in rows} == {4}
    trainer = TASK.prepare(DATA)
    state = trainer.fit(Tree().with_node(1, INVERT, 1.0), seed_of(0, "train", 1), 4)
    assert rows[1]["loss"] == trainer.calibrated_losses(state, context.rank_rows).mean()


def test_a_probability_that_is_given_is_the_only_one():
    context = context_on(DATA, [INVERT])
    Retrain(train=0.1, repeats=1).scorer(context).build_one_node(3, Tree().with_node(1, INVERT, 0.5), 0.3)
    assert [row.get("p") for row in rows_of(context, "node/3/train")] == [None, 0.3]


@pytest.mark.parametrize("repeats", [1, 3])
def test_a_winner_is_confirmed_on_the_other_half_by_fresh_trainings(repeats):
    context = context_on(DATA, [INVERT], (0.5,))
    Retrain(train=0.1, repeats=repeats).scorer(context).build_one_node(1, Tree(), None)
    units = list(context.run.units("node/1/confirm"))
    assert [unit.value["candidate"] for unit in units] == ["yardstick", "Invert(0.2)"] * repeats
    assert {len(unit.losses) for unit in units} == {len(context.confirm_rows)}
    assert len({unit.value["loss"] for unit in units if unit.value["candidate"] == "yardstick"}) == repeats


def test_losses_are_calibrated_or_not():
    losses = {}
    for calibrate in (True, False):
        context = context_on(DATA, [INVERT], (0.5,))
        Retrain(train=0.5, repeats=1, calibrate=calibrate).scorer(context).build_one_node(1, Tree(), None)
        losses[calibrate] = rows_of(context, "node/1/train")[0]["loss"]
    assert losses[True] < losses[False]


def broken(picture):
    raise ValueError("no such picture")


def test_a_candidate_that_raises_is_passed_over():
    context = context_on(bars(0, 0.5, val=128, wrong=0.1), [wrap(broken, name="Fog"), INVERT])
    found = Retrain(repeats=1).scorer(context).build_one_node(1, Tree(), None)
    assert found.transform == INVERT
    failed = [row for row in rows_of(context, "node/") if "failed" in row]
    assert failed
    assert all(row["candidate"] == "Fog" and "no such picture" in row["failed"] for row in failed)


def test_where_all_fail_the_node_is_identity():
    found = Retrain(repeats=1).scorer(context_on(DATA, [wrap(broken, name="Fog")])).build_one_node(1, Tree(), None)
    assert isinstance(found.transform, Identity)
    assert found.why.startswith("every candidate failed, the first with: TransformError: Fog")


def test_the_plan_counts_scorings():
    assert Retrain().scorings(3, SPACE, 10) == 7 * (5 * 3 + 1)
    assert Retrain(spread=9).scorings(1, SPACE, 2) == 5 * 2 + 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(train=0), r"train must be a number in \(0, 100\], got 0"),
        (dict(spread=0), "spread must be a whole number from 1"),
        (dict(repeats=0.5), "repeats must be a whole number from 1"),
        (dict(sure=-1), "sure must be a number in"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ArgumentError, match=message):
        Retrain(**options)
