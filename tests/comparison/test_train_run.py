"""A training is a run: it can be stopped anywhere and resumed, and replaces no other."""

import sys

import pytest

import augtree as at
from augtree.comparison import rows_of_run, train
from augtree.errors import ArgumentError, OtherRunError, RunError, TaskError
from augtree.runs.events import Planned, Stepped
from augtree.runs.listing import list_runs
from augtree.runs.store import Run, acquire_lock
from augtree.tasks.classification import ClassificationTrainer
from support.blobs import MINE, blobs, task
from support.finite import not_finite_in

RESULTS = ("model.safetensors", "policy.json", "training.json")
TASK = task(model="cnn", options={"width": 2}, steps=23)


@pytest.fixture(autouse=True)
def _quick_disk(quick_disk):
    pass


def results(folder):
    return {name: (folder / name).read_bytes() for name in RESULTS}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The files of a training without an interruption."""
    folder = tmp_path_factory.mktemp("whole")
    train(blobs(), TASK, MINE, seed=3, out=folder)
    return results(folder)


def test_a_training_is_cut_at_every_point_and_resumed_to_the_same_bytes(tmp_path, cut, whole, monkeypatch):
    monkeypatch.setattr(sys.modules[train.__module__], "PARTS", 4)  # any number gives the same
    points = cut(0)
    train(blobs(), TASK, MINE, seed=3, out=tmp_path / "all")
    assert points.count("unit.recorded") == 5  # four parts, and the metrics
    for number in range(1, len(points) + 1):
        folder = tmp_path / str(number)
        cut(number)
        with pytest.raises(cut.Error):
            train(blobs(), TASK, MINE, seed=3, out=folder)
        cut(0)
        at.resume(folder, data=blobs())
        assert results(folder) == whole, points[number - 1]


def test_a_training_that_is_cut_again_and_again_repeats_no_part(tmp_path, cut, whole):
    steps = []
    for _ in range(8):
        cut(1, "unit.recorded")
        with pytest.raises(cut.Error):
            train(blobs(), TASK, MINE, seed=3, out=tmp_path, watch=steps.append)
    cut(0)
    found = at.resume(tmp_path, data=blobs(), watch=steps.append)
    assert [event.done for event in steps if isinstance(event, Stepped)] == [*range(1, 24)]
    assert results(tmp_path) == whole
    assert found.metrics == train(blobs(), TASK, MINE, seed=3).metrics
    assert [(run.kind, run.data, run.status, run.units) for run in list_runs(tmp_path)] == [
        ("train", "blobs", "done", 9)
    ]
    assert len(list((tmp_path / "checkpoints").iterdir())) == 2


def test_parts_whose_files_are_lost_or_damaged_are_trained_again(tmp_path, cut, whole):
    cut(5, "unit.recorded")
    with pytest.raises(cut.Error):
        train(blobs(), TASK, MINE, seed=3, out=tmp_path)
    for file in (tmp_path / "checkpoints").iterdir():
        file.write_bytes(file.read_bytes()[:-1])
    cut(0)
    at.resume(tmp_path, data=blobs())
    assert results(tmp_path) == whole
    with Run.open(tmp_path, write=False) as run:
        assert run.cost()[1] == 23 * 16  # what is trained again is not counted again


def test_the_same_training_again_is_not_done_again(tmp_path, whole):
    first = train(blobs(), TASK, MINE, seed=3, out=tmp_path)
    events = []
    assert train(blobs(), TASK, MINE, seed=3, out=tmp_path, watch=events.append).metrics == first.metrics
    assert events[1:-1] == [Planned(events[1].notes, steps=23)]
    assert results(tmp_path) == whole


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("overwrite", [False, True])
def test_no_other_run_and_no_file_of_the_users_is_replaced(tmp_path, overwrite):
    searched, mine = tmp_path / "searched", tmp_path / "mine"
    at.compare(blobs(), task(), {"none": None}, seeds=1, out=searched)
    mine.mkdir()
    (mine / "model.safetensors").write_text("a model")
    (mine / "notes.txt").write_text("mine")
    rule = "must hold nothing but a training to be overwritten" if overwrite else "must be an empty folder"
    for folder, error, words in (
        (searched, OtherRunError, "holds another run .a compare, not a train."),
        (mine, RunError, rule),
    ):
        before = files(folder)
        with pytest.raises(error, match=words) as caught:
            train(blobs(), TASK, out=folder, overwrite=overwrite, watch=lambda _: pytest.fail("it was trained"))
        assert "--overwrite" not in str(caught.value)
        assert files(folder) == before


def test_another_training_is_replaced_only_when_wanted(tmp_path, whole):
    train(blobs(), TASK, "trivialaugment", out=tmp_path)
    before = files(tmp_path)
    with pytest.raises(
        OtherRunError, match=r"differs in .*/policy, /seed.*\(--overwrite replaces another training\)"
    ):
        train(blobs(), TASK, MINE, seed=3, out=tmp_path)
    assert files(tmp_path).keys() == before.keys()
    assert results(tmp_path)["model.safetensors"] == before[(tmp_path / RESULTS[0]).relative_to(tmp_path)]
    train(blobs(), TASK, MINE, seed=3, out=tmp_path, overwrite=True)
    assert results(tmp_path) == whole
    (tmp_path / "notes.txt").write_text("mine")
    before = files(tmp_path)
    with pytest.raises(RunError, match="must hold nothing but a training to be overwritten, got notes.txt in it"):
        train(blobs(), TASK, out=tmp_path, overwrite=True)
    assert files(tmp_path) == before


def test_what_a_killed_process_leaves_is_overwritten_too(tmp_path, cut, whole):
    cut(3, "unit.recorded")
    with pytest.raises(cut.Error):
        train(blobs(), TASK, out=tmp_path)
    cut(0)
    for name in (
        ".spec.json.0a",
        ".model.safetensors.0a",
        "checkpoints/.train-4.safetensors.0a",
        "run.sqlite-journal",
    ):
        (tmp_path / name).write_bytes(b"")
    train(blobs(), TASK, MINE, seed=3, out=tmp_path, overwrite=True)
    assert results(tmp_path) == whole


def test_a_model_of_an_earlier_version_is_replaced_only_when_wanted(tmp_path, whole):
    for name in RESULTS:
        (tmp_path / name).write_text("old")
    with pytest.raises(RunError, match=r"got model.safetensors in it \(--overwrite repl"):
        train(blobs(), TASK, MINE, seed=3, out=tmp_path)
    assert (tmp_path / "model.safetensors").read_text() == "old"
    train(blobs(), TASK, MINE, seed=3, out=tmp_path, overwrite=True)
    assert results(tmp_path) == whole


@pytest.mark.parametrize(
    ("names", "first"),
    [
        (["policy.json"], "policy.json"),
        (["model.safetensors"], "model.safetensors"),
        (["model.safetensors", "policy.json", ".policy.json.0123456789ab"], "model.safetensors"),
        (["checkpoints/epoch-1.safetensors"], "epoch-1.safetensors"),
        (["run.sqlite"], "run.sqlite"),
        ([*RESULTS, "checkpoints/epoch-1.safetensors"], "epoch-1.safetensors"),
        ([*RESULTS, "run.sqlite-journal"], "run.sqlite-journal"),
        ([*RESULTS, ".policy.json.bak"], ".policy.json.bak"),
        (["checkpoints"], "checkpoints"),
    ],
)
def test_files_of_the_users_own_are_no_training(tmp_path, names, first):
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine")
    before = files(tmp_path)
    with pytest.raises(RunError, match=f"must hold nothing but a training to be overwritten, got {first} in it"):
        train(blobs(), TASK, MINE, out=tmp_path, overwrite=True)
    with pytest.raises(RunError, match="must be an empty folder") as caught:
        train(blobs(), TASK, MINE, out=tmp_path)
    assert "--overwrite" not in str(caught.value)
    assert files(tmp_path) == before


def test_what_a_training_leaves_before_it_begins_or_once_it_is_removed_is_overwritten(tmp_path, whole):
    (tmp_path / "checkpoints").mkdir()
    for name in ("lock.sqlite", ".spec.json.0123456789ab", ".model.safetensors.0123456789ab"):
        (tmp_path / name).write_bytes(b"")
    train(blobs(), TASK, MINE, seed=3, out=tmp_path, overwrite=True)
    assert results(tmp_path) == whole


def test_what_is_needed_or_in_use_is_not_overwritten(tmp_path):
    train(blobs(), TASK, out=tmp_path)
    before = results(tmp_path)
    after = task(model="cnn", options={"width": 2, "weights": str(tmp_path / "model.safetensors")})
    with pytest.raises(ArgumentError, match="--out must not be overwritten where it has the weights to begin with"):
        train(blobs(), after, out=tmp_path, overwrite=True)
    lock = acquire_lock(tmp_path)
    with pytest.raises(RunError, match="is in use by another process"):
        train(blobs(), TASK, MINE, out=tmp_path, overwrite=True)
    lock.close()
    assert results(tmp_path) == before


def test_a_resumed_training_that_fails_keeps_what_there_is(tmp_path, cut, spoil):
    """A new training that fails leaves nothing (test_train); one that had been begun stays for its user to see."""
    cut(2, "unit.recorded")
    with pytest.raises(cut.Error):
        train(blobs(), TASK, out=tmp_path)
    cut(0)
    spoil(ClassificationTrainer, "output_losses", 6)
    with pytest.raises(TaskError, match=r"the training diverged with lr=0\.05 after 12 steps \(train/4\); nothing"):
        at.resume(tmp_path, data=blobs())
    assert (tmp_path / "spec.json").is_file()
    assert not_finite_in(tmp_path) == []


def test_a_trainings_folder_is_its_policy_elsewhere(tmp_path):
    train(blobs(), TASK, MINE, out=tmp_path / "t")
    assert rows_of_run(tmp_path / "t", blobs()) == {"t/policy": MINE}
    table = at.compare(blobs(), task(), {"t": tmp_path / "t"}, seeds=1)
    assert [row["policy"] for row in table.rows] == ["t"]
