"""The tree against the free policies."""

import json

import numpy as np
import pytest
import torch

import augtree as at
from augtree.runs.events import Working
from augtree.search import Retrain
from augtree.search.free_check import against_free
from augtree.search.scorers.base import halves
from augtree.tasks import Classification
from augtree.training.state import seed_of
from support.searches import INVERT, TASK, bars, context_on
from support.tree_runs import DATA, search

pytestmark = pytest.mark.usefixtures("full_trees")


def test_the_tree_is_held_against_the_free_policies():
    """Each by a training from the start, judged on the confirming half, paired."""
    result = search(check=0.5, scorer=Retrain(spread=1, repeats=1), depth=1,
                    probabilities=(0.5,), data=bars(0, 0.5))  # fmt: skip
    assert result.tree == at.Tree().with_node(1, INVERT, 0.5)
    assert result.free["tree"].behind == 0
    for policy in result.free.values():
        assert policy.behind == pytest.approx(policy.loss - result.free["tree"].loss, abs=1e-12)
    assert result.free["none"].behind > 0.1  # bright bars alone do not teach dark ones
    assert result.beats_free == (result.free["tree"].loss < result.free[result.best_free].loss)


def test_the_check_is_a_training_judged_at_the_best_temperature_on_what_chose_nothing():
    result = search(check=0.5, depth=1)
    trainer = TASK.prepare(DATA)
    rows = halves(DATA.indices("val"), 0, DATA.labels.numpy())[1]
    for name, policy in (("tree", result.tree), ("none", at.Tree())):
        state = trainer.fit(policy, seed_of(0, "free"), 20)
        losses = trainer.calibrated_losses(state, rows)
        assert result.free[name].loss == losses.mean() < trainer.losses(state, rows).mean()
        assert result.free[name].metric == trainer.measures(state, rows)["accuracy"]


def test_the_check_can_be_left_out():
    result = search(check=0, depth=1)
    assert result.free == {}
    assert result.verdict() == "The tree was not compared with the free policies."


def test_a_free_policy_that_cannot_be_used_does_not_lose_the_tree(tmp_path):
    """After hours of searching: the tree is kept, and the user is told."""
    pictures = DATA.samples.numpy().repeat(2, axis=1)
    data = at.data.from_arrays(pictures, DATA.labels.numpy(), split=["train"] * 64 + ["val"] * 64)
    task = Classification(model=two_channel_model, steps=10, batch_size=32, device="cpu")
    result = search(tmp_path / "a", data=data, task=task, depth=1)
    assert (tmp_path / "a" / "tree.json").exists()
    free = json.loads((tmp_path / "a" / "result.json").read_text())["free"]
    assert set(result.free) == set(free) >= {"tree", "none"}
    left_out = {"randaugment", "trivialaugment"} - set(free)
    assert left_out
    for name in left_out:
        (note,) = [note for note in result.notes if note.startswith(f"{name} could not be compared with the tree: ")]
        assert "InputError: " in note
    assert result.best_free in free


def test_a_metric_that_the_samples_do_not_allow_does_not_lose_the_tree(tmp_path):
    """One class in the validation data has no AUROC: told before the search or after it, but not instead of it."""
    labels = np.where(np.arange(128) < 64, DATA.labels.numpy(), 0)
    data = at.data.from_arrays(DATA.samples.numpy(), labels, split=["train"] * 64 + ["val"] * 64)
    search(tmp_path / "a", data=data, task=Classification(**{**vars(TASK), "metric": "auroc"}), depth=1)
    assert (tmp_path / "a" / "tree.json").exists()


def two_channel_model():
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(128, 2))


# ---- failures


def broken(picture):
    raise ValueError("no such picture")


TREE = at.Tree().with_node(1, INVERT, 0.5)


def failing(context, error, names):
    """A context whose trainings with policies of these names raise."""
    fit = context.trainer.fit

    def fit_or_fail(policy, *more):
        if any(name in str(policy) for name in names):
            raise error
        return fit(policy, *more)

    context.trainer.fit = fit_or_fail
    return context


@pytest.mark.parametrize("error", [ValueError("no luck"), RuntimeError("no luck"), at.errors.TaskError("no luck")])
def test_a_free_policy_that_fails_is_a_note_and_the_others_are_compared(error):
    context = failing(context_on(DATA), error, ["RandAugment"])
    free, notes = against_free(context, TREE, 0.1)
    assert set(free) == {"tree", "none", "trivialaugment"}
    assert notes == [f"randaugment could not be compared with the tree: {type(error).__name__}: no luck"]
    whole, none = against_free(context_on(DATA), TREE, 0.1)
    assert none == []
    assert {name: whole[name] for name in free} == free


def test_a_tree_that_fails_is_a_note_and_nothing_is_compared():
    tree = at.Tree().with_node(1, at.wrap(broken, name="Fog"), 1.0)
    events = []
    context = context_on(DATA, watch=events.append)
    free, (note,) = against_free(context, tree, 0.1)
    assert free == {}
    assert note.startswith("The tree could not be compared with the free policies: TransformError: Fog")
    assert events == [Working("training with tree")]


def test_losses_that_are_not_finite_are_a_failure():
    context = context_on(DATA)
    judge = context.trainer.calibrated_losses
    context.trainer.calibrated_losses = lambda *given: judge(*given) * np.nan
    free, notes = against_free(context, TREE, 0.1)
    assert free == {}
    assert notes == ["The tree could not be compared with the free policies: 32 losses are not finite"]


def test_a_full_disk_is_no_failure_of_a_policy():
    context = failing(context_on(DATA), OSError("no space left on device"), ["RandAugment"])
    with pytest.raises(OSError, match="no space left"):
        against_free(context, TREE, 0.1)


def test_what_is_trained_for_the_check_is_not_trained_again():
    context = context_on(DATA)
    first = against_free(context, TREE, 0.1)
    assert against_free(failing(context, ValueError("again"), ["Tree"]), TREE, 0.1) == first
