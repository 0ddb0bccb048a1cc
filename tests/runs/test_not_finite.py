"""Losses that become NaN: one line that says what and where, nothing NaN in any file, and the run can go on."""

import json
import re

import pytest

import augtree as at
from augtree.errors import TaskError
from augtree.forests.hypergradient import Hypergradient
from augtree.tasks.classification import ClassificationTrainer
from support.blobs import POLICIES, blobs, task
from support.finite import not_finite_in
from support.sided import APART, HOW, SPACE, TASK
from support.tree_runs import files, search

pytestmark = pytest.mark.usefixtures("quick_disk")
STEP, JUDGED = (ClassificationTrainer, "output_losses"), (ClassificationTrainer, "logits")
WEIGHT_STEP = (Hypergradient, "_direction")
SMALL = task(model="cnn", options={"width": 2}, steps=20)
DIVERGED = r"the model must give finite numbers, but the training diverged with lr=0\.0[25] after \d+ steps"
YARDSTICK = r"the model must train without the candidate first, but \d+ losses are not finite \(node/1/.*\)"
LOOK = r"the model must train on the mixture, but its losses are not finite"
AT_THE_END = rf"{LOOK} \(cool/\d\)|{DIVERGED} \(average/\d\); nothing of this part was kept"


def forest(out):
    return at.search_forest(APART, TASK, SPACE, out=out, **HOW)


def forest_files(out):
    names = ("forest.json", "model.safetensors", "weights.csv", "groups.csv")
    return {name: (out / name).read_bytes() for name in names}


RUNS = {
    "cooldown": (lambda out: search(out, "cooldown"), files),
    "density": (lambda out: search(out, "density"), files),
    "forest": (forest, forest_files),
}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Of runs without a disturbance the files, and how often each function is called."""
    found = {}
    for name, (run, kept) in RUNS.items():
        folder = tmp_path_factory.mktemp("undisturbed") / name
        with pytest.MonkeyPatch.context() as patch:
            calls = {place: counted(patch, *place) for place in (STEP, JUDGED)}
            run(folder)
        found[name] = kept(folder), {place: len(each) for place, each in calls.items()}
    return found


def counted(patch, owner, name):
    """A list of the calls of a method."""
    calls, method = [], getattr(owner, name)

    def counting(*arguments, **options):
        calls.append(1)
        return method(*arguments, **options)

    patch.setattr(owner, name, counting)
    return calls


@pytest.mark.parametrize(("kind", "place", "share", "message"), [
    ("cooldown", STEP, 0.066, rf"{DIVERGED} \(trunk/1\); nothing of this part was kept"),
    ("cooldown", STEP, 0.25, rf"{LOOK} \(look/\d/\d\)"),
    ("cooldown", STEP, 1, AT_THE_END),
    ("cooldown", JUDGED, 0, rf"{LOOK} \(test/0\)"),
    ("cooldown", JUDGED, 1, DIVERGED),
    ("density", STEP, 0, rf"{DIVERGED} \(model/1\); nothing of this part was kept"),
    ("forest", STEP, 0.066, rf"{DIVERGED} \(trunk/1\); nothing of this part was kept"),
    ("forest", STEP, 1, AT_THE_END),
    ("forest", JUDGED, 0.3, rf"{LOOK} \(look/\d/\d\)"),
    ("forest", JUDGED, 1, DIVERGED),
])  # fmt: skip
def test_a_search_ends_in_one_line_and_goes_on(tmp_path, undisturbed, spoil, kind, place, share, message):
    (run, kept), (whole, calls) = RUNS[kind], undisturbed[kind]
    spoil(*place, max(1, round(share * calls[place])))
    with pytest.raises(TaskError) as caught:
        run(tmp_path / "run")
    assert re.fullmatch(message, str(caught.value))
    assert not_finite_in(tmp_path / "run") == []
    run(tmp_path / "run")
    assert kept(tmp_path / "run") == whole


def test_a_search_whose_yardstick_has_failed_refuses_to_go_on(tmp_path, spoil):
    spoil(*JUDGED, 1)
    for _ in range(2):
        with pytest.raises(TaskError) as caught:
            search(tmp_path / "run", "density")
        assert re.fullmatch(YARDSTICK, str(caught.value))
        assert not_finite_in(tmp_path / "run") == []


def test_a_candidate_whose_losses_are_nan_has_failed_and_the_search_goes_on(tmp_path, spoil):
    spoil(*JUDGED, 2)
    result = search(tmp_path / "run", "density")
    assert [row["failed"] for row in result.history if "failed" in row] == ["32 losses are not finite"]
    assert not_finite_in(tmp_path / "run") == []


@pytest.mark.parametrize("number", [1, 2])
def test_an_outer_loss_of_nan_ends_a_weight_step(tmp_path, undisturbed, spoil, number):
    spoil(*WEIGHT_STEP, number, lambda found: (found[0], found[1] * float("nan"), found[2]))
    with pytest.raises(TaskError) as caught:
        forest(tmp_path / "run")
    assert re.fullmatch(r"the losses must be finite, .* diverged with lr=0\.02 after \d+ steps", str(caught.value))
    assert not_finite_in(tmp_path / "run") == []
    forest(tmp_path / "run")
    assert forest_files(tmp_path / "run") == undisturbed["forest"][0]


def test_a_weight_step_whose_direction_is_nan_moves_nothing_and_is_told(tmp_path, spoil):
    spoil(*WEIGHT_STEP, 1, lambda found: (found[0] * float("nan"), *found[1:]))
    result = forest(tmp_path / "run")
    assert [row["skipped"] for row in result.history].count("d is not finite") == 1
    assert any("d is not finite" in note for note in result.notes)
    assert not_finite_in(tmp_path / "run") == []


@pytest.mark.parametrize(("place", "number", "message"), [
    (STEP, 1, rf"{DIVERGED} \(train/1\); nothing of this part was kept"),
    (STEP, 10, rf"{DIVERGED} \(train/5\); nothing of this part was kept"),
    (JUDGED, 1, DIVERGED),
])  # fmt: skip
def test_a_training_that_diverges_leaves_nothing_behind(tmp_path, spoil, place, number, message):
    """It would diverge again."""
    spoil(*place, number)
    with pytest.raises(TaskError) as caught:
        at.train(blobs(), SMALL, None, out=tmp_path / "run")
    assert re.fullmatch(message, str(caught.value))
    assert [path.name for path in (tmp_path / "run").iterdir()] == []


@pytest.mark.parametrize(("place", "number"), [(STEP, 1), (STEP, 50), (JUDGED, 1), (JUDGED, 12)])
def test_a_row_of_a_comparison_has_failed_and_the_others_are_as_ever(tmp_path, spoil, place, number):
    whole = at.compare(blobs(), SMALL, POLICIES, seeds=2)
    spoil(*place, number)
    found = at.compare(blobs(), SMALL, POLICIES, seeds=2, out=tmp_path / "run")
    failed = [row for row in found.rows if "failed" in row]
    assert len(failed) == 1
    assert re.fullmatch(f"TaskError: {DIVERGED}", failed[0]["failed"])
    assert [row for row in found.rows if row is not failed[0]] == [
        row for row, other in zip(whole.rows, found.rows, strict=True) if other is not failed[0]
    ]
    assert not_finite_in(tmp_path / "run") == []
    assert json.loads((tmp_path / "run" / "comparison.json").read_text())["rows"] == found.rows
