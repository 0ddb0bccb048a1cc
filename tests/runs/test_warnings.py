"""What is doubtful is said before time is spent, by every kind of run."""

import numpy as np
import pytest

import augtree as at
from augtree.runs.events import Note, Planned
from augtree.runs.warnings import SHORT_TRAINING, run_warnings
from augtree.search.scorers.base import SATURATED
from support.blobs import blobs, task

SHORT = "A training has 6 steps: too short to tell well what helps"
ONE_GROUP = "The data has one group, so the forest is one tree"


def test_short_trainings():
    (found,) = run_warnings(task().prepare(blobs()), "search")
    assert found.startswith(SHORT)
    assert not list(run_warnings(task(steps=SHORT_TRAINING).prepare(blobs()), "search"))


def test_a_forest_without_groups():
    trainer = task(steps=SHORT_TRAINING).prepare(blobs())
    for kind in ("forest", "fit"):
        (found,) = run_warnings(trainer, kind)
        assert found.startswith(ONE_GROUP)
    two = task(steps=SHORT_TRAINING).prepare(blobs(groups=["a", "b"] * 40))
    assert not list(run_warnings(two, "forest"))


def twins():
    """A training picture that is a validation picture too."""
    data = blobs(val=16)
    data.samples[50] = data.samples[0]
    return data


RUNS = {
    "search": lambda **more: at.search_tree(twins(), task(), [at.transforms.Cutout(0.4)], budget=1, **more),
    "density": lambda **more: at.search_tree(
        twins(), task(), [at.transforms.Cutout(0.4)], scorer="density", depth=1, check=0, **more
    ),
    "forest": lambda **more: at.search_forest(
        twins(), task(), [at.transforms.Cutout(0.4)], budget=1, alpha=2, **more
    ),
    "fit": lambda **more: at.fit_forest(twins(), task(), alpha=2, **more),
    "compare": lambda **more: at.compare(twins(), task(), {"none": None}, seeds=1, **more),
    "train": lambda **more: at.train(twins(), task(), **more),
}


@pytest.mark.parametrize("kind", RUNS)
def test_warnings_come_with_the_plan_and_stay_with_the_result(kind):
    events = []
    result = RUNS[kind](watch=events.append)
    (plan,) = [event for event in events if isinstance(event, Planned)][:1]
    expected = [
        "Pictures in more than one split: 1, sample 0 (train) and sample 50 (val). What is measured",
        *([ONE_GROUP] if kind in ("forest", "fit") else []),
        SHORT,
    ]
    for text in expected:
        assert [note for note in plan.notes if note.startswith(text)]
        assert kind == "train" or [note for note in result.notes if note.startswith(text)]


def test_a_saturated_validation_is_noted_as_soon_as_it_is_known():
    rng, labels = np.random.default_rng(0), np.arange(240) % 2
    pictures = (rng.integers(0, 60, (240, 3, 8, 8)) + 190 * labels[:, None, None, None]).astype(np.uint8)
    easy = at.data.from_arrays(pictures, labels, split=["train"] * 80 + ["val"] * 160)
    for scorer in ("cooldown", "retrain"):
        events = []
        at.search_tree(
            easy,
            task(steps=40),
            [at.transforms.Posterize(0.2)],
            budget=2,
            scorer=scorer,
            depth=1,
            check=0,
            watch=events.append,
        )
        notes = [i for i, event in enumerate(events) if event == Note(SATURATED)]
        assert len(notes) == 1
        assert notes[0] < len(events) - 1
