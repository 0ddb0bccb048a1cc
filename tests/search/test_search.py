"""What a search is given is checked before anything is made."""

import numpy as np
import pytest

from augtree.errors import ArgumentError, DataError
from augtree.runs.executors import Ray
from augtree.tasks import Classification
from augtree.transforms import DropNodes, Identity, Space
from support.searches import INVERT, bars
from support.tree_runs import search

pytestmark = pytest.mark.usefixtures("full_trees")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(depth=0), "depth must be a whole number from 1 to 10, got 0"),
        (dict(depth=2.5), "depth must be a whole number from 1 to 10, got 2.5"),
        (
            dict(scorer="cooldwn"),
            r"scorer must be one of cooldown, density, retrain \(did you mean cooldown\?\), got 'cooldwn'",
        ),
        (dict(probabilities=()), r"probabilities must not be empty, got \(\)"),
        (dict(probabilities=(0, 0.5)), r"probabilities must be a number in \(0, 1\], got 0"),
        (dict(probabilities=(0.5, 1.5)), r"probabilities must be a number in \(0, 1\], got 1.5"),
        (dict(seed=-1), "seed must be a whole number from 0"),
        (dict(seed="one"), "seed must be a whole number from 0"),
        (dict(check=-1), r"check must be a number in \[0, 10\], got -1"),
        (dict(budget="soon"), r"budget must be a time \(90s, 10m, 2h\) or training equivalents \(8\), got 'soon'"),
        (dict(method="random"), "method must be one of greedy, exhaustive, got 'random'"),
        (dict(method="exhaustive", scorer="density"), "exhaustive needs the scorer retrain, got 'density'"),
        (dict(scorer="density", workers=2), "workers must be 1 with the scorer density, .*, got 2"),
        (dict(scorer="retrain", workers=2), "workers must be 1 with the scorer retrain"),
        (dict(executor="processes"), "executor must be serial with the scorer retrain, .*, got 'processes'"),
        (dict(executor=Ray()), r"executor must be serial with the scorer retrain, .*, got Ray\("),
        (dict(space=[DropNodes(0.2)]), r"space must work on images as the data does, got \['graph'\]"),
        (dict(space=[INVERT, INVERT]), "candidate must not be in the space twice"),
        (dict(space=["Invert"]), "candidate must be a transform"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_made(tmp_path, changes, message):
    with pytest.raises(ArgumentError, match=message):
        search(tmp_path / "a", **changes)
    assert not (tmp_path / "a").exists()


def test_too_few_validation_samples_are_refused(tmp_path):
    with pytest.raises(DataError, match="bars: a search needs at least 8 validation samples, got 7"):
        search(tmp_path / "a", data=bars(0, 0.5, 16, 7))
    assert not (tmp_path / "a").exists()
    assert search(data=bars(0, 0.5, 16, 8), depth=1).tree


def test_a_model_that_cannot_be_made_leaves_no_folder(tmp_path):
    """Else the corrected call finds "another run" there."""
    with pytest.raises(ArgumentError, match="must be 'graph' for gin"):
        search(tmp_path / "a", task=Classification(model="gin", steps=5, device="cpu"))
    assert search(tmp_path / "a", depth=1).tree


def test_a_seed_of_numpy_is_that_seed():
    one, two = (search(seed=seed, depth=1, check=0) for seed in (3, np.int64(3)))
    assert [row["loss"] for row in one.history] == [row["loss"] for row in two.history]


@pytest.mark.parametrize(
    "changes",
    [
        dict(depth=np.int64(1)),
        dict(check=np.float32(0.1)),
        pytest.param(
            dict(budget=np.float32(9)),
        ),
    ],
)
def test_numbers_of_numpy_are_numbers(changes):
    assert search(**changes).tree


def test_probabilities_that_are_close_are_two():
    result = search(probabilities=(0.3333333, 0.3333334), depth=1, check=0)
    assert {0.3333333, 0.3333334} <= {row.get("p") for row in result.history}


@pytest.mark.parametrize("space", [[], [Identity()], Space([])], ids=str)
def test_a_space_without_a_transform_is_refused(space):
    with pytest.raises(ArgumentError, match="space must have a transform beside Identity"):
        search(space=space)
